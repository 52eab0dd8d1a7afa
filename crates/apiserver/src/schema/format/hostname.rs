//! Checks host names.
//!
//! Letters and symbols of all scripts are allowed. Kubernetes applies one of two rules:
//! - A name without dots can have one dash, and only as its second character. The dash can be the last
//!   character.
//! - In a name with dots, a dash can be anywhere except at the start and the end of a label. The last label
//!   is two or more letters.

use super::unicode::{is_letter, is_symbol};

/// Maximum length of a name in bytes.
const NAME_MAX: usize = 255;
/// Maximum length of a label in bytes.
const LABEL_MAX: usize = 63;

/// Returns whether `text` is a host name.
pub(super) fn is_hostname(text: &str) -> bool {
    text.len() <= NAME_MAX
        && text.split('.').all(|label| label.len() <= LABEL_MAX)
        && match text.rsplit_once('.') {
            None => is_only_label(text),
            Some((labels, last)) => {
                labels.split('.').all(is_label)
                    && last.chars().count() >= 2
                    && last.chars().all(is_letter)
            }
        }
}

fn is_only_label(label: &str) -> bool {
    let mut characters = label.chars();
    let starts_well = characters.next().is_some_and(is_inner);
    let rest = characters.as_str();
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    starts_well && rest.chars().all(is_inner)
}

fn is_label(label: &str) -> bool {
    let is_edge = |edge: Option<char>| edge.is_some_and(is_inner);
    is_edge(label.chars().next())
        && is_edge(label.chars().next_back())
        && label.chars().all(|inner| inner == '-' || is_inner(inner))
}

fn is_inner(character: char) -> bool {
    character.is_ascii_digit() || is_letter(character) || is_symbol(character)
}
