//! Names of properties as CEL identifiers.

/// The words that the CEL grammar reserves.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The parts of a name that an identifier can't contain, and their escaped forms.
const ESCAPED: [(&str, &str); 4] = [
    ("__", "__underscores__"),
    (".", "__dot__"),
    ("-", "__dash__"),
    ("/", "__slash__"),
];

/// Returns whether the CEL grammar reserves a word.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Returns a property's name as an identifier, or `None` if rules can't access the property.
pub(super) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut identifier = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        if let Some((part, escaped)) = ESCAPED.iter().find(|(part, _)| rest.starts_with(part)) {
            identifier.push_str(escaped);
            rest = &rest[part.len()..];
        } else if letter.is_ascii_alphanumeric() || letter == '_' {
            identifier.push(letter);
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    Some(identifier)
}

/// Returns the property's name of an identifier, or `None` if the identifier has an unknown escape sequence.
pub(super) fn unescape(identifier: &str) -> Option<String> {
    let mut name = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(start) = rest.find("__") {
        // The sequence starts at the last pair of underscores before its contents.
        let contents_start =
            start + rest[start..].len() - rest[start..].trim_start_matches('_').len();
        let contents = &rest[contents_start..];
        let Some(length) = contents.find('_') else {
            break;
        };
        let is_closed = contents[length..].starts_with("__");
        if length == 0 || !is_closed {
            name.push_str(&rest[..contents_start + length]);
            rest = &contents[length..];
            continue;
        }
        name.push_str(&rest[..contents_start - 2]);
        let word = &contents[..length];
        let escaped = ESCAPED
            .iter()
            .find(|(_, escaped)| &escaped[2..escaped.len() - 2] == word);
        match escaped {
            Some((part, _)) => name.push_str(part),
            None if is_reserved(word) && word.len() + 4 == identifier.len() => {
                name.push_str(word);
            }
            None => return None,
        }
        rest = &contents[length + 2..];
    }
    name.push_str(rest);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};

    #[test]
    fn names_survive_escaping() {
        for (name, identifier) in [
            ("a", "a"),
            ("_a_", "_a_"),
            ("if", "__if__"),
            ("a-b", "a__dash__b"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("__", "__underscores__"),
            ("___", "__underscores___"),
            ("_", "_"),
            ("iffy", "iffy"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(identifier));
            assert_eq!(unescape(identifier).as_deref(), Some(name), "{identifier}");
        }
    }

    #[test]
    fn names_without_an_identifier_are_rejected() {
        for name in ["", "1a", "a b", "a@b", "ä"] {
            assert_eq!(escape(name), None);
        }
        for identifier in ["__unknown__", "a__if__", "__if__a"] {
            assert_eq!(unescape(identifier), None);
        }
    }
}
