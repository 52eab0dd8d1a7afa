//! Searches for planted bugs: deliberate defects that a verification program must find.
//!
//! Each program defines its planted bugs, and adds them to the code under test.

use std::fmt;

use anyhow::Result;

use crate::report::say;

/// A planted bug of a verification program, defined with the macro [`bugs!`](crate::bugs).
pub trait Planted: Copy + fmt::Display + 'static {
    /// All planted bugs, in the order in which the program searches for them.
    const ALL: &'static [Self];

    /// Returns the name of the component or fuzz target that contains the bug.
    ///
    /// The name is empty if the definition of the bug does not set it.
    fn place(self) -> &'static str;
}

/// Result of the search for one planted bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// The program has found the bug: a run with the planted bug failed.
    Found {
        /// Seed or input that identifies the failing run.
        by: String,
        /// Description of the failure.
        shown: String,
    },
    /// The program has not found the bug: no run with the planted bug failed.
    Missed {
        /// Extent of the whole search, such as `500 seeds`.
        within: String,
    },
}

/// Searches for each planted bug, prints the results, and returns whether all were found.
///
/// `search` must run the program with one planted bug.
///
/// # Errors
/// Returns the first error of `search`.
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

/// Defines an enum of planted bugs that implements [`Planted`](crate::planted::Planted) and `Display`.
///
/// Each bug is a line `Variant in "component": "description",`. The optional `in "component"` sets
/// [`Planted::place`](crate::planted::Planted::place).
#[macro_export]
macro_rules! bugs {
    ($visibility:vis enum $name:ident { $($bug:ident $(in $place:literal)?: $text:literal,)+ }) => {
        /// A deliberate defect that the program adds to the code under test.
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
