//! Unicode properties by the names that Go accepts in `\p{…}`.
//!
//! Guarantees: a name is accepted if and only if Go 1.26 accepts it. Code points that were assigned after
//! Unicode 15.0, the version of Go 1.26, are unassigned.

use std::sync::OnceLock;

use regex_syntax::hir::{Class as HirClass, HirKind};

use super::class::{Class, RUNE_MAX, Range};
use super::names::{ALIASES, CATEGORIES, SCRIPTS};

const SURROGATES: Range = (0xD800, 0xDFFF);

/// A code point that is in `Mc` since Unicode 16.0, and in `Mn` before (AHOM CONSONANT SIGN MEDIAL RA).
const MEDIAL_RA: u32 = 0x1171E;

/// Names of the classes to which `(?i)` adds the code points that are equal under folding.
///
/// These are the keys of `unicode.FoldCategory` and `unicode.FoldScript`. `(?i)` has no effect on others.
const FOLDED: [&str; 9] = [
    "L",
    "Ll",
    "Lt",
    "Lu",
    "M",
    "Mn",
    "Common",
    "Greek",
    "Inherited",
];

/// The code points of a property.
#[derive(Clone, Debug)]
pub(super) struct Property {
    /// Clean.
    pub(super) class: Class,
    /// Whether `(?i)` adds the code points that are equal under folding.
    pub(super) folds: bool,
}

/// Returns the property that Go finds for `name`, the text in `\p{…}` without `^`.
pub(super) fn find(name: &str) -> Option<Property> {
    let name = canonical(name);
    let (class, folds) = match name.as_str() {
        "Any" => (Class::of(&[(0, RUNE_MAX)]), false),
        "Assigned" => (category("Cn").negated(), false),
        "Ascii" => (Class::of(&[(0, 0x7F)]), true),
        "Lc" => (category("LC"), false),
        name if CATEGORIES.contains(&name) => (category(name), FOLDED.contains(&name)),
        name if SCRIPTS.contains(&name) => (
            query(&format!(r"[\p{{sc={name}}}&&\p{{age=15.0}}]")),
            FOLDED.contains(&name),
        ),
        name => {
            let (_, category_name) = ALIASES.iter().find(|(alias, _)| *alias == name)?;
            (category(category_name), FOLDED.contains(category_name))
        }
    };
    Some(Property { class, folds })
}

/// Returns the code points of the categories `Ll`, `Lt` and `Lu`.
pub(super) fn cased() -> Class {
    category("LC")
}

/// Returns the code points that have an age of at most Unicode 15.0.
pub(super) fn assigned() -> &'static Class {
    static ASSIGNED: OnceLock<Class> = OnceLock::new();
    ASSIGNED.get_or_init(|| query(r"\p{age=15.0}"))
}

/// Returns the name in the form in which Go looks it up: the first letter in upper case and the others in
/// lower case, without underscores, hyphens and spaces.
///
/// Go's names of scripts with an underscore therefore match no text, which is how Go behaves.
fn canonical(name: &str) -> String {
    let mut canonical = String::with_capacity(name.len());
    for char in name.chars().filter(|char| !matches!(char, '_' | '-' | ' ')) {
        canonical.push(if canonical.is_empty() {
            char.to_ascii_uppercase()
        } else {
            char.to_ascii_lowercase()
        });
    }
    canonical
}

/// Returns the class of a general category.
fn category(name: &str) -> Class {
    match name {
        "Cs" => Class::of(&[SURROGATES]),
        "Cn" => query(r"[\p{gc=Cn}\P{age=15.0}]"),
        "C" => {
            let mut class = query(r"[\p{gc=C}\P{age=15.0}]");
            class.append(SURROGATES.0, SURROGATES.1);
            class.clean();
            class
        }
        "Mn" => {
            let mut class = query(r"[\p{gc=Mn}&&\p{age=15.0}]");
            class.append(MEDIAL_RA, MEDIAL_RA);
            class.clean();
            class
        }
        "Mc" => query(r"[\p{gc=Mc}&&\p{age=15.0}--\x{1171E}]"),
        name => query(&format!(r"[\p{{gc={name}}}&&\p{{age=15.0}}]")),
    }
}

/// Returns the code points of a class in the syntax of `regex-syntax`, clean and without surrogates.
fn query(class: &str) -> Class {
    let parsed = regex_syntax::parse(class);
    let kind = parsed.as_ref().map(regex_syntax::hir::Hir::kind);
    let mut found = Class::default();
    match kind {
        Ok(HirKind::Class(HirClass::Unicode(class))) => {
            for range in class.iter() {
                found.append(u32::from(range.start()), u32::from(range.end()));
            }
        }
        // A class of one code point.
        Ok(HirKind::Literal(literal)) => {
            for char in String::from_utf8_lossy(&literal.0).chars() {
                found.append(u32::from(char), u32::from(char));
            }
        }
        _ => debug_assert!(false, "no class: {class}"),
    }
    found
}
