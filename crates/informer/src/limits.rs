//! Limits on the input that the library accepts from a server, a proxy, or the author of a saved store.
//!
//! Guarantees: input beyond a limit is rejected with an error that names the limit, and the informer
//! continues as after any other failure. The comment of each limit gives the reason for its value.
//!
#![doc = include_str!("../limits.md")]

use std::time::Duration;

/// Limits on how much of one collection of objects a server may send.
///
/// The defaults are far above what clusters use. For a program with a known cluster, lower values are safer.
///
/// ```
/// use kube_informer::limits::Limits;
///
/// let limits = Limits { objects: 50_000, list_bytes: 1 << 30, ..Limits::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum JSON bytes of one object of a list, or of one event of a watch: 16 MiB.
    ///
    /// An API server accepts requests up to 3 MiB and etcd values up to 1.5 MiB; the JSON of such an object
    /// is at most a few times as long. A list or a watch with a larger object fails.
    pub object_bytes: usize,
    /// Maximum number of objects of one source, which is one list and watch: 5,000,000, ten times the number
    /// of objects of one kind in the largest clusters.
    ///
    /// A list or a streaming list with more objects fails. A watch fails at a new object when the cache
    /// already holds this many objects from the source. Objects that are not in the cache yet are not
    /// counted.
    pub objects: usize,
    /// Maximum bytes of one list with all its pages, or of one streaming list: 16 GiB.
    ///
    /// The default is twice etcd's suggested maximum size (8 GiB), because JSON is longer than etcd's format.
    pub list_bytes: u64,
    /// Maximum number of pages of one list: 100,000. With the default page size of 500, a list with the
    /// maximum number of objects has 10,000 pages.
    pub list_pages: u32,
    /// Maximum time from the first request of a list to the last byte of its last page: 30 min.
    ///
    /// The limit also applies to a streaming list. An API server ends a request after one minute, and
    /// compacts the revision of a paged list within ten minutes. [`Duration::MAX`] disables the limit.
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

/// Maximum bytes of a list's fields besides its items (`metadata`, `kind`, `apiVersion`). The longest of
/// them, a continue token, has a few hundred bytes.
pub const LIST_ENVELOPE_BYTES: usize = 1 << 20;

/// Maximum bytes of the continue token that a server sends with a page. The token is part of a URL, and
/// proxies accept URLs of this size (`large_client_header_buffers` of nginx).
pub const CONTINUE_TOKEN_BYTES: usize = 8 << 10;

/// Maximum bytes of an object's name, and of its namespace. Most kinds allow 253 (RFC 1123); names of RBAC
/// kinds may be longer.
pub const NAME_BYTES: usize = 1 << 10;

/// Maximum bytes of a resource version. Resource versions from etcd have at most 20 digits.
pub const REVISION_BYTES: usize = 256;

/// Maximum nesting of arrays and maps in an object, the same as in `serde_json`. Deeper values are accepted
/// in fields that the type ignores; skipping them uses no stack.
pub const DEPTH: usize = 127;

/// Maximum number of arrays and maps in one object, or in one discovery response.
///
/// About as many empty arrays and maps fit into etcd's largest value (1.5 MiB); discovery of 30,000 kinds
/// needs as many. The limit bounds the memory of an object beyond its JSON, because an empty map can take as
/// much memory as a full one: each `{}` in a pod's list of containers takes 2,144 bytes.
pub const PARTS: usize = 500_000;

/// Maximum bytes that are read of the body of an error response, and of the `Status` that ends a watch. Usual
/// ones have a few hundred bytes.
pub const ERROR_BODY_BYTES: usize = 64 << 10;

/// Maximum bytes of an error message from a server or about an object; longer texts are truncated.
pub const MESSAGE_BYTES: usize = 1 << 10;

/// Maximum bytes of each discovery response. A response with a thousand kinds has one MiB.
pub const DISCOVERY_BYTES: usize = 32 << 20;

/// Maximum time that a list waits for the response or for the next bytes before it fails. The API server
/// itself ends every request except a watch after one minute (`--request-timeout`).
pub const LIST_STALL: Duration = Duration::from_secs(60);

/// Maximum time without an event of a watch that is open beyond its requested time-out.
///
/// A server ends a watch at the time-out. If a watch is still open after it, its connection was lost
/// unnoticed, or the server misbehaves. Bytes that do not complete an event do not count as an event.
pub const WATCH_GRACE: Duration = Duration::from_secs(30);

/// Maximum pause before a retry that a server can request with `Retry-After`; a longer pause is shortened to
/// this.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// Maximum bytes of the response with the namespace `kube-system`, whose uid a warm start reads; etcd accepts
/// values up to 1.5 MiB.
pub const NAMESPACE_BYTES: usize = 2 << 20;

/// Maximum bytes of one line of a saved store; a line is one object. This is five times the largest request
/// that an API server accepts (3 MiB).
pub const SAVED_LINE_BYTES: u64 = 16 << 20;

/// Maximum bytes of the file of a saved store: ten times the size of 100,000 objects of 4 KiB.
pub const SAVED_FILE_BYTES: u64 = 4 << 30;

/// Maximum number of objects of a saved store: ten times the number of objects of one kind in the largest
/// clusters. It bounds the memory for a file of empty objects.
pub const SAVED_OBJECTS: usize = 5_000_000;

/// Whether a text from a server is accepted as a name or a revision: it has at most `bytes` bytes and no
/// control characters, because it is sent back in requests, and printed in logs and on terminals.
pub(crate) fn is_fit(text: &str, bytes: usize) -> bool {
    text.len() <= bytes && !text.contains(char::is_control)
}

/// Converts a text from a server or user to one line for logs, errors and terminals: replaces control
/// characters with spaces, and truncates the text at `bytes`.
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
