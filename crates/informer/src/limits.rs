//! What a peer may send, at most: a server, whoever stands between, or who wrote a saved store.
//!
//! Guarantees: whatever comes beyond a limit is refused with an error that names the limit, and an
//! informer goes on as after any other failure. Each number says where it comes from.
//!
#![doc = include_str!("../limits.md")]

use std::time::Duration;

/// How much of one collection a server may send. Every field has a default that no cluster comes near;
/// a program that knows its own is safer with less.
///
/// ```
/// use kube_informer::limits::Limits;
///
/// let limits = Limits { objects: 50_000, list_bytes: 1 << 30, ..Limits::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The JSON of one object of a list, or of one event of a watch, in bytes: 16 MiB. An API server
    /// takes requests up to 3 MiB and etcd values up to 1.5 MiB, and as JSON that is a few times as long
    /// at most. Beyond it the list, or the watch, has failed.
    pub object_bytes: usize,
    /// Objects of one source: 5,000,000, ten times what the largest clusters have of a kind. A list or a
    /// streaming list with more of them fails; so does a watch that tells of one that the cache does not
    /// have, when that has more of the source. What is on its way to the cache then comes in addition.
    pub objects: usize,
    /// The bytes of one list with all its pages, or of one streaming list: 16 GiB, twice what etcd is
    /// advised to hold altogether (8 GiB), for JSON is longer than what etcd holds.
    pub list_bytes: u64,
    /// Pages of one list: 100,000, of which 10,000 make the most objects in the usual pages of 500.
    pub list_pages: u32,
    /// From the first request of a list to the last byte of its last page, and the same of a streaming
    /// list: 30 min. An API server ends a request after a minute, and forgets the revision that pages
    /// are of within ten minutes. [`Duration::MAX`] means that there is no limit.
    pub list_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            object_bytes: 16 << 20,
            objects: 5_000_000,
            list_bytes: 16 << 30,
            list_pages: 100_000,
            list_time: Duration::from_secs(30 * 60),
        }
    }
}

/// What a list says of itself (`metadata`, `kind`, `apiVersion`), in bytes. A continue token, the longest
/// of it, is a few hundred bytes.
pub const LIST_ENVELOPE_BYTES: usize = 1 << 20;

/// A continue token, in bytes: it is sent back as part of a URL, of which proxies take so much
/// (`large_client_header_buffers` of nginx).
pub const CONTINUE_TOKEN_BYTES: usize = 8 << 10;

/// A name, and a namespace, in bytes. Most kinds have 253 at most (RFC 1123); those of access rules may
/// be longer.
pub const NAME_BYTES: usize = 1 << 10;

/// A resource version, in bytes. Those of etcd have 20 digits at most.
pub const REVISION_BYTES: usize = 256;

/// How many arrays and maps of an object may stand inside each other, as `serde_json` has it. What is
/// deeper is skipped where nobody reads it, without a stack.
pub const DEPTH: usize = 127;

/// How many arrays and maps an object may consist of, or an answer to discovery: as many empty ones as
/// the largest value of etcd (1.5 MiB) has room for, about, and those of 30,000 kinds. It bounds what an
/// object takes beyond its bytes, for an empty map takes as much room as a full one: each `{}` in a pod's
/// list of containers 2,144 bytes.
pub const PARTS: usize = 500_000;

/// The body of a refusal, in bytes, of which no more is read, and the `Status` that ends a watch, which is
/// not read beyond it; one takes a few hundred.
pub const ERROR_BODY_BYTES: usize = 64 << 10;

/// What a server says went wrong, and what of an object is wrong, in bytes; longer texts are cut.
pub const MESSAGE_BYTES: usize = 1 << 10;

/// Each answer to discovery, in bytes. A thousand kinds take one MiB.
pub const DISCOVERY_BYTES: usize = 32 << 20;

/// No byte of a list, or no answer at all, for so long, and it has stalled. The API server itself ends
/// every request but a watch after a minute (`--request-timeout`).
pub const LIST_STALL: Duration = Duration::from_secs(60);

/// A server ends a watch after the time-out that it was asked for. One that is still open so much later,
/// and has told nothing for as long, has lost its connection without anybody noticing, or means to be
/// waited for; bytes that never become an event don't count.
pub const WATCH_GRACE: Duration = Duration::from_secs(30);

/// A server that asks for a longer pause (`Retry-After`) is not obeyed: nobody may silence an informer.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// The namespace `kube-system`, whose uid a warm start asks for, in bytes; etcd takes 1.5 MiB.
pub const NAMESPACE_BYTES: usize = 2 << 20;

/// One line of a saved store, which is one object, in bytes: five times the largest object that an API
/// server takes (3 MiB).
pub const SAVED_LINE_BYTES: u64 = 16 << 20;

/// A saved store, in bytes: ten times 100,000 objects of 4 KiB.
pub const SAVED_FILE_BYTES: u64 = 4 << 30;

/// Objects of a saved store: ten times what the largest clusters have of a kind. It bounds what a file
/// of nothing but empty objects costs.
pub const SAVED_OBJECTS: usize = 5_000_000;

/// Whether a server may choose this text as a name or a revision: it is sent back, and shown in logs and on
/// terminals.
pub(crate) fn is_fit(text: &str, bytes: usize) -> bool {
    text.len() <= bytes && !text.contains(char::is_control)
}

/// A text for logs, errors and terminals, where a peer must not begin a line of its own: its control
/// characters are spaces, and it is cut at so many bytes.
pub(crate) fn one_line(text: &str, bytes: usize) -> String {
    let mut ends = (0..=bytes.min(text.len())).rev();
    let end = ends.find(|&end| text.is_char_boundary(end));
    let shown = &text[..end.unwrap_or_default()];
    let mut line = shown.replace(char::is_control, " ");
    if shown.len() < text.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests;
