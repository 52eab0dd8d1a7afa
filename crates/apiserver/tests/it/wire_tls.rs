//! Tests the server over TLS: server certificates, client certificates, and ALPN.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_client::config::Kubeconfig;
use kube_informer_apiserver::{ClientCertificate, Rule, Tls, User};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::ask::{builder, pod, pods, request};
use crate::wire::{loopback, next_event};

/// Opens a TLS connection, and asserts that the server has selected the ALPN protocol `alpn`.
///
/// # Errors
/// Returns an error if the server's certificate is not from the authority `trusted` or is not valid for
/// `name`.
async fn connect(
    address: SocketAddr,
    trusted: &Tls,
    name: &str,
    alpn: &str,
    client: Option<&ClientCertificate>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let client = client.map(|client| (client.certificate_pem(), client.key_pem()));
    connect_with(address, trusted.ca_pem(), name, alpn, client).await
}

/// Opens a TLS connection as [`connect`] does. `trusted` is the authority in PEM, and `client` the certificate and the
/// key of the client.
async fn connect_with(
    address: SocketAddr,
    trusted: &str,
    name: &str,
    alpn: &str,
    client: Option<(&str, &str)>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match client {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            config
                .with_client_auth_cert(vec![certificate], key)
                .unwrap()
        }
    };
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?;
    let (_, session) = stream.get_ref();
    assert_eq!(session.alpn_protocol(), Some(alpn.as_bytes()));
    Ok(stream)
}

fn authority() -> Tls {
    Tls::generate([]).unwrap()
}

/// Lists pods, and returns the status code and the error message, which is empty on success.
async fn ask(stream: TlsStream<TcpStream>, token: Option<&str>) -> (u16, String) {
    let mut tasks = JoinSet::new();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tasks.spawn(async move { drop(connection.await) });
    let mut request = request("GET", "/api/v1/pods").header("host", "localhost");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Full::<Bytes>::default()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
    (
        code,
        answer["message"].as_str().unwrap_or_default().to_owned(),
    )
}

#[tokio::test]
async fn a_hundred_watches_share_one_http2_connection_selected_by_alpn() {
    let server = pods(&[]);
    let tls = authority();
    let listening = server.listen_tls(loopback(), &tls).await.unwrap();
    let address = listening.local_addr();
    let stream = connect(address, &tls, "localhost", "h2", None)
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tasks.spawn(async move { drop(connection.await) });
    let uri = format!("https://{address}/api/v1/pods?watch=1");
    let mut bodies = Vec::new();
    for _ in 0..100 {
        let request = request("GET", &uri).body(Full::<Bytes>::default()).unwrap();
        bodies.push(sender.send_request(request).await.unwrap().into_body());
    }
    server.create(pod("a")).unwrap();
    for body in &mut bodies {
        assert_eq!(next_event(body).await["object"]["metadata"]["name"], "a");
    }
    listening.shutdown().await;
}

#[tokio::test]
async fn the_certificate_covers_loopback_and_the_configured_names() {
    let server = pods(&["a"]);
    let tls = Tls::generate(["api.example.org", "192.0.2.1"]).unwrap();
    let listening = server.listen_tls(loopback(), &tls).await.unwrap();
    let address = listening.local_addr();
    for name in [
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes.default.svc",
        "api.example.org",
        "192.0.2.1",
    ] {
        let stream = connect(address, &tls, name, "http/1.1", None)
            .await
            .unwrap();
        assert_eq!(ask(stream, None).await.0, 200, "{name}");
    }
    let other = connect(address, &tls, "example.org", "http/1.1", None).await;
    assert!(
        other.is_err(),
        "a name that the certificate does not contain"
    );
    let stranger = connect(address, &authority(), "localhost", "http/1.1", None).await;
    assert!(stranger.is_err(), "another authority is not trusted");
    listening.shutdown().await;
}

#[tokio::test]
async fn the_same_authority_is_trusted_after_a_restart() {
    let server = pods(&["a"]);
    let tls = authority();
    let listening = server.listen_tls(loopback(), &tls).await.unwrap();
    let address = listening.local_addr();
    listening.shutdown().await;
    let listening = server.listen_tls(address, &tls).await.unwrap();
    let stream = connect(address, &tls, "localhost", "http/1.1", None).await;
    assert_eq!(ask(stream.unwrap(), None).await.0, 200);
    listening.shutdown().await;
}

#[tokio::test]
async fn a_client_certificate_identifies_the_user() {
    let server = builder()
        .seed([pod("a")])
        .token("secret", User::new("jane"))
        .rules([Rule::allow(["list"], ["pods"]).for_group("readers")])
        .build();
    let tls = authority();
    let listening = server.listen_tls(loopback(), &tls).await.unwrap();
    let address = listening.local_addr();
    let answer = async |certificate: Option<&ClientCertificate>, token| {
        let stream = connect(address, &tls, "localhost", "http/1.1", certificate).await;
        ask(stream.unwrap(), token).await
    };
    let reader = tls.issue(User::new("rita").in_group("readers")).unwrap();
    let other = tls.issue(User::new("otto")).unwrap();
    let denied = |user: &str| {
        let message = format!(
            "pods is forbidden: User {user:?} cannot list resource \"pods\" in API group \"\" at the cluster scope"
        );
        (403, message)
    };
    assert_eq!(answer(None, None).await, (401, "Unauthorized".to_owned()));
    assert_eq!(answer(None, Some("secret")).await, denied("jane"));
    assert_eq!(answer(Some(&reader), None).await.0, 200);
    assert_eq!(answer(Some(&other), None).await, denied("otto"));
    assert_eq!(answer(Some(&other), Some("secret")).await, denied("otto"));
    listening.shutdown().await;
}

#[tokio::test]
async fn a_client_certificate_of_another_authority_is_rejected() {
    let server = pods(&["a"]);
    let tls = authority();
    let foreign = authority().issue(User::new("mallory")).unwrap();
    let listening = server.listen_tls(loopback(), &tls).await.unwrap();
    let address = listening.local_addr();
    let stream = connect(address, &tls, "localhost", "http/1.1", Some(&foreign)).await;
    // With TLS 1.3, the client's handshake ends before the server verifies the client's certificate.
    if let Ok(stream) = stream {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        let request = request("GET", "/version").header("host", "localhost");
        let request = request.body(Full::<Bytes>::default()).unwrap();
        assert!(sender.send_request(request).await.is_err());
    }
    assert!(server.requests().is_empty());
    listening.shutdown().await;
}

#[tokio::test]
async fn a_client_connects_with_the_kubeconfig_alone() {
    let server = pods(&["a"]);
    let tls = authority();
    let listening = server.listen_tls(loopback(), &tls).await.unwrap();
    let certificate = tls.issue(User::new("rita")).unwrap();
    let config = listening.kubeconfig().client_certificate(&certificate);
    let read = Kubeconfig::from_yaml(&config.to_string()).unwrap();
    let cluster = read.clusters[0].cluster.clone().unwrap();
    let url = format!("https://{}", listening.local_addr());
    assert_eq!(cluster.server.as_deref(), Some(url.as_str()));
    let authority = cluster.certificate_authority_data.unwrap();
    assert_eq!(decoded(&authority), tls.ca_pem());
    let user = serde_json::to_value(read.auth_infos[0].auth_info.clone().unwrap()).unwrap();
    let data = |member: &str| decoded(user[member].as_str().unwrap());
    assert_eq!(
        data("client-certificate-data"),
        certificate.certificate_pem()
    );
    assert_eq!(data("client-key-data"), certificate.key_pem());
    let shown = format!("{config:?} {certificate:?} {tls:?}");
    assert!(
        !shown.contains("PRIVATE") && !shown.contains("client-key"),
        "{shown}"
    );
    listening.shutdown().await;
}

fn decoded(base64: &str) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64);
    String::from_utf8(bytes.unwrap()).unwrap()
}

#[test]
fn a_name_that_no_certificate_can_contain_is_an_error() {
    let error = Tls::generate(["müller.example"]).unwrap_err();
    assert!(std::error::Error::source(&error).is_some());
}

/// Returns an authority, and a certificate and its key that the authority has issued, all in PEM.
fn issued(name: &str, group: Option<&str>, host: Option<&str>) -> [String; 3] {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let hosts: Vec<String> = host.into_iter().map(str::to_owned).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    [authority.pem(), certificate.pem(), key.serialize_pem()]
}

#[tokio::test]
async fn the_certificates_of_the_program_identify_users_and_groups() {
    let [server_ca, chain, key] = issued("server", None, Some("localhost"));
    let [client_ca, certificate, client_key] = issued("jane", Some("readers"), None);
    let rules = [Rule::allow(["list"], ["pods"]).for_group("readers")];
    let server = builder().seed([pod("a")]).rules(rules).build();
    let tls = Tls::from_pem(&chain, &key, Some(&client_ca)).unwrap();
    let listening = server.listen_tls(loopback(), &tls).await.unwrap();
    let address = listening.local_addr();
    let open = |client| connect_with(address, &server_ca, "localhost", "http/1.1", client);
    let jane = open(Some((&certificate, &client_key))).await.unwrap();
    assert_eq!(ask(jane, None).await.0, 200);
    let anonymous = open(None).await.unwrap();
    assert_eq!(ask(anonymous, None).await.0, 403);
    let [_, foreign, foreign_key] = issued("jane", Some("readers"), None);
    let foreign = open(Some((&foreign, &foreign_key))).await;
    match foreign {
        // With TLS 1.3 the client learns of the refusal when it reads.
        Ok(mut stream) => {
            let read = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 1]).await;
            assert!(read.is_err(), "{read:?}");
        }
        Err(error) => assert!(error.to_string().contains("certificate"), "{error}"),
    }
    assert!(tls.issue(User::new("joe")).is_err());
    listening.shutdown().await;
}

#[test]
fn a_text_without_a_certificate_or_a_fitting_key_is_an_error() {
    let [authority, chain, key] = issued("server", None, Some("localhost"));
    let [_, _, other_key] = issued("other", None, None);
    for (chain, key, client_ca) in [
        ("", &key, None),
        (&*chain, &other_key, None),
        (&chain, &authority, None),
        (&chain, &key, Some("no PEM")),
    ] {
        assert!(Tls::from_pem(chain, key, client_ca).is_err());
    }
    Tls::from_pem(&chain, &key, None).unwrap();
}
