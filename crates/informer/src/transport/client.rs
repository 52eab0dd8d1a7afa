//! [`ListWatch`] lists and watches objects with a [`kube_client::Client`]. [`connect`] creates such a client.
//!
//! A client of [`connect`] does not retry requests, so the reflector receives every error. By default, any
//! other client of kube retries a request for minutes after the responses 429, 503 and 504, and does not
//! report these responses.
//!
//! This module does not retry requests and does not decode objects.

mod accept;
mod classify;
mod negotiation;
#[cfg(feature = "http2")]
mod connections;
#[cfg(feature = "http2")]
mod shared_connection;
#[cfg(feature = "http2")]
mod single_flight;
mod source;
#[cfg(feature = "http2")]
mod tls;

pub(crate) use self::classify::classify;
pub use self::source::{ClientSource, RotatingClient, RotatingClientBuilder};

use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use derive_where::derive_where;
use futures_core::future::BoxFuture;
use futures_util::StreamExt;
use http_body_util::{BodyExt, BodyStream, Limited};
use kube_client::{Client, client::Body};
use kube_core::Resource;

use accept::Wanted;
use negotiation::{Rejected, default_encoding};
#[cfg(feature = "http2")]
use shared_connection::Protocol;

use super::{Class, Encoding, Error, ListOptions, ListerWatcher, Response};
use crate::{
    codec::Codec,
    limits::{ERROR_BODY_BYTES, NAMESPACE_BYTES},
    selector::Selector,
};

/// Value of the `User-Agent` header that [`connect`] sends if the configuration has no `User-Agent` header.
pub const USER_AGENT: &str = concat!("kube-informer/", env!("CARGO_PKG_VERSION"));

/// Creates a client for informers from a kube configuration.
///
/// The client authenticates as kube's own client does, and sends a `User-Agent` header. The client does not
/// retry requests, because the reflector already retries them with backoff.
///
/// With feature `http2`, all informers that use the client share one connection to a server that supports
/// HTTP/2 over TLS. If 100 requests are open on a connection, the client opens another connection, because
/// kube-apiserver accepts no more by default. An open watch counts as one request. Without the feature,
/// through a proxy, or over OpenSSL, each open watch has its own HTTP/1.1 connection.
///
/// With feature `http2`, TLS needs one of these sets of features of `kube-client`:
///
/// | features | TLS |
/// | --- | --- |
/// | `rustls-tls`, `ring` | rustls with ring |
/// | `rustls-tls`, `aws-lc-rs` | rustls with aws-lc-rs, also if `ring` is enabled |
/// | `rustls-tls` alone | rustls with the crypto provider that the process must install before the call |
/// | `openssl-tls` without `rustls-tls` | OpenSSL, HTTP/1.1 only |
///
/// A crypto provider that the process has installed takes precedence over ring and aws-lc-rs. If the process
/// has installed none, `connect` installs ring or aws-lc-rs as the default provider of the process.
///
/// `connect` removes the user and the password from an address such as `https://USER:PASSWORD@HOST`, because
/// kube would log them and would not send them to the server.
///
/// The function must be called inside a Tokio runtime, because the client spawns tasks.
///
/// # Errors
/// Returns an error in these cases:
/// - Kube can't build the client, for example because a CA can't be read or a proxy is invalid.
/// - The address has no host, or no scheme such as `https`.
/// - With feature `http2`, the features for TLS or the crypto provider are missing. The error names the
///   features to enable.
pub fn connect(mut config: kube_client::Config) -> Result<Client, kube_client::Error> {
    check_address(&config)?;
    identify(&mut config);
    #[cfg(feature = "http2")]
    return match &config.proxy_url {
        None => shared_connection::connect(&config, Protocol::Offered),
        Some(_) => tls::kube_client(&config),
    };
    #[cfg(not(feature = "http2"))]
    Client::try_from(config)
}

/// Creates a client like [`connect`], but the client uses HTTP/2 without negotiation, with or without TLS.
///
/// The client does not use a proxy, even if the configuration contains one.
///
/// # Errors
/// Returns the errors of [`connect`]. Also returns an error for an `https` address if `kube-client` lacks the
/// feature `rustls-tls`. If the server supports only HTTP/1.1, this function succeeds, but every request of
/// the client fails.
#[cfg(feature = "http2")]
pub fn connect_with_prior_knowledge(
    mut config: kube_client::Config,
) -> Result<Client, kube_client::Error> {
    check_address(&config)?;
    identify(&mut config);
    shared_connection::connect(&config, Protocol::Http2)
}

/// Checks that the address of the server in `config` has a scheme and a host.
///
/// # Errors
/// Returns an error if the address is incomplete, such as `HOST:PORT` or only a path.
fn check_address(config: &kube_client::Config) -> Result<(), kube_client::Error> {
    let mut parts = config.cluster_url.clone().into_parts();
    // The path may be missing; scheme and host may not.
    parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
    let whole = parts.scheme.is_some() && parts.authority.is_some();
    match http::Uri::from_parts(parts) {
        Ok(_) if whole => Ok(()),
        Ok(_) => {
            let half = http::Uri::builder().scheme("https").build();
            let refused = half.expect_err("a scheme alone is no address");
            Err(kube_client::Error::HttpError(refused))
        }
        Err(error) => Err(kube_client::Error::HttpError(error.into())),
    }
}

/// Disables kube's retries, removes user and password from the server's address, and sets the `User-Agent`.
fn identify(config: &mut kube_client::Config) {
    config.default_retry = false;
    let mut address = config.cluster_url.clone().into_parts();
    let authority = address.authority.as_ref().map(http::uri::Authority::as_str);
    if let Some((_, host)) = authority.and_then(|authority| authority.rsplit_once('@')) {
        address.authority = host.parse().ok();
        config.cluster_url = http::Uri::from_parts(address).unwrap_or_default();
    }
    let has_agent = config
        .headers
        .iter()
        .any(|(name, _)| *name == http::header::USER_AGENT);
    if !has_agent {
        let agent = http::HeaderValue::from_static(USER_AGENT);
        config.headers.push((http::header::USER_AGENT, agent));
    }
}

/// A function that changes the [`ListOptions`] of each list or watch request before the request is sent.
pub type TweakListOptions = Arc<dyn Fn(&mut ListOptions) + Send + Sync>;

/// Lists and watches the objects of one kind with a Kubernetes client, in all namespaces or in one namespace.
///
/// `ListWatch<PartialObjectMeta<K>>` requests only the metadata of the objects of kind `K`.
#[doc(alias = "NewListWatchFromClient")]
#[doc(alias = "NewFilteredListWatchFromClient")]
#[derive_where(Clone)]
pub struct ListWatch<K> {
    client: Arc<dyn ClientSource>,
    kind: PhantomData<fn() -> K>,
    /// URL path of the kind's API group and version, such as `/apis/apps/v1`.
    base: String,
    plural: String,
    metadata_only: bool,
    /// Whether this crate can decode objects of the kind from protobuf.
    has_protobuf: bool,
    /// Encoding to request if [`ListOptions::encoding`] is `None`.
    encoding: Encoding,
    /// Whether the server has rejected protobuf. All clones of this `ListWatch` then request JSON.
    is_json_only: Arc<AtomicBool>,
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
    tweak: Option<TweakListOptions>,
}

impl<K: Resource> ListWatch<K> {
    /// Creates a `ListWatch` for all objects of the kind `K` in all namespaces. `client` is a [`Client`], a
    /// [`RotatingClient`] or another [`ClientSource`].
    pub fn new(client: impl ClientSource) -> Self
    where
        K::DynamicType: Default,
    {
        Self::with_type(client, &K::DynamicType::default())
    }

    /// Creates a `ListWatch` like [`ListWatch::new`], for a kind that is known only at run time. `dyntype`
    /// identifies the kind. If `K` is `DynamicObject`, `dyntype` is an `ApiResource`.
    pub fn with_type(client: impl ClientSource, dyntype: &K::DynamicType) -> Self {
        let (group, version) = (K::group(dyntype), K::version(dyntype));
        let base = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        Self {
            client: Arc::new(client),
            kind: PhantomData,
            base,
            plural: K::plural(dyntype).into_owned(),
            metadata_only: K::metadata_api(),
            has_protobuf: Codec::has_protobuf(&K::api_version(dyntype), &K::kind(dyntype)),
            encoding: default_encoding::<K>(),
            is_json_only: Arc::default(),
            namespace: None,
            labels: None,
            fields: None,
            tweak: None,
        }
    }

    /// Restricts lists and watches to the objects of one namespace. An empty name selects all namespaces.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into()).filter(|namespace| !namespace.is_empty());
        self
    }

    /// Restricts lists and watches to the objects whose labels match `selector`.
    #[must_use]
    pub fn labels(mut self, selector: &Selector) -> Self {
        self.labels = Some(selector.to_string()).filter(|selector| !selector.is_empty());
        self
    }

    /// Restricts lists and watches to the objects whose fields match `selector`, for example
    /// `spec.nodeName=node-1`. The server determines which fields a selector may contain.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Sets the encoding to request if [`ListOptions::encoding`] is `None`.
    ///
    /// The default is protobuf if `K` is a type of `k8s-openapi`, and for lists and watches of metadata.
    /// Otherwise it is JSON. See [`Encoding::Protobuf`] for the kinds that are never requested in protobuf.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Adds a function that changes the options of each list or watch request before it is sent.
    ///
    /// If this method is called several times, the functions run in the order of the calls.
    #[must_use]
    pub fn tweak_list_options(
        mut self,
        tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static,
    ) -> Self {
        self.tweak = Some(match self.tweak.take() {
            None => Arc::new(tweak),
            Some(first) => Arc::new(move |options: &mut ListOptions| {
                first(options);
                tweak(options);
            }),
        });
        self
    }
}

impl<K> ListWatch<K> {
    fn request(&self, options: &ListOptions, wanted: Wanted) -> Result<http::Request<Body>, Error> {
        self.request_in(options, wanted, None)
    }

    /// Builds a request. `encoding`, if set, replaces the encoding of `options`.
    fn request_in(
        &self,
        options: &ListOptions,
        wanted: Wanted,
        encoding: Option<Encoding>,
    ) -> Result<http::Request<Body>, Error> {
        let watch = wanted == Wanted::Watch;
        let mut options = options.clone();
        options.label_selector = options.label_selector.or_else(|| self.labels.clone());
        options.field_selector = options.field_selector.or_else(|| self.fields.clone());
        if let Some(tweak) = &self.tweak {
            tweak(&mut options);
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(options.query());
        if watch {
            query.append_pair("watch", "true");
        }
        let namespace = match &self.namespace {
            // Any other text would change the path.
            Some(namespace)
                if !namespace
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-') =>
            {
                let message = format!(
                    "invalid namespace {namespace:?}: a name has only letters, digits and '-'"
                );
                return Err(Error::new(Class::Invalid, message));
            }
            Some(namespace) => format!("namespaces/{namespace}/"),
            None => String::new(),
        };
        let uri = format!(
            "{}/{namespace}{}?{}",
            self.base,
            self.plural,
            query.finish()
        );
        let encoding = encoding.or(options.encoding).unwrap_or(self.encoding);
        let encoding = if self.has_protobuf && !self.is_json_only.load(Ordering::Relaxed) {
            encoding
        } else {
            Encoding::Json
        };
        let accept = wanted.accept(self.metadata_only, encoding);
        let mut request = http::Request::get(uri).header(http::header::ACCEPT, accept);
        if watch {
            // Kubernetes 1.37 compresses streaming lists with one gzip member per flush, and common decoders
            // read only the first member (tower-rs/tower-http#737).
            request = request.header(http::header::ACCEPT_ENCODING, "identity");
        }
        request.body(Body::empty()).map_err(|error| {
            Error::new(
                Class::Invalid,
                "the request can't be built from these options; check the selectors and the tweak of the options",
            )
            .with_source(error)
        })
    }

    async fn send(&self, request: Result<http::Request<Body>, Error>) -> Result<Response, Error> {
        self.send_once(request?)
            .await
            .map_err(|rejected| rejected.error)
    }

    async fn send_once(&self, request: http::Request<Body>) -> Result<Response, Rejected> {
        let client = self.client.client().await?;
        let response = respond(&client, request).await;
        if let Err(rejected) = &response {
            self.client.failed(&rejected.error);
        }
        response
    }
}

/// Sends a request and returns the response.
///
/// # Errors
/// Returns an error if the request can't be sent, or if the status of the response is not 2xx.
pub(crate) async fn answer(
    client: &Client,
    request: http::Request<Body>,
) -> Result<Response, Error> {
    let response = respond(client, request).await;
    response.map_err(|rejected| rejected.error)
}

async fn respond(client: &Client, request: http::Request<Body>) -> Result<Response, Rejected> {
    let response = client.send(request).await.map_err(classify)?;
    let status = response.status();
    if status.is_success() {
        let content_type = response.headers().get(http::header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let frames = BodyStream::new(response.into_body());
        let body = frames.filter_map(async |frame| match frame {
            Ok(frame) => frame.into_data().ok().map(Ok),
            Err(error) => Some(Err(classify(error))),
        });
        return Ok(Response::new(content_type, Box::pin(body)));
    }
    let retry_after = response
        .headers()
        .get(http::header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map(Duration::from_secs);
    // If the body is too long or can't be read, the error contains only the status code.
    let body = Limited::new(response.into_body(), ERROR_BODY_BYTES)
        .collect()
        .await;
    let body = body.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
    let error = Error::from_status_body(status.as_u16(), &body);
    let retry_after = retry_after.or(error.retry_after());
    Err(Rejected {
        status: Some(status),
        error: error.with_retry_after(retry_after),
    })
}

/// Reads the whole body of a response. Error messages use `what` as the name of the response.
///
/// # Errors
/// Returns an error if the body can't be read or is longer than `max` bytes.
pub(crate) async fn read_all(response: Response, max: usize, what: &str) -> Result<Vec<u8>, Error> {
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    while let Some(chunk) = body.next().await {
        bytes.extend_from_slice(&chunk?);
        if bytes.len() > max {
            let message = format!("{what} is larger than {max} bytes");
            return Err(Error::new(Class::Protocol, message));
        }
    }
    Ok(bytes)
}

impl<K: 'static> ListerWatcher for ListWatch<K> {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let options = options.clone();
        Box::pin(async move { self.negotiate(&options, Wanted::List).await })
    }

    fn list_metadata(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let options = options.clone();
        Box::pin(async move { self.negotiate(&options, Wanted::ListOfMetadata).await })
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let options = options.clone();
        Box::pin(async move { self.negotiate(&options, Wanted::Watch).await })
    }

    /// Always returns true. The reflector detects a server that does not support streaming lists, and sends
    /// LIST requests instead.
    fn streams_lists(&self) -> bool {
        true
    }

    /// Returns a text that identifies the listed objects: the URI of the list request, followed by
    /// ` (metadata)` if only the metadata of the objects is listed.
    fn collection(&self) -> Option<String> {
        let request = self.request(&ListOptions::default(), Wanted::List).ok()?;
        let form = if self.metadata_only {
            " (metadata)"
        } else {
            ""
        };
        let uri = request.uri().to_string();
        Some(format!("{}{form}", uri.trim_end_matches('?')))
    }

    /// Returns the uid of the namespace `kube-system`, which identifies the server.
    fn server(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async {
            // Every cluster has this namespace, which can't be deleted.
            let request = http::Request::get("/api/v1/namespaces/kube-system")
                .header(http::header::ACCEPT, accept::METADATA_ALONE)
                .body(Body::empty())
                .map_err(|error| {
                    let what = "the request for namespace kube-system can't be built";
                    Error::new(Class::Invalid, what).with_source(error)
                });
            let response = self.send(request).await?;
            let what = "the response with namespace kube-system";
            let bytes = read_all(response, NAMESPACE_BYTES, what).await?;
            let identity = Codec::Json.object(&bytes).identity();
            let refused = || Error::new(Class::Protocol, format!("{what} is not a JSON object"));
            let identity = identity.ok_or_else(refused)?;
            let uid = identity.metadata.uid.into_owned();
            Ok(Some(uid).filter(|uid| !uid.is_empty()))
        })
    }

    fn namespace(&self) -> Option<String> {
        self.namespace.clone()
    }

    fn description(&self) -> String {
        let mut text = self.plural.clone();
        for (word, value) in [
            (" in ", &self.namespace),
            (" with labels ", &self.labels),
            (" with fields ", &self.fields),
        ] {
            text.extend(value.iter().flat_map(|value| [word, value]));
        }
        text
    }
}

impl<K: 'static> fmt::Debug for ListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ListWatch")
            .field(&self.description())
            .finish()
    }
}

#[cfg(test)]
mod tests;
