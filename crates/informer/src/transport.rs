//! Defines [`ListerWatcher`], which requests lists and watches from a server, and [`Response`], a byte stream
//! with a content type.
//!
//! The module does not interpret the bytes of a response. Dropping a future or a stream of this module
//! cancels its request.

mod body;
#[cfg(feature = "client")]
pub mod client;
mod error;
mod list_budget;
mod pager;

pub use self::error::{Class, Error, Retry};
pub(crate) use self::{
    body::Body,
    list_budget::{ListBudget, stalled},
    pager::{AfterPage, Pager},
};

use std::{borrow::Cow, fmt, pin::Pin};

use bytes::Bytes;
use futures_core::{Stream, future::BoxFuture};

use crate::object::ResourceVersion;

/// The body of a response, as a stream of chunks. A chunk may end anywhere, even inside an object.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>;

/// The response to a list or watch request: a body and its content type.
///
/// The conversion from a [`ByteStream`] creates a response with the content type `application/json`.
pub struct Response {
    content_type: Cow<'static, str>,
    body: ByteStream,
}

impl Response {
    /// Creates a response with this `Content-Type`.
    ///
    /// The informer reads a body of the type `application/vnd.kubernetes.protobuf` as protobuf. It rejects a
    /// response of the type `application/cbor` with an error. It reads a body of any other type as JSON.
    pub fn new(content_type: impl Into<Cow<'static, str>>, body: ByteStream) -> Self {
        let content_type = content_type.into();
        Self { content_type, body }
    }

    /// Returns the content type that the server sent.
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// Returns the body as a stream of chunks.
    pub fn into_body(self) -> ByteStream {
        self.body
    }

    /// Replaces the body with the result of `map`, for example with a stream that also records the bytes of
    /// the original body.
    #[must_use]
    pub fn map_body(self, map: impl FnOnce(ByteStream) -> ByteStream) -> Self {
        Self {
            body: map(self.body),
            ..self
        }
    }
}

impl From<ByteStream> for Response {
    fn from(body: ByteStream) -> Self {
        Self::new(JSON, body)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("content_type", &self.content_type)
            .finish_non_exhaustive()
    }
}

/// The content type of a response in JSON.
const JSON: &str = "application/json";

/// Lists and watches one collection of objects: the objects of one kind, in all namespaces or in one
/// namespace.
///
/// Implement this trait to read objects without a Kubernetes client, for example from a file or over another
/// protocol. The body of a response has the format of the Kubernetes API: a list is one JSON object with
/// `items`, and a watch is a sequence of JSON objects `{"type": …, "object": …}`.
///
/// A later event or list must not have a lower revision ([`ResourceVersion`]) than an earlier one. If a list
/// is older than the cache, or an event is older than the cached object, the informer assumes that the server
/// was restored from a backup. The older list replaces the cache. After the older event, the informer lists
/// all objects again. The informer does not compare revisions that are not numbers.
#[doc(alias = "ListWatch")]
pub trait ListerWatcher: Send + Sync + 'static {
    /// Sends a list request, and returns its response: the whole list, or one page of it.
    ///
    /// The future resolves when the response has started, before the body is received. If the server rejects
    /// the request, the result is an error.
    ///
    /// # Cancel safety
    /// Dropping the future, or the body of the response, cancels the request.
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>>;

    /// Sends a list request for a [consistency check](crate::shared_informer::Builder::consistency_check),
    /// which reads only the names, uids and revisions of objects.
    ///
    /// The default implementation calls [`ListerWatcher::list`], which returns all fields of the objects. To
    /// reduce the transferred bytes, an implementation should omit the fields that the check does not read.
    /// An implementation that wraps a [`ListWatch`](client::ListWatch) should call `list_metadata` of the
    /// `ListWatch`.
    ///
    /// # Cancel safety
    /// Dropping the future, or the body of the response, cancels the request.
    fn list_metadata(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.list(options)
    }

    /// Opens a watch that delivers the changes after `options.resource_version`.
    ///
    /// # Cancel safety
    /// Dropping the future, or the body of the response, cancels the request.
    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>>;

    /// Returns whether the `ListerWatcher` supports watches with `sendInitialEvents`.
    ///
    /// A watch with `sendInitialEvents` first delivers all current objects, then a bookmark with the
    /// annotation `k8s.io/initial-events-end: "true"`.
    ///
    /// The default is `false`. The informer then sends LIST requests instead of such watches.
    ///
    /// With `false`, the informer also sends no probes. A probe is a request that checks whether the server
    /// was restored from a backup, for example after a lost connection. Probes use the parameter
    /// `resourceVersionMatch`, which a `ListerWatcher` that returns `false` may ignore.
    ///
    /// An implementation that wraps a [`ListWatch`](client::ListWatch) should call `streams_lists` of the
    /// `ListWatch`.
    #[doc(alias = "IsWatchListSemanticsUnSupported")]
    fn streams_lists(&self) -> bool {
        false
    }

    /// Returns a text that identifies the listed collection of objects.
    ///
    /// The informer saves the text with the cache, and compares it at a [warm start](crate::warm_start).
    /// `ListerWatcher`s of one server that return the same text must list the same objects. With `None`, the
    /// default, the informer neither saves its cache nor loads a saved cache.
    fn collection(&self) -> Option<String> {
        None
    }

    /// Returns a text that identifies the server.
    ///
    /// The informer calls this method only if a [warm start](crate::warm_start) is configured. The text must
    /// be unique to the server, and must not change. With `None`, the default, the informer neither saves its
    /// cache nor loads a saved cache, unless [`SavedStore::server`](crate::warm_start::SavedStore::server)
    /// sets the text.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    fn server(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns the namespace that this `ListerWatcher` lists, for the informer's name and metrics. `None`,
    /// the default, means all namespaces or an unknown namespace.
    fn namespace(&self) -> Option<String> {
        None
    }

    /// Returns a description of the listed objects for logs and errors: a kind, optionally with namespace and
    /// selectors.
    fn description(&self) -> String {
        UNDESCRIBED.to_owned()
    }
}

/// Default of [`ListerWatcher::description`].
pub(crate) const UNDESCRIBED: &str = "objects";

/// The query parameters of one list or watch request, and the encoding of the response.
///
/// `None`, unset and empty values are not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// The parameter `labelSelector`: selects objects by their labels.
    pub label_selector: Option<String>,
    /// The parameter `fieldSelector`: selects objects by their fields.
    pub field_selector: Option<String>,
    /// The parameter `resourceVersion`: the revision at which to list, or after which to watch.
    pub resource_version: ResourceVersion,
    /// The parameter `resourceVersionMatch`: whether a list may be newer than `resourceVersion`.
    pub resource_version_match: Option<ResourceVersionMatch>,
    /// The parameter `limit`: the maximum number of objects per page. Without a limit, a list has one page.
    pub limit: Option<u32>,
    /// The parameter `continue`: the token from the previous page of the list.
    pub continue_token: Option<String>,
    /// The parameter `timeoutSeconds`: the time in seconds after which the server ends a watch.
    pub timeout_seconds: Option<u32>,
    /// The parameter `allowWatchBookmarks`: whether the server may send bookmarks in a watch.
    pub allow_watch_bookmarks: bool,
    /// The parameter `sendInitialEvents`: whether a watch first sends all current objects, as a streaming
    /// list.
    pub send_initial_events: Option<bool>,
    /// The encoding that the response should have. It is not a query parameter. With `None`, the
    /// [`ListerWatcher`] selects the encoding.
    pub encoding: Option<Encoding>,
    /// Other query parameters, such as `shardSelector`, as pairs of name and value. They are sent unchanged.
    pub extra: Vec<(String, String)>,
}

/// Values of the parameter `resourceVersionMatch`: whether a list may be newer than `resourceVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceVersionMatch {
    /// The server returns exactly the state at `resourceVersion`.
    Exact,
    /// The server returns any state that is not older than `resourceVersion`.
    NotOlderThan,
}

impl fmt::Display for ResourceVersionMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "Exact",
            Self::NotOlderThan => "NotOlderThan",
        })
    }
}

/// The encoding of objects, lists and watches in responses of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// JSON, which every server supports for every kind.
    Json,
    /// Protobuf for the built-in kinds of Kubernetes. A server needs less CPU time for protobuf than for
    /// JSON.
    ///
    /// Custom resources have no protobuf encoding, and are always requested in JSON. If a server responds
    /// with JSON although protobuf was requested, or rejects the media type of protobuf, the objects are read
    /// as JSON.
    Protobuf,
}

impl ListOptions {
    /// Returns the name and value of every query parameter to send, in a fixed order. The result does not
    /// include the parameter `watch`, which distinguishes a watch request from a list request.
    pub fn query(&self) -> Vec<(&str, String)> {
        let mut pairs = Vec::new();
        let text = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        let mut put = |name, value: Option<String>| pairs.extend(value.map(|value| (name, value)));
        put("labelSelector", text(&self.label_selector));
        put("fieldSelector", text(&self.field_selector));
        let revision = &self.resource_version;
        put(
            "resourceVersion",
            (!revision.is_unset()).then(|| revision.to_string()),
        );
        put(
            "resourceVersionMatch",
            self.resource_version_match.map(|m| m.to_string()),
        );
        put("limit", self.limit.map(|limit| limit.to_string()));
        put("continue", text(&self.continue_token));
        put(
            "timeoutSeconds",
            self.timeout_seconds.map(|seconds| seconds.to_string()),
        );
        put(
            "allowWatchBookmarks",
            self.allow_watch_bookmarks.then(|| "true".to_owned()),
        );
        put(
            "sendInitialEvents",
            self.send_initial_events.map(|send| send.to_string()),
        );
        pairs.extend(
            self.extra
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone())),
        );
        pairs
    }
}
