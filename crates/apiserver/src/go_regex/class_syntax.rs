//! Character classes in a pattern: `[…]`, `\d` and `\p{…}`.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::class::{Class, Range};
use super::escape::{Fault, INVALID_CLASS_RANGE, escape, next_rune, up_to};
use super::fold::append_folded;
use super::groups;
use super::property;

const MISSING_BRACKET: &str = "missing closing ]";

/// Number of ranges that a class collects before it is cleaned.
const CLEAN_AT: usize = 1024;

/// The part of a pattern that is parsed, and the text after it.
type Parsed<'a, T> = Result<(T, &'a str), Fault<'a>>;

/// Parses the classes of one pattern.
#[derive(Debug, Default)]
pub(super) struct ClassParser<'a> {
    /// The classes of `\p{…}` by their names and whether they are folded; `None` for unknown names.
    properties: BTreeMap<(&'a str, bool), Option<Rc<Class>>>,
    /// Whether no `:]` follows, so that the search for it does not repeat.
    no_more_names: bool,
}

/// Collects a class. Cleans it from time to time, which bounds its memory.
#[derive(Default)]
struct Collector {
    class: Class,
    clean_at: usize,
}

impl Collector {
    fn append(&mut self, ranges: &[Range]) {
        self.class.append_all(ranges);
        if self.class.ranges().len() > self.clean_at.max(CLEAN_AT) {
            self.class.clean();
            self.clean_at = 2 * self.class.ranges().len();
        }
    }
}

impl<'a> ClassParser<'a> {
    /// Splits off a class in brackets. `text` starts with `[`. `folds` says whether `(?i)` is in effect.
    pub(super) fn bracketed(&mut self, text: &'a str, folds: bool) -> Parsed<'a, Class> {
        let mut rest = &text[1..];
        let is_negated = rest.starts_with('^');
        if is_negated {
            rest = &rest[1..];
        }
        // Ranges that are folded at the end, and complete classes.
        let (mut ranges, mut classes) = (Collector::default(), Collector::default());
        let mut is_first = true;
        while is_first || !rest.starts_with(']') {
            is_first = false;
            if let Some((class, after)) = self.named(rest, folds)? {
                classes.append(class.ranges());
                rest = after;
            } else if let Some((class, after)) = self.escaped(rest, folds)? {
                classes.append(class.ranges());
                rest = after;
            } else {
                let (range, after) = range(rest, text)?;
                ranges.append(&[range]);
                rest = after;
            }
        }
        let mut class = classes.class;
        let mut ranges = ranges.class;
        ranges.clean();
        for range in ranges.ranges() {
            if folds {
                append_folded(&mut class, *range);
            } else {
                class.append(range.0, range.1);
            }
        }
        class.clean();
        let class = if is_negated { class.negated() } else { class };
        Ok((class, &rest[1..]))
    }

    /// Splits off a class of POSIX such as `[:alnum:]`, if `text` starts with one.
    fn named(&mut self, text: &'a str, folds: bool) -> Result<Option<(Class, &'a str)>, Fault<'a>> {
        let Some(start) = text.strip_prefix("[:").filter(|_| !self.no_more_names) else {
            return Ok(None);
        };
        let Some((name, rest)) = start.split_once(":]") else {
            self.no_more_names = true;
            return Ok(None);
        };
        match groups::posix(name) {
            Some(group) => Ok(Some((group_class(group, folds), rest))),
            None => Err(Fault::Syntax(INVALID_CLASS_RANGE, up_to(text, rest))),
        }
    }

    /// Splits off an escape that stands for a class, such as `\d` and `\pL`, if `text` starts with one.
    pub(super) fn escaped(
        &mut self,
        text: &'a str,
        folds: bool,
    ) -> Result<Option<(Class, &'a str)>, Fault<'a>> {
        if text.starts_with(r"\p") || text.starts_with(r"\P") {
            return self.unicode(text, folds).map(Some);
        }
        let group = groups::perl(text);
        Ok(group.map(|group| (group_class(group, folds), &text[2..])))
    }

    /// Splits off `\pL` or `\p{Greek}`.
    fn unicode(&mut self, text: &'a str, folds: bool) -> Parsed<'a, Class> {
        let mut is_negated = text.starts_with(r"\P");
        let (first, mut rest) = next_rune(&text[2..]);
        let mut name = up_to(&text[2..], rest);
        if first == u32::from('{') {
            let Some((inside, after)) = rest.split_once('}') else {
                return Err(Fault::Syntax(INVALID_CLASS_RANGE, text));
            };
            (name, rest) = (inside, after);
        }
        if let Some(other) = name.strip_prefix('^') {
            is_negated = !is_negated;
            name = other;
        }
        match self.property(name, folds) {
            Some(class) if is_negated => Ok((class.negated(), rest)),
            Some(class) => Ok((Class::clone(&class), rest)),
            None => Err(Fault::Syntax(INVALID_CLASS_RANGE, up_to(text, rest))),
        }
    }

    fn property(&mut self, name: &'a str, folds: bool) -> Option<Rc<Class>> {
        let found = self.properties.entry((name, folds)).or_insert_with(|| {
            let property = property::find(name)?;
            let class = if folds && property.folds {
                folded(property.class.ranges())
            } else {
                property.class
            };
            Some(Rc::new(class))
        });
        found.clone()
    }
}

/// Splits off one code point of a class or a range of them. `class` is the text of the class.
fn range<'a>(text: &'a str, class: &'a str) -> Parsed<'a, Range> {
    let (lo, rest) = rune(text, class)?;
    let Some(end) = rest
        .strip_prefix('-')
        .filter(|end| !end.is_empty() && !end.starts_with(']'))
    else {
        return Ok(((lo, lo), rest));
    };
    let (hi, rest) = rune(end, class)?;
    if hi < lo {
        return Err(Fault::Syntax(INVALID_CLASS_RANGE, up_to(text, rest)));
    }
    Ok(((lo, hi), rest))
}

fn rune<'a>(text: &'a str, class: &'a str) -> Parsed<'a, u32> {
    match text.as_bytes().first() {
        None => Err(Fault::Syntax(MISSING_BRACKET, class)),
        Some(b'\\') => escape(text),
        Some(_) => Ok(next_rune(text)),
    }
}

fn group_class((ranges, is_negated): groups::Group, folds: bool) -> Class {
    let class = if folds {
        folded(ranges)
    } else {
        Class::of(ranges)
    };
    if is_negated { class.negated() } else { class }
}

/// Returns the code points of `ranges` and those that are equal to one under folding.
fn folded(ranges: &[Range]) -> Class {
    let mut class = Class::default();
    for range in ranges {
        append_folded(&mut class, *range);
    }
    class.clean();
    class
}
