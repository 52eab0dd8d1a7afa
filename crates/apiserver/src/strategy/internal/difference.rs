//! Compares two texts line by line, as Go's package `difflib`, a port of Python's, which Kubernetes uses.
//!
//! Guarantees: the result is that of `difflib`, which is not always the smallest difference.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of lines of a compared text. The time for a comparison can grow with the cube of this number.
const LINES_MAX: usize = 2_000;

/// Number of lines without a change before and after each change.
const CONTEXT: usize = 3;

/// Number of lines from which on lines that are in more than 1 % of all places begin no common part.
const POPULAR_FROM: usize = 200;

/// Lines that both texts have: the places in both, and their number.
#[derive(Clone, Copy)]
struct Common {
    old: usize,
    new: usize,
    size: usize,
}

/// A part of both texts, which is equal or replaced.
#[derive(Clone, Copy)]
struct Part {
    is_equal: bool,
    old: (usize, usize),
    new: (usize, usize),
}

struct Comparison<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// The places of each line of the new text that is not popular.
    places: BTreeMap<&'a str, Vec<usize>>,
}

/// Returns the difference of two texts in the unified format, or an empty text if they are too long.
pub(super) fn unified(old: &str, new: &str) -> String {
    let comparison = Comparison::of(old, new);
    let mut text = String::new();
    if comparison.old.len().max(comparison.new.len()) > LINES_MAX {
        return text;
    }
    for group in groups(&comparison.parts()) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let old = range(first.old.0, last.old.1);
        let new = range(first.new.0, last.new.1);
        writeln!(text, "@@ -{old} +{new} @@").expect("writing to a String does not fail");
        let mut add = |mark: char, lines: &[&str]| {
            for line in lines {
                writeln!(text, "{mark}{line}").expect("writing to a String does not fail");
            }
        };
        for part in group {
            let old = &comparison.old[part.old.0..part.old.1];
            if part.is_equal {
                add(' ', old);
            } else {
                add('-', old);
                add('+', &comparison.new[part.new.0..part.new.1]);
            }
        }
    }
    text
}

/// Returns a range of lines, which count from 1, with their number.
fn range(start: usize, end: usize) -> String {
    match end - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

/// Returns the parts that are shown together: changes, with the lines around them.
fn groups(parts: &[Part]) -> Vec<Vec<Part>> {
    let tail = |part: Part| Part {
        old: (
            part.old.0.max(part.old.1.saturating_sub(CONTEXT)),
            part.old.1,
        ),
        new: (
            part.new.0.max(part.new.1.saturating_sub(CONTEXT)),
            part.new.1,
        ),
        ..part
    };
    let head = |part: Part| Part {
        old: (part.old.0, part.old.1.min(part.old.0 + CONTEXT)),
        new: (part.new.0, part.new.1.min(part.new.0 + CONTEXT)),
        ..part
    };
    let mut groups = Vec::new();
    let mut group: Vec<Part> = Vec::new();
    let last = parts.len().saturating_sub(1);
    for (at, part) in parts.iter().copied().enumerate() {
        let mut part = part;
        if part.is_equal && at == 0 {
            part = tail(part);
        }
        if part.is_equal && at == last {
            part = head(part);
        }
        if part.is_equal && part.old.1 - part.old.0 > 2 * CONTEXT {
            group.push(head(part));
            groups.push(std::mem::take(&mut group));
            part = tail(part);
        }
        group.push(part);
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|part| !part.is_equal));
    groups
}

impl<'a> Comparison<'a> {
    fn of(old: &'a str, new: &'a str) -> Comparison<'a> {
        let lines = |text: &'a str| text.split('\n').collect::<Vec<_>>();
        let (old, new) = (lines(old), lines(new));
        let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, line) in new.iter().enumerate() {
            places.entry(line).or_default().push(at);
        }
        if new.len() >= POPULAR_FROM {
            let most = new.len() / 100 + 1;
            places.retain(|_, places| places.len() <= most);
        }
        Comparison { old, new, places }
    }

    /// Returns the parts of the texts, from the first line to the last.
    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let (mut old, mut new) = (0, 0);
        let end = Common {
            old: self.old.len(),
            new: self.new.len(),
            size: 0,
        };
        for common in self.common().into_iter().chain([end]) {
            if old < common.old || new < common.new {
                parts.push(Part {
                    is_equal: false,
                    old: (old, common.old),
                    new: (new, common.new),
                });
            }
            (old, new) = (common.old + common.size, common.new + common.size);
            if common.size > 0 {
                parts.push(Part {
                    is_equal: true,
                    old: (common.old, old),
                    new: (common.new, new),
                });
            }
        }
        parts
    }

    /// Returns what both texts have in common, in order. Adjacent parts are one.
    fn common(&self) -> Vec<Common> {
        let mut found = Vec::new();
        let mut open = vec![((0, self.old.len()), (0, self.new.len()))];
        while let Some((old, new)) = open.pop() {
            let common = self.longest(old, new);
            if common.size == 0 {
                continue;
            }
            found.push(common);
            let ends = (common.old + common.size, common.new + common.size);
            let around = [
                ((old.0, common.old), (new.0, common.new)),
                ((ends.0, old.1), (ends.1, new.1)),
            ];
            let is_open =
                |(old, new): &((usize, usize), (usize, usize))| old.0 < old.1 && new.0 < new.1;
            open.extend(around.into_iter().filter(is_open));
        }
        found.sort_by_key(|common| common.old);
        let mut joined: Vec<Common> = Vec::new();
        for common in found {
            match joined.last_mut() {
                Some(last)
                    if last.old + last.size == common.old && last.new + last.size == common.new =>
                {
                    last.size += common.size;
                }
                _ => joined.push(common),
            }
        }
        joined
    }

    /// Returns the longest common part in two ranges of lines.
    fn longest(&self, old: (usize, usize), new: (usize, usize)) -> Common {
        let mut best = Common {
            old: old.0,
            new: new.0,
            size: 0,
        };
        // The length of the common part that ends before each line of the new text.
        let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
        for at in old.0..old.1 {
            let mut next = BTreeMap::new();
            let places = self.places.get(self.old[at]).into_iter().flatten();
            let places = places.skip_while(|place| **place < new.0);
            for place in places.take_while(|place| **place < new.1) {
                let size = lengths.get(place).copied().unwrap_or(0) + 1;
                next.insert(place + 1, size);
                if size > best.size {
                    best = Common {
                        old: at + 1 - size,
                        new: place + 1 - size,
                        size,
                    };
                }
            }
            lengths = next;
        }
        let Common {
            old: a,
            new: b,
            size,
        } = &mut best;
        while *a > old.0 && *b > new.0 && self.old[*a - 1] == self.new[*b - 1] {
            (*a, *b, *size) = (*a - 1, *b - 1, *size + 1);
        }
        while *a + *size < old.1
            && *b + *size < new.1
            && self.old[*a + *size] == self.new[*b + *size]
        {
            *size += 1;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::unified;

    /// Returns lines, one per letter.
    fn lines(letters: &str) -> String {
        let letters: Vec<String> = letters.chars().map(String::from).collect();
        letters.join("\n")
    }

    #[test]
    fn changes_have_three_lines_around_them() {
        for (old, new, expected) in [
            ("abc", "abc", ""),
            ("abc", "axc", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"),
            ("abcdefgh", "abcdefghi", "@@ -6,3 +6,4 @@\n f\n g\n h\n+i\n"),
            (
                "0abcdefgh",
                "abcdefgh1",
                "@@ -1,4 +1,3 @@\n-0\n a\n b\n c\n@@ -7,3 +6,4 @@\n f\n g\n h\n+1\n",
            ),
            ("ab", "acab", "@@ -1,2 +1,4 @@\n+a\n+c\n a\n b\n"),
        ] {
            assert_eq!(unified(&lines(old), &lines(new)), expected, "{old} {new}");
        }
    }
}
