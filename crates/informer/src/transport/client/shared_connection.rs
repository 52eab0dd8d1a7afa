//! Creates the HTTP client that [`super::connect`] returns if feature `http2` is enabled. The client sends
//! up to 100 concurrent requests over one connection if the server supports HTTP/2.
//!
//! Guarantees:
//! - If the server selects `h2` in ALPN, all informers that use the client share one connection. The client
//!   opens another connection if 100 requests are open on every existing one ([`Connections`]). The client
//!   sends no new request on a connection whose end the server has announced, or on which no request has
//!   begun for 90 s (hyper's default).
//! - If the server does not select `h2`, each open watch has its own HTTP/1.1 connection.
//! - A dead HTTP/2 connection is detected within 45 s ([`PING_INTERVAL`] plus [`PING_TIMEOUT`]). All requests
//!   on this connection then fail.
//! - A watch whose body is not read does not block other watches, until the unread bodies on the connection
//!   exceed 64 MiB ([`CONNECTION_WINDOW`]).
//!
//! In all other respects, such as credentials, extra headers and timeouts, the client behaves like kube's own
//! client.

use std::time::Duration;

use http::uri::Scheme;
use hyper_rustls::{
    FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream,
};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use k8s_openapi::jiff::Timestamp;
use kube_client::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt},
};
use rustls::ClientConfig;
use tower::{
    BoxError, Layer, ServiceExt,
    util::{Either, option_layer},
};

use super::{connections::Connections, single_flight::SingleFlight, tls};

/// Time without received bytes after which the client sends an HTTP/2 ping, as in client-go.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum time for the response to an HTTP/2 ping, as in client-go.
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// Flow-control window of one response, in bytes. Allows 20 MB/s at a round-trip time of 50 ms.
const STREAM_WINDOW: u32 = 1 << 20;

/// Flow-control window of one connection, in bytes, for all its responses.
const CONNECTION_WINDOW: u32 = 64 * STREAM_WINDOW;

/// HTTP version of a client: negotiated, or always HTTP/2.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/2 if the server selects HTTP/2 in the TLS handshake, otherwise HTTP/1.1.
    Offered,
    /// HTTP/2 without negotiation, with or without TLS.
    Http2,
}

/// Creates a client that uses the HTTP version `protocol`.
///
/// For an `https` URL, HTTP/2 requires the feature `rustls-tls` of `kube-client`. Without the feature, such a
/// URL results in kube's own client for [`Protocol::Offered`], and in an error for [`Protocol::Http2`].
pub(super) fn connect(config: &Config, protocol: Protocol) -> Result<Client, kube_client::Error> {
    connect_and_ping(config, protocol, PING_INTERVAL, PING_TIMEOUT)
}

fn connect_and_ping(
    config: &Config,
    protocol: Protocol,
    ping_interval: Duration,
    ping_timeout: Duration,
) -> Result<Client, kube_client::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    // Requests are small and must not wait for more data.
    tcp.set_nodelay(true);
    let connector = if config.cluster_url.scheme() == Some(&Scheme::HTTPS) {
        match (tls::rustls_config(config)?, protocol) {
            (Some(tls), _) => Either::Left(https(config, tls, tcp)?),
            (None, Protocol::Offered) => return tls::kube_client(config),
            (None, Protocol::Http2) => return Err(tls::failed(tls::NoRustls)),
        }
    } else {
        let tcp = tcp.map_response(MaybeHttpsStream::Http);
        Either::Right(tcp.map_err(BoxError::from))
    };
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let mut client = legacy::Client::builder(TokioExecutor::new());
    client
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_only(protocol == Protocol::Http2)
        .http2_keep_alive_interval(ping_interval)
        .http2_keep_alive_timeout(ping_timeout)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW);
    // Each service has a pool of its own, with one connection if it uses HTTP/2.
    let service = Connections::new(move || {
        let client = client.build::<_, Body>(connector.clone());
        SingleFlight::new(client)
    });
    let service = config.extra_headers_layer()?.layer(service);
    let service = option_layer(config.auth_layer()?).layer(service);
    let service = config.base_uri_layer().layer(service);
    let builder = ClientBuilder::new(service.boxed(), config.default_namespace.clone());
    Ok(builder.with_valid_until(expiry(config)?).build())
}

/// Creates a connector that opens TLS connections over the TCP connector `tcp`.
fn https(
    config: &Config,
    tls: ClientConfig,
    tcp: HttpConnector,
) -> Result<HttpsConnector<HttpConnector>, kube_client::Error> {
    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(tls::failed)?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(tls.enable_all_versions().wrap_connector(tcp))
}

/// Returns the expiry of the client certificate that the credential plugin returns.
///
/// Returns `None` if no plugin is configured, or if the plugin returns no certificate or no expiry.
fn expiry(config: &Config) -> Result<Option<Timestamp>, kube_client::Error> {
    if config.auth_info.exec.is_none() {
        return Ok(None);
    }
    Ok(*tls::kube_client(config)?.valid_until())
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use k8s_openapi::api::core::v1::Pod;
    use kube_informer_apiserver::{Server, Tls, User};
    use tokio::{
        io::copy_bidirectional,
        net::{TcpListener, TcpStream},
        task::JoinSet,
    };

    use super::*;
    use crate::{
        client::ListWatch,
        transport::{ListOptions, ListerWatcher},
    };

    #[cfg(unix)]
    #[tokio::test]
    async fn a_client_expires_with_the_certificate_of_its_plugin() {
        let tls = Tls::generate([]).unwrap();
        let certificate = tls.issue(User::new("plugin")).unwrap();
        let credential = serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {
                "clientCertificateData": certificate.certificate_pem(),
                "clientKeyData": certificate.key_pem(),
                "expirationTimestamp": "2030-01-02T03:04:05Z",
            },
        });
        let exec = serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "printf",
            "args": ["%s", credential.to_string()],
            "interactiveMode": "Never",
        });
        let mut config = Config::new("https://127.0.0.1:1".parse().unwrap());
        config.auth_info.exec = Some(serde_json::from_value(exec).unwrap());
        let client = connect(&config, Protocol::Offered).unwrap();
        let expected: Timestamp = "2030-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(*client.valid_until(), Some(expected));
    }

    #[tokio::test]
    async fn a_dead_connection_ends_its_watches() {
        let server = Server::builder().build();
        let listening = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let between = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let uri = format!("http://{}", between.local_addr().unwrap());
        let (address, (cut, mut is_cut)) =
            (listening.local_addr(), tokio::sync::oneshot::channel());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (mut client, _) = between.accept().await.unwrap();
            let mut server = TcpStream::connect(address).await.unwrap();
            tokio::select! {
                biased;
                ended = copy_bidirectional(&mut client, &mut server) => drop(ended),
                _ = &mut is_cut => std::future::pending().await,
            }
        });
        let config = Config::new(uri.parse().unwrap());
        let moment = Duration::from_millis(50);
        let client = connect_and_ping(&config, Protocol::Http2, moment, moment).unwrap();
        let source = ListWatch::<Pod>::new(client);
        let watch = source.watch(&ListOptions::default()).await.unwrap();
        let mut watch = watch.into_body();
        cut.send(()).unwrap();
        let ended = watch.next().await.expect("it does not end cleanly");
        assert!(ended.is_err());
        listening.shutdown().await;
    }
}
