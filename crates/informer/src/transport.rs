//! The only way in for bytes: [`ListerWatcher`] requests a list or a watch, and the [`Response`] is a stream of bytes
//! with a content type. What the bytes mean is the codec's concern.
//!
//! Dropping a future or a stream of this module cancels its request.

mod body;
#[cfg(feature = "client")]
pub mod client;
mod error;
mod list_budget;
mod pager;

pub use self::error::{Class, Error, Retry};
pub(crate) use self::{
    body::Body,
    list_budget::ListBudget,
    pager::{AfterPage, Pager},
};

use std::{borrow::Cow, fmt, pin::Pin};

use bytes::Bytes;
use futures_core::{Stream, future::BoxFuture};

use crate::object::ResourceVersion;

/// The body of a response. Chunks may end anywhere, also inside an object.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>;

/// The response to a list or a watch: its body, and the content type of that.
///
/// A [`ByteStream`] becomes one of JSON by `into()`.
pub struct Response {
    content_type: Cow<'static, str>,
    body: ByteStream,
}

impl Response {
    /// A response with this `Content-Type`. The informer reads JSON; it fails the request if the content type is
    /// that of another encoding of the Kubernetes API, and tries to read everything else as JSON.
    pub fn new(content_type: impl Into<Cow<'static, str>>, body: ByteStream) -> Self {
        let content_type = content_type.into();
        Self { content_type, body }
    }

    /// The content type that the server gave.
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// The body.
    pub fn into_body(self) -> ByteStream {
        self.body
    }

    /// The same response with another body, for a source that reads along with another one.
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

/// The content type of JSON.
const JSON: &str = "application/json";

/// Lists and watches one collection of objects: one kind, everywhere or in one namespace.
///
/// Implement it to bring objects from elsewhere than a Kubernetes client: a file, another
/// protocol, a proxy. The bytes are those of the Kubernetes API: a list is one JSON object with
/// `items`, a watch is a sequence of JSON objects `{"type": …, "object": …}`.
///
/// Revisions must grow, as those of a server do: what is told later, in a watch or in the next list,
/// has a revision that is not older. A list that is older than what was told before, or an event of a
/// watch that is, is taken for a server that was put back, and everything is listed anew. Revisions that
/// are no numbers have no order and are not compared; then nothing of that is noticed.
#[doc(alias = "ListWatch")]
pub trait ListerWatcher: Send + Sync + 'static {
    /// Asks for a list, or for one page of it.
    ///
    /// The future resolves when the server has accepted the request; a refusal is its `Err`.
    ///
    /// # Cancel safety
    /// Dropping the future or the stream cancels the request. Nothing is kept.
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>>;

    /// Asks for a list of which nobody reads more than the metadata of its objects: names, uids and
    /// revisions, for a [consistency check](crate::shared_informer::Builder::consistency_check).
    ///
    /// By default that is [`ListerWatcher::list`], which is always right. A source that can leave out
    /// the rest saves sending it; one that passes requests on to a [`ListWatch`](client::ListWatch)
    /// passes this on too.
    ///
    /// # Cancel safety
    /// As for [`ListerWatcher::list`].
    fn list_metadata(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.list(options)
    }

    /// Opens a watch from `options.resource_version`.
    ///
    /// # Cancel safety
    /// As for [`ListerWatcher::list`].
    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>>;

    /// Whether a watch with `sendInitialEvents` may be asked for: it tells of everything there is, and
    /// then sends a bookmark with the annotation `k8s.io/initial-events-end: "true"`.
    ///
    /// By default not, as a source of one's own may not know of it; everything is listed then. Nor is
    /// such a source asked for one object that is "not older than" the last revision after a connection
    /// was lost, for it may pass over that too. So a server behind it that was restored from a backup is
    /// noticed only by a list, or by an event that is older than the object in the cache.
    ///
    /// One that passes requests on to a [`ListWatch`](client::ListWatch) passes this on too.
    #[doc(alias = "IsWatchListSemanticsUnSupported")]
    fn streams_lists(&self) -> bool {
        false
    }

    /// What is listed, exactly: two sources that say the same here get the same objects from the same
    /// server. `None`, the default, where that can't be told; then the
    /// cache is neither saved nor loaded.
    fn collection(&self) -> Option<String> {
        None
    }

    /// Which server it is, as a text that no other server has and that this one keeps. `None`, the
    /// default, where that can't be told. Requested only for a cache that is saved.
    ///
    /// # Cancel safety
    /// As for [`ListerWatcher::list`].
    fn server(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// The namespace whose objects are listed, for names and metrics; `None`, the default, if it is
    /// all, or unknown.
    fn namespace(&self) -> Option<String> {
        None
    }

    /// What is listed, for logs and errors: a kind, perhaps with namespace and selectors.
    fn description(&self) -> String {
        UNDESCRIBED.to_owned()
    }
}

/// The description of a source that has none of its own.
pub(crate) const UNDESCRIBED: &str = "objects";

/// The options of one list or watch request. What is `None`, unset or empty is not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// `labelSelector`.
    pub label_selector: Option<String>,
    /// `fieldSelector`.
    pub field_selector: Option<String>,
    /// `resourceVersion`.
    pub resource_version: ResourceVersion,
    /// `resourceVersionMatch`.
    pub resource_version_match: Option<ResourceVersionMatch>,
    /// `limit`: objects per page; a list is not paged without it.
    pub limit: Option<u32>,
    /// `continue`: the token that the page before ended with.
    pub continue_token: Option<String>,
    /// `timeoutSeconds`: after which the server ends a watch.
    pub timeout_seconds: Option<u32>,
    /// `allowWatchBookmarks`.
    pub allow_watch_bookmarks: bool,
    /// `sendInitialEvents`: a streaming list.
    pub send_initial_events: Option<bool>,
    /// Parameters this type has no field for, such as `shardSelector`; sent as they are.
    pub extra: Vec<(String, String)>,
}

/// How `resourceVersion` limits what may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceVersionMatch {
    /// Exactly the state at that revision.
    Exact,
    /// Any state at least as new.
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

impl ListOptions {
    /// Name and value of every parameter that is sent, in a fixed order; `watch` is the verb's.
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
