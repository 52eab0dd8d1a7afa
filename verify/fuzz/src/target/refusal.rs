//! Fuzz target for `Error::from_status_body`, which builds the library's error from an error response.
//!
//! The body can come from an API server or from a proxy. The error's message must be a single line of limited
//! length. If the body is not a JSON object, `Error::class` must depend only on the status code.

use kube_informer::transport::Error;

use crate::planted::Bug;

pub(super) const WORDS: &[&str] = &[
    "{\"kind\":\"Status\"",
    "\"code\":410",
    "\"code\":0",
    "\"code\":-1",
    "\"code\":65536",
    "\"reason\":\"Expired\"",
    "\"reason\":\"Timeout\"",
    "\"reason\":\"TooManyRequests\"",
    "\"message\":\"m\"",
    "\"details\":{\"retryAfterSeconds\":1}",
    "\"details\":null",
    "\"retryAfterSeconds\":18446744073709551615",
    "\"retryAfterSeconds\":-1",
    "\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]",
    "\n",
    "\u{1b}[31m",
    "{",
    "}",
    ",",
];

/// Maximum length in bytes of the library's error message, with the ellipsis of a truncated message.
const MESSAGE_BYTES: usize = 1024 + '…'.len_utf8();

/// Status codes with which each body is tested.
const CODES: [u16; 8] = [400, 401, 403, 404, 410, 429, 500, 503];

pub(super) fn run(data: &[u8], _bug: Option<Bug>) -> String {
    let is_status = data.trim_ascii_start().starts_with(b"{");
    let classes = CODES.map(|code| {
        let error = Error::from_status_body(code, data);
        let message = error.to_string();
        assert!(
            !message.contains(char::is_control),
            "{message:?} is not one line"
        );
        assert!(message.len() <= MESSAGE_BYTES, "{} bytes", message.len());
        assert!(error.retry_after().is_none_or(|pause| !pause.is_zero()));
        let plain = Error::from_status_body(code, b"");
        assert!(
            is_status || error.class() == plain.class(),
            "{code}: {:?}",
            error.class()
        );
        error.class().as_str()
    });
    classes.join(" ")
}
