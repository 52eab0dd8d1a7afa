//! Limits on the input that the library accepts from servers, proxies and saved stores.
//!
//! Guarantees: input that exceeds a limit is rejected with an error that names the limit, unless the comment
//! of the limit states another effect. The informer handles this error like any other error of a list or
//! watch.
//!
#![doc = include_str!("../limits.md")]

use std::time::Duration;

/// Configurable limits on the objects, lists and watches that an informer accepts from a server.
///
/// The defaults are far above the sizes of real clusters. A program that knows the size of its cluster can
/// set lower limits. These reduce the memory that the program uses if the server is faulty.
///
/// ```
/// use kube_informer::limits::Limits;
///
/// let limits = Limits { objects: 50_000, list_bytes: 1 << 30, ..Limits::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length in bytes of one object of a list or one event of a watch, in JSON or protobuf.
    ///
    /// The default is 16 MiB.
    ///
    /// A list or watch with a larger object fails. 16 MiB is about five times the largest request that an API
    /// server accepts (3 MiB).
    pub object_bytes: usize,
    /// Maximum number of objects of one source, which is one list and watch. The default of 5,000,000 is ten
    /// times the number of objects of one kind in the largest clusters.
    ///
    /// A list or streaming list with more objects fails. For a watch, the limit is not exact. A watch fails
    /// when it receives a new object and the cache already contains more objects of the source than the
    /// limit. Received objects that are not in the cache yet are not counted.
    pub objects: usize,
    /// Maximum size in bytes of one list, with all its pages. The default is 16 GiB. The limit also applies
    /// to a streaming list.
    ///
    /// 16 GiB is twice the maximum size that etcd suggests for its database (8 GiB), because JSON is longer
    /// than etcd's format.
    pub list_bytes: u64,
    /// Maximum number of pages of one list. The default is 100,000. With the default page size of 500, a list
    /// of 5,000,000 objects, the default maximum, has only 10,000 pages.
    pub list_pages: u32,
    /// Maximum time from the first request of a list to the last byte of its last page. The default is 30
    /// minutes.
    ///
    /// The limit also applies to a streaming list. The default is far above the limits of API servers. An API
    /// server ends each request after one minute, and rejects the continue token of a paged list after at
    /// most ten minutes. [`Duration::MAX`] disables the limit.
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

/// Maximum size in bytes of a list without its items: the fields `metadata`, `kind` and `apiVersion`.
///
/// The longest value in these fields is the continue token in `metadata`, which has a few hundred bytes.
pub const LIST_ENVELOPE_BYTES: usize = 1 << 20;

/// Maximum length in bytes of the continue token that a server sends with a page: 8 KiB.
///
/// The client sends the token in a URL. 8 KiB is the maximum length of a URL that common proxies accept, for
/// example nginx by its option `large_client_header_buffers`.
pub const CONTINUE_TOKEN_BYTES: usize = 8 << 10;

/// Maximum length in bytes of an object's name, and also of an object's namespace.
///
/// Most kinds allow 253 bytes (RFC 1123). Names of RBAC kinds may be longer.
pub const NAME_BYTES: usize = 1 << 10;

/// Maximum length in bytes of a resource version. Resource versions from etcd have at most 20 digits.
pub const REVISION_BYTES: usize = 256;

/// Maximum nesting depth of arrays and maps in an object, the same as in `serde_json`.
///
/// Fields that the object's type ignores may have deeper nesting, because skipping them uses no stack.
pub const DEPTH: usize = 127;

/// Maximum number of arrays and maps in one object, or in one discovery response.
///
/// A value of etcd's maximum size (1.5 MiB) can contain about this many empty arrays and maps. A discovery
/// response with 30,000 kinds also contains about this many.
///
/// The limit bounds the memory of a decoded object, because an empty map in JSON may be decoded to a large
/// struct. For example, each `{}` in a pod's list of containers uses 2,144 bytes.
pub const PARTS: usize = 500_000;

/// Maximum number of bytes that are read from the body of an error response, or from the `Status` in a
/// watch's error event. Typical bodies have a few hundred bytes.
pub const ERROR_BODY_BYTES: usize = 64 << 10;

/// Maximum length in bytes of an error or panic message that contains text from a server, from an object, or
/// from a function that the library's user supplied. Longer messages are truncated.
pub const MESSAGE_BYTES: usize = 1 << 10;

/// Maximum size in bytes of one discovery response. A discovery response with a thousand kinds has about one
/// MiB.
pub const DISCOVERY_BYTES: usize = 32 << 20;

/// Maximum time for which a list waits for the start of a response, or for more bytes of a response. After
/// this time, the list fails.
///
/// API servers end every request except a watch after one minute (`--request-timeout`).
pub const LIST_STALL: Duration = Duration::from_secs(60);

/// Maximum time for which a watch stays open after its requested timeout. After this time, the watch fails.
/// Each complete event after the requested timeout restarts this time.
///
/// A server ends a watch at the requested timeout. If the watch remains open, the connection was probably
/// lost.
pub const WATCH_GRACE: Duration = Duration::from_secs(30);

/// Maximum delay of a retry that a server can request with the header `Retry-After`. A longer delay is
/// reduced to this value.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// Maximum size in bytes of the server's response to the request for the namespace `kube-system`.
///
/// An informer that saves its cache identifies the cluster by the uid of this namespace. The value is above
/// etcd's limit for one stored object (1.5 MiB).
pub const NAMESPACE_BYTES: usize = 2 << 20;

/// Maximum length in bytes of one line of a saved store. Each object is one line.
///
/// The value is about five times the largest request that an API server accepts (3 MiB).
pub const SAVED_LINE_BYTES: u64 = 16 << 20;

/// Maximum size in bytes of the file of a saved store. The value is about ten times the size of 100,000
/// objects of 4 KiB each.
pub const SAVED_FILE_BYTES: u64 = 4 << 30;

/// Maximum number of objects in a saved store. Without this limit, a file of many small objects could use too
/// much memory.
///
/// The value is ten times the number of objects of one kind in the largest clusters.
pub const SAVED_OBJECTS: usize = 5_000_000;

/// Returns whether a server's text has at most `bytes` bytes and no control characters.
///
/// The library prints accepted texts in logs and on terminals.
pub(crate) fn is_fit(text: &str, bytes: usize) -> bool {
    text.len() <= bytes && !text.contains(char::is_control)
}

/// Converts a text to one line for logs and errors: control characters become spaces.
///
/// If the text is longer than `bytes` bytes, it is truncated to at most `bytes` bytes, and `…` is appended.
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
