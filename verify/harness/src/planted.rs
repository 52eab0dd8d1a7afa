//! Planted bugs, which show that a verification program can find bugs of their kind.

use std::fmt;

use anyhow::Result;

use crate::report::say;

/// The planted bugs of a program; [`bugs!`](crate::bugs) implements it.
pub trait Planted: Copy + fmt::Display + 'static {
    /// Every bug, in the order in which they are searched.
    const ALL: &'static [Self];

    /// Returns the name of the part that has the bug; empty in a program without parts.
    fn place(self) -> &'static str;
}

/// The result of a search for one bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// The bug was found.
    Found {
        /// The seed or the input that found it.
        by: String,
        /// The failure.
        shown: String,
    },
    /// The bug was not found.
    Missed {
        /// The number of runs.
        within: String,
    },
}

/// Searches each of these bugs, and reports the results. Returns whether all of them were found.
///
/// # Errors
/// Returns the errors of `search`.
pub fn find_each<B: Planted>(
    bugs: impl IntoIterator<Item = B>,
    mut search: impl FnMut(B) -> Result<Search>,
) -> Result<bool> {
    let mut are_found = true;
    for bug in bugs {
        let colon = if bug.place().is_empty() { "" } else { ": " };
        let name = format!("{}{colon}{bug}", bug.place());
        match search(bug)? {
            Search::Found { by, shown } => {
                say(&format!("{name}: found by {by}\n{}\n", shown.trim_end()));
            }
            Search::Missed { within } => {
                say(&format!("{name}: NOT FOUND in {within}"));
                are_found = false;
            }
        }
    }
    Ok(are_found)
}

/// Defines an enum of planted bugs: a line per bug, with the part that has it, if the program has parts, and
/// a description.
#[macro_export]
macro_rules! bugs {
    ($visibility:vis enum $name:ident { $($bug:ident $(in $place:literal)?: $text:literal,)+ }) => {
        /// A planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $(#[doc = $text] $bug,)+
        }

        impl $crate::planted::Planted for $name {
            const ALL: &'static [Self] = &[$(Self::$bug),+];

            fn place(self) -> &'static str {
                match self {
                    $(Self::$bug => concat!($($place)?),)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Self::$bug => $text,)+
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    bugs! {
        enum Bug {
            Lost in "queue": "an event that is lost",
            Doubled: "an event that is delivered twice",
        }
    }

    #[test]
    fn a_bug_that_is_not_found_fails_the_search_without_ending_it() {
        let mut searched = Vec::new();
        let verdict = find_each(Bug::ALL.iter().copied(), |bug| {
            searched.push((bug.place(), bug.to_string()));
            Ok(if bug == Bug::Lost {
                Search::Missed {
                    within: "3 runs".to_owned(),
                }
            } else {
                Search::Found {
                    by: "seed 1".to_owned(),
                    shown: "twice".to_owned(),
                }
            })
        });
        assert!(!verdict.unwrap());
        let lost = ("queue", "an event that is lost".to_owned());
        let doubled = ("", "an event that is delivered twice".to_owned());
        assert_eq!(searched, [lost, doubled]);
    }
}
