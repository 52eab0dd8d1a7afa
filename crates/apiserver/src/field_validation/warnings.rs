//! Collects the warnings for one response, and writes them as `Warning` headers.
//!
//! Guarantees, as in kube-apiserver:
//! - each warning is sent at most once, in the order of first occurrence;
//! - if all warnings together exceed [`TOTAL_MAX`] characters, each warning is truncated to [`ITEM_MAX`]
//!   characters;
//! - truncated warnings are sent until their total length reaches [`TOTAL_MAX`]. The other warnings are
//!   omitted;
//! - a warning that contains a control character is omitted.

use http::header::{HeaderMap, HeaderValue, WARNING};
use parking_lot::Mutex;

/// Total length in characters above which the warnings of a response are truncated.
///
/// The value is `truncateAtTotalRunes` in Kubernetes' `filters/warning.go`.
const TOTAL_MAX: usize = 4 * 1024;

/// Maximum length in characters of each warning if the total length exceeds [`TOTAL_MAX`].
///
/// The value is `truncateItemRunes` in Kubernetes' `filters/warning.go`.
const ITEM_MAX: usize = 256;

/// Warnings for the client, sent in the headers of a successful or failed response.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    pub(crate) fn add(&self, text: String) {
        let mut texts = self.0.lock();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }

    /// Adds the collected warnings to the headers of a response, one `Warning` header per warning.
    ///
    /// Some warnings are truncated or omitted, as the module documentation describes.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let texts = self.0.lock();
        let total: usize = texts.iter().map(|text| text.chars().count()).sum();
        let cuts = total > TOTAL_MAX;
        let mut written = 0;
        for text in texts.iter() {
            if cuts && written >= TOTAL_MAX {
                return;
            }
            let most = if cuts { ITEM_MAX } else { usize::MAX };
            let text: String = text.chars().take(most).collect();
            if text.chars().any(char::is_control) {
                continue;
            }
            written += text.chars().count();
            let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::try_from(format!("299 - \"{quoted}\"")) {
                headers.append(WARNING, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(texts: &[&str]) -> Vec<String> {
        let warnings = Warnings::default();
        for text in texts {
            warnings.add((*text).to_owned());
        }
        let mut headers = HeaderMap::new();
        warnings.write(&mut headers);
        let values = headers.get_all(WARNING).iter();
        values
            .map(|value| String::from_utf8(value.as_bytes().to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn each_text_is_sent_once_with_escaped_quotes() {
        assert_eq!(
            written(&["a \"b\" \\", "ä", "ä", "no\nline"]),
            [r#"299 - "a \"b\" \\""#, "299 - \"ä\""]
        );
    }

    #[test]
    fn texts_are_truncated_only_above_the_total_limit() {
        let long = "x".repeat(TOTAL_MAX);
        assert_eq!(written(&[&long]), [format!("299 - \"{long}\"")]);
        let cut = format!("299 - \"{}\"", &long[..ITEM_MAX]);
        assert_eq!(written(&[&long, "y"]), [cut, "299 - \"y\"".to_owned()]);
        let many: Vec<String> = (0..20).map(|nth| format!("{nth:0300}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(written(&many).len(), TOTAL_MAX / ITEM_MAX);
    }
}
