//! Limits of an expression's size that hold before it is parsed.
//!
//! The parser and the checker recurse with the depth of the expression. This module reads only the brackets
//! and operators of the text, and estimates the depth from above.

/// Maximum length of an expression in characters, as in cel-go.
pub(super) const MAX_CHARS: usize = 100_000;

/// Maximum depth of nested brackets and conditions. cel-go's limit is 250.
pub(super) const MAX_NESTING: usize = 100;

/// Maximum length of a chain of operators, field accesses, calls and brackets, as in cel-go.
const MAX_CHAIN: usize = 250;

/// Maximum sum of the lengths of all chains that contain one another.
const MAX_DEPTH: usize = 320;

/// Returns an error if the expression exceeds one of the limits.
pub(super) fn check(source: &str) -> Result<(), String> {
    let length = source.chars().count();
    if length > MAX_CHARS {
        let size = format!("size: {length}, limit {MAX_CHARS}");
        return Err(format!("expression code point size exceeds limit: {size}"));
    }
    let mut scan = Scan::default();
    scan.levels.push(Level::default());
    let mut rest = source.as_bytes();
    while let [first, ..] = rest {
        let length = match first {
            b'"' | b'\'' => string_length(rest, scan.is_raw),
            b'`' => until(&rest[1..], b"`") + 1,
            b'/' if rest.starts_with(b"//") => until(rest, b"\n"),
            _ => scan.token(rest),
        };
        scan.is_raw = matches!(first, b'r' | b'R') || (scan.is_raw && matches!(first, b'b' | b'B'));
        if scan.is_too_deep() {
            return Err(if scan.nesting() > MAX_NESTING {
                "expression recursion limit exceeded: 250".to_owned()
            } else {
                "max recursion depth exceeded".to_owned()
            });
        }
        rest = &rest[length.min(rest.len())..];
    }
    Ok(())
}

/// The brackets that are open at a place of the text.
#[derive(Default)]
struct Scan {
    levels: Vec<Level>,
    depth: usize,
    /// Conditions of the open levels, which nest like brackets.
    conditions: usize,
    is_raw: bool,
}

#[derive(Default)]
struct Level {
    /// Count of binary and unary operators.
    operators: usize,
    /// Count of field accesses, calls and indices after the last operator.
    accesses: usize,
    /// Maximum of `accesses` since the chain began.
    max_accesses: usize,
    conditions: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.operators + self.max_accesses
    }
}

impl Scan {
    /// Reads one operator or bracket and returns its length.
    fn token(&mut self, rest: &[u8]) -> usize {
        match rest[0] {
            b'(' | b'[' | b'{' => {
                self.access();
                self.levels.push(Level::default());
            }
            b')' | b']' | b'}' if self.levels.len() > 1 => {
                let closed = self.levels.pop().unwrap_or_default();
                self.depth -= closed.depth();
                self.conditions -= closed.conditions;
            }
            b',' => self.reset(true),
            b'&' | b'|' => {
                self.reset(false);
                return 2;
            }
            b'?' => {
                if let Some(level) = self.levels.last_mut() {
                    level.conditions += 1;
                    self.conditions += 1;
                }
                self.reset(false);
            }
            b':' => self.reset(false),
            b'.' => self.access(),
            b'+' | b'-' | b'*' | b'/' | b'%' => self.operator(),
            b'<' | b'>' | b'=' | b'!' => {
                self.operator();
                return 1 + usize::from(rest.get(1) == Some(&b'='));
            }
            b'i' if rest.starts_with(b"in") => {
                self.operator();
                return 2;
            }
            _ => {}
        }
        1
    }

    fn access(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.accesses += 1;
            if level.accesses > level.max_accesses {
                level.max_accesses = level.accesses;
                self.depth += 1;
            }
        }
    }

    fn operator(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.operators += 1;
            level.accesses = 0;
            self.depth += 1;
        }
    }

    /// Ends the chain of the innermost level, and with `conditions` its conditions.
    fn reset(&mut self, conditions: bool) {
        if let Some(level) = self.levels.last_mut() {
            self.depth -= level.depth();
            let kept = if conditions { 0 } else { level.conditions };
            self.conditions -= level.conditions - kept;
            *level = Level {
                conditions: kept,
                ..Level::default()
            };
        }
    }

    fn nesting(&self) -> usize {
        self.levels.len() - 1 + self.conditions
    }

    fn is_too_deep(&self) -> bool {
        let level = self.levels.last();
        let is_long =
            level.is_some_and(|level| level.operators.max(level.max_accesses) >= MAX_CHAIN);
        self.nesting() > MAX_NESTING || is_long || self.depth > MAX_DEPTH
    }
}

/// Returns the length of a string literal, or of the rest of the text if the string does not end.
fn string_length(text: &[u8], is_raw: bool) -> usize {
    let triple = [text[0]; 3];
    let quote: &[u8] = if text.starts_with(&triple) {
        &triple
    } else {
        &triple[..1]
    };
    let mut length = quote.len();
    while length < text.len() {
        if text[length..].starts_with(quote) {
            return length + quote.len();
        }
        let is_escaped = text[length] == b'\\' && !is_raw;
        if text[length] == b'\n' && quote.len() == 1 {
            return length;
        }
        length += 1 + usize::from(is_escaped);
    }
    text.len()
}

/// Returns the count of bytes up to and with the end mark.
fn until(text: &[u8], end: &[u8]) -> usize {
    let found = text.windows(end.len()).position(|window| window == end);
    found.map_or(text.len(), |start| start + end.len())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn chains_and_nesting_are_limited() {
        let chain = |count| format!("a{}", " == a".repeat(count));
        let nested = |count| format!("{}1{}", "[".repeat(count), "]".repeat(count));
        let conditions = |count| format!("{}1", "a ? 1 : ".repeat(count));
        for accepted in [
            chain(249),
            nested(100),
            conditions(100),
            "'((((' + ".repeat(200) + "1",
            vec!["a.b.c.d"; 1000].join(" && "),
            vec!["f([a])"; 1000].join(" || "),
            vec!["a ? b : c"; 100].join(", "),
            format!(r"r'\' + '{}'", "(".repeat(200)),
            format!(r"'\'{}'", "(".repeat(200)),
            format!("\"\"\"'\n{}\"\"\"", "(".repeat(200)),
        ] {
            assert_eq!(check(&accepted), Ok(()));
        }
        for rejected in [
            chain(250),
            nested(101),
            conditions(101),
            format!(
                "{}1{}",
                "(a + a + a + a + a + a + ".repeat(60),
                ")".repeat(60)
            ),
        ] {
            let error = check(&rejected).unwrap_err();
            assert!(error.contains("recursion"), "{error}");
        }
        assert!(
            check(&" ".repeat(100_001))
                .unwrap_err()
                .contains("size: 100001, limit 100000")
        );
    }
}
