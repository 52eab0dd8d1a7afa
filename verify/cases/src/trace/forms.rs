//! Recognizes values inside texts by their form: UUIDs, times and ages.

/// Maximum length, in characters, of a text that the trace contains unshortened.
const TEXT: usize = 1000;

/// Maximum length of a time, in characters. A time with nanoseconds has this length.
const TIME: usize = 30;

/// Returns the parts of `text` that have the form of a UUID, such as
/// `0b8f6a2e-5f0c-4a57-9d4e-6f1d2c3b4a59`.
pub(super) fn uuids(text: &str) -> impl Iterator<Item = &str> {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let words = text.split(|letter: char| !letter.is_ascii_hexdigit() && letter != '-');
    words.filter(|word| {
        let lengths = word.split('-').map(str::len);
        lengths.eq(LENGTHS)
    })
}

/// Shortens a text that is longer than [`TEXT`] to its start and its length.
pub(super) fn shortened(text: String) -> String {
    let length = text.chars().count();
    if length <= TEXT {
        return text;
    }
    let start: String = text.chars().take(TEXT / 10).collect();
    format!("{start}… <{length} characters>")
}

/// Replaces each time in UTC, such as `2026-01-31T12:00:00Z`, by `<time>`.
pub(super) fn without_times(text: &str) -> String {
    let mut result = String::new();
    for part in text.split_inclusive('Z') {
        let starts = part.char_indices().rev().map(|(at, _)| at);
        match starts.take(TIME).find(|at| is_time(&part[*at..])) {
            Some(at) => {
                result.push_str(&part[..at]);
                result.push_str("<time>");
            }
            None => result.push_str(part),
        }
    }
    result
}

/// Returns whether `text` is a time in UTC.
fn is_time(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect();
    let Some(rest) = shape.strip_prefix("0000-00-00T00:00:00") else {
        return false;
    };
    rest == "Z"
        || (rest.starts_with('.')
            && rest.ends_with('Z')
            && rest.trim_matches(['.', '0', 'Z']).is_empty())
}

/// Returns whether `text` is an age in a table, such as `5s` or `2m10s`.
pub(super) fn is_age(text: &str) -> bool {
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    text.starts_with(|letter: char| letter.is_ascii_digit())
        && (matches!(unit, "s" | "m" | "h" | "d") || unit.strip_prefix('m').is_some_and(is_age))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened_and_times_inside_a_text_are_renamed() {
        assert_eq!(
            shortened("x".repeat(1001)),
            format!("{}… <1001 characters>", "x".repeat(100))
        );
        assert_eq!(
            without_times("Zone {\"t\": \"2026-01-31T12:00:00Z\"} Z 2026-01-31T12:00:00.5Z"),
            "Zone {\"t\": \"<time>\"} Z <time>"
        );
    }

    #[test]
    fn times_have_every_precision() {
        for text in ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456Z"] {
            assert!(is_time(text), "{text}");
        }
        for text in ["2026-01-31", "2026-01-31T12:00:00+01:00", "12:00"] {
            assert!(!is_time(text), "{text}");
        }
        for (text, is) in [
            ("5s", true),
            ("2m10s", true),
            ("1/1", false),
            ("s", false),
            ("10", false),
        ] {
            assert_eq!(is_age(text), is, "{text}");
        }
    }
}
