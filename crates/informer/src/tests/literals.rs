//! Finds the string literals in Rust code, each with the code before and after the literal.
//!
//! The module reads text, not syntax trees. It recognizes comments, character literals and raw strings, and
//! does not expand macros.

/// A string literal in Rust code, with its unescaped content in `text`.
#[derive(Debug)]
pub(super) struct Literal {
    pub(super) text: String,
    /// Name of the `tracing` macro that has the literal as an argument.
    pub(super) log: Option<String>,
    /// About 400 bytes of code before the literal.
    before: String,
    /// Up to 40 characters of code after the literal.
    after: String,
}

impl Literal {
    /// Returns whether the literal is the last argument of a `tracing` macro, which is the log message.
    pub(super) fn is_message(&self) -> bool {
        self.log.is_some() && self.after.trim_start().starts_with(')') && !self.is_field()
    }

    fn is_field(&self) -> bool {
        self.before.ends_with("= ")
    }

    /// Returns whether the literal belongs to an attribute, a panic or an assertion.
    pub(super) fn is_for_programmers(&self) -> bool {
        let statement = self.before.rsplit([';', '{', '}']).next();
        let before = self.before.trim_end();
        let attributes = ["reason =", "must_use =", "doc =", "deprecated(note ="];
        let panics = ["expect(", "panic!(", "unreachable!("];
        let mut starts = attributes.iter().chain(&panics);
        starts.any(|start| before.ends_with(start))
            || statement.is_some_and(|statement| statement.contains("assert"))
    }
}

/// Returns the string literals in `code`, in the order in which they appear.
pub(super) fn literals(code: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        at += match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '\'' => character(rest),
            'r' if rest.starts_with("r\"") || rest.starts_with("r#\"") => {
                let hashes = if rest.starts_with("r#") { "#" } else { "" };
                let begins = hashes.len() + 2;
                let length = rest[begins..].find(&format!("\"{hashes}")).unwrap();
                found.push(literal(
                    code,
                    at,
                    &rest[begins..begins + length],
                    begins + length + 1,
                ));
                begins + length + 1 + hashes.len()
            }
            '"' => {
                let length = quoted(rest);
                let text = unescaped(&rest[1..length - 1]);
                found.push(literal(code, at, &text, length));
                length
            }
            other => other.len_utf8(),
        };
    }
    found
}

/// Returns the length in bytes of the leading character literal, or 1 for a lifetime.
fn character(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    let is_escape = rest.starts_with("'\\");
    let skipped = if is_escape { 2 } else { 1 };
    match characters.nth(skipped) {
        Some((at, '\'')) => at + 1,
        _ if is_escape => 1 + rest[1..].find('\'').unwrap() + 1,
        _ => 1,
    }
}

/// Returns the length in bytes of the leading string literal, including its quotes.
fn quoted(rest: &str) -> usize {
    let mut is_escaped = false;
    let end = rest[1..].find(|character| match character {
        _ if is_escaped => {
            is_escaped = false;
            false
        }
        '\\' => {
            is_escaped = true;
            false
        }
        other => other == '"',
    });
    end.unwrap() + 2
}

/// Returns `text` with each `\"` replaced by `"`, and each line that ends with `\` joined to the next line.
fn unescaped(text: &str) -> String {
    let lines: Vec<_> = text.split("\\\n").collect();
    let continued = lines.iter().skip(1).map(|line| line.trim_start());
    let text: String = lines.iter().copied().take(1).chain(continued).collect();
    text.replace("\\\"", "\"")
}

fn literal(code: &str, at: usize, text: &str, length: usize) -> Literal {
    let begin = (0..=at.saturating_sub(400))
        .rev()
        .find(|&from| code.is_char_boundary(from));
    let before = &code[begin.unwrap_or_default()..at];
    let log = before.rfind("tracing::").and_then(|from| {
        let (name, arguments) = before[from + "tracing::".len()..].split_once("!(")?;
        let is_open = arguments.matches('(').count() >= arguments.matches(')').count();
        (is_open && !arguments.contains(';')).then(|| name.to_owned())
    });
    let end = (at + length).min(code.len());
    let mut after = code[end..].trim_start().trim_start_matches(',').chars();
    Literal {
        text: text.to_owned(),
        log,
        before: before.to_owned(),
        after: after.by_ref().take(40).collect(),
    }
}
