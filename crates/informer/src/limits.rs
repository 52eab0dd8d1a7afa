//! Limits on what a server, a proxy, or the author of a saved store may send.
//!
//! Guarantees: input beyond a limit is rejected with an error that names the limit, and the informer
//! continues as after any other failure. Each limit documents where its number comes from.
//!
#![doc = include_str!("../limits.md")]

use std::time::Duration;

/// Limits on how much of one collection a server may send.
///
/// The defaults are far above what clusters use. A program that knows its cluster is safer with lower values.
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
    /// An API server accepts requests up to 3 MiB and etcd values up to 1.5 MiB; their JSON is at most a few
    /// times as long. A list or a watch with a larger object fails.
    pub object_bytes: usize,
    /// Maximum objects of one source: 5,000,000, ten times the largest clusters' number for one kind.
    ///
    /// A list or a streaming list with more objects fails. A watch fails at a new object when the cache
    /// already holds this many from the source. Objects on their way to the cache are not counted.
    pub objects: usize,
    /// Maximum bytes of one list with all its pages, or of one streaming list: 16 GiB.
    ///
    /// This is twice etcd's suggested maximum size (8 GiB), because JSON is longer than etcd's format.
    pub list_bytes: u64,
    /// Maximum pages of one list: 100,000. With the default page size of 500, the maximum number of objects
    /// needs 10,000.
    pub list_pages: u32,
    /// Maximum time from the first request of a list to the last byte of its last page: 30 min.
    ///
    /// It also limits a streaming list. An API server ends a request after one minute, and compacts the
    /// revision of a paged list within ten minutes. [`Duration::MAX`] disables the limit.
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

/// Maximum bytes of a list's own fields (`metadata`, `kind`, `apiVersion`). The longest of them, a continue
/// token, has a few hundred bytes.
pub const LIST_ENVELOPE_BYTES: usize = 1 << 20;

/// Maximum bytes of a continue token. It is part of a URL, and proxies accept URLs of this size
/// (`large_client_header_buffers` of nginx).
pub const CONTINUE_TOKEN_BYTES: usize = 8 << 10;

/// Maximum bytes of a name, and of a namespace. Most kinds allow 253 (RFC 1123); names of RBAC kinds may be
/// longer.
pub const NAME_BYTES: usize = 1 << 10;

/// Maximum bytes of a resource version. Those of etcd have at most 20 digits.
pub const REVISION_BYTES: usize = 256;

/// Maximum nesting of arrays and maps in an object, the same as in `serde_json`. Deeper values are accepted
/// in fields that the type ignores; skipping them uses no stack.
pub const DEPTH: usize = 127;

/// Maximum arrays and maps in one object, or in one discovery response.
///
/// About as many empty ones fit into etcd's largest value (1.5 MiB); discovery of 30,000 kinds needs as many.
/// The limit bounds the memory of an object beyond its JSON, because an empty map takes as much memory as a
/// full one: each `{}` in a pod's list of containers takes 2,144 bytes.
pub const PARTS: usize = 500_000;

/// Maximum bytes read of an error response's body, and of the `Status` that ends a watch. Usual ones have a
/// few hundred.
pub const ERROR_BODY_BYTES: usize = 64 << 10;

/// Maximum bytes of an error message from a server or about an object; longer texts are truncated.
pub const MESSAGE_BYTES: usize = 1 << 10;

/// Maximum bytes of each discovery response. A thousand kinds take one MiB.
pub const DISCOVERY_BYTES: usize = 32 << 20;

/// Maximum time without a response or a byte of a list before the list fails. The API server itself ends
/// every request except a watch after one minute (`--request-timeout`).
pub const LIST_STALL: Duration = Duration::from_secs(60);

/// Maximum silence of a watch that is open beyond its requested time-out.
///
/// A server ends a watch at the time-out. A watch that is still open has lost its connection unnoticed, or
/// the server misbehaves. Bytes that never complete an event do not end the silence.
pub const WATCH_GRACE: Duration = Duration::from_secs(30);

/// Maximum pause that a server can request with `Retry-After`; a longer pause is shortened to this.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// Maximum bytes of the namespace `kube-system`, whose uid a warm start reads; etcd accepts 1.5 MiB.
pub const NAMESPACE_BYTES: usize = 2 << 20;

/// Maximum bytes of one line of a saved store, which is one object: five times the largest request that an
/// API server accepts (3 MiB).
pub const SAVED_LINE_BYTES: u64 = 16 << 20;

/// Maximum bytes of a saved store: ten times 100,000 objects of 4 KiB.
pub const SAVED_FILE_BYTES: u64 = 4 << 30;

/// Maximum objects of a saved store: ten times the largest clusters' number for one kind. It bounds the
/// memory for a file of empty objects.
pub const SAVED_OBJECTS: usize = 5_000_000;

/// Whether a text from a server is valid as a name or a revision: it is sent back in requests, and printed in
/// logs and on terminals.
pub(crate) fn is_fit(text: &str, bytes: usize) -> bool {
    text.len() <= bytes && !text.contains(char::is_control)
}

/// Makes a peer's text one line for logs, errors and terminals: replaces control characters with spaces, and
/// truncates it at `bytes`.
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
