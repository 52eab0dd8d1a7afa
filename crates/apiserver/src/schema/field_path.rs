//! Reads the paths of fields in a schema, such as `.spec.ports` or `.metadata['labels']`.
//!
//! Guarantees: tokens, escape sequences and messages are those of `ValidFieldPath` in Kubernetes.

/// Splits a path into delimiters, names and quoted names.
pub(crate) struct Tokens<'a>(pub(crate) &'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.0.as_bytes();
        let first = *bytes.first()?;
        let is_delimiter = |byte: u8| matches!(byte, b'.' | b'[' | b']');
        let end = match first {
            b'\'' => {
                let closes = |at: &usize| bytes[*at] == b'\'' && bytes[*at - 1] != b'\\';
                (1..bytes.len()).find(closes).map(|at| at + 1)
            }
            first if is_delimiter(first) => Some(1),
            _ => bytes.iter().position(|byte| is_delimiter(*byte)),
        };
        let (token, rest) = self.0.split_at(end.unwrap_or(bytes.len()));
        self.0 = rest;
        Some(token)
    }
}

/// Returns the name in single quotes, or why it is invalid.
pub(crate) fn unquoted(token: &str) -> Result<String, String> {
    let inner = token
        .strip_prefix('\'')
        .and_then(|inner| inner.strip_suffix('\''));
    let Some(inner) = inner else {
        return Err(format!("expected single quoted string but got {token}"));
    };
    let mut name = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        // A backslash at the end, or before a line break, stands for itself.
        let escaped = match letter {
            '\\' => letters.clone().next().filter(|next| *next != '\n'),
            _ => None,
        };
        let Some(escaped) = escaped else {
            name.push(letter);
            continue;
        };
        letters.next();
        name.push(match escaped {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\'' | '\\' => escaped,
            other => {
                return Err(format!(
                    "invalid string literal: invalid escape char \\{other}"
                ));
            }
        });
    }
    Ok(name)
}
