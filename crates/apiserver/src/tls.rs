//! Serves TLS with certificates that the server generates.
//!
//! Identifies clients by their certificates.
//!
//! Guarantees:
//! - each [`Tls`] has its own certificate authority, whose key never leaves the process;
//! - client certificates are optional, but the handshake fails for a certificate from another authority;
//! - `Debug` output, logs and messages contain no keys, and nothing is written to the disk.

use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::access::User;
use crate::body::BoxError;

/// Names and addresses for which every server certificate is valid.
const NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// A certificate authority and a server certificate that this authority issued. Cheap to clone.
///
/// Certificates are valid from 1975 to 4096. Keys are random and do not depend on
/// [`crate::Builder::rng_seed`].
///
/// Several servers can use one `Tls`. A client that trusts the authority trusts all these servers.
#[derive(Clone)]
pub struct Tls {
    inner: Arc<Inner>,
}

struct Inner {
    authority: CertifiedIssuer<'static, KeyPair>,
    ca_pem: String,
    acceptor: TlsAcceptor,
    /// The issued client certificates, each with the user for whom it was issued.
    issued: Mutex<Vec<(CertificateDer<'static>, Arc<User>)>>,
}

/// A client certificate that was issued for one user, and its private key.
#[derive(Clone)]
pub struct ClientCertificate {
    certificate_pem: String,
    key_pem: String,
}

/// The error of a failed attempt to generate a certificate.
///
/// The cause is an invalid name, or a system without a source of randomness.
#[derive(Debug, thiserror::Error)]
#[error("the certificate could not be created")]
pub struct TlsError(#[source] BoxError);

// === impl Tls ===

impl Tls {
    /// Generates a certificate authority and a server certificate.
    ///
    /// The server certificate is valid for `localhost` and the loopback addresses, for the names of the
    /// service `kubernetes` in the namespace `default`, and for the host names and IP addresses in `names`.
    ///
    /// # Errors
    ///
    /// Returns an error if a name is not allowed in certificates, such as a name with characters outside
    /// ASCII, or if the system has no source of randomness.
    pub fn generate<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Tls, TlsError> {
        let mut params = named("kube-informer-apiserver-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, key()?).map_err(TlsError::new)?;

        let names = NAMES.into_iter().chain(names).map(str::to_owned);
        let mut params =
            CertificateParams::new(names.collect::<Vec<String>>()).map_err(TlsError::new)?;
        params.distinguished_name = common_name("kube-informer-apiserver");
        let purpose = ExtendedKeyUsagePurpose::ServerAuth;
        let (certificate, key) = issue(&authority, params, purpose)?;
        let acceptor = acceptor(&authority, certificate.der().clone(), &key)?;
        Ok(Tls {
            inner: Arc::new(Inner {
                ca_pem: authority.pem(),
                authority,
                acceptor,
                issued: Mutex::default(),
            }),
        })
    }

    /// Returns the certificate of the authority in PEM. Clients must trust this certificate.
    pub fn ca_pem(&self) -> &str {
        &self.inner.ca_pem
    }

    /// Issues a client certificate for `user`. Requests with this certificate are requests of this user.
    ///
    /// The certificate can't be revoked, but access rules can restrict the user. The server also accepts
    /// clients without a certificate: they need a token if the server has tokens, and are anonymous
    /// otherwise.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no source of randomness.
    pub fn issue(&self, user: User) -> Result<ClientCertificate, TlsError> {
        let params = named(&user.name);
        let purpose = ExtendedKeyUsagePurpose::ClientAuth;
        let (certificate, key) = issue(&self.inner.authority, params, purpose)?;
        let issued = (certificate.der().clone(), user.authenticated());
        self.inner.issued.lock().push(issued);
        Ok(ClientCertificate {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }

    /// Performs the TLS handshake, and returns the stream and the client certificate's user.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<Arc<User>>)> {
        let stream = self.inner.acceptor.accept(stream).await?;
        let (_, session) = stream.get_ref();
        let Some([certificate, ..]) = session.peer_certificates() else {
            return Ok((stream, None));
        };
        let issued = self.inner.issued.lock();
        let found = issued.iter().find(|(known, _)| known == certificate);
        let user = found.map(|(_, user)| Arc::clone(user));
        drop(issued);
        Ok((stream, user))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

// === impl ClientCertificate ===

impl ClientCertificate {
    /// Returns the client certificate in PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Returns the private key of the client in PEM.
    ///
    /// A file that contains the key should be readable only by its owner.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

// === impl TlsError ===

impl TlsError {
    fn new(cause: impl Into<BoxError>) -> TlsError {
        TlsError(cause.into())
    }
}

fn issue(
    authority: &CertifiedIssuer<'static, KeyPair>,
    mut params: CertificateParams,
    purpose: ExtendedKeyUsagePurpose,
) -> Result<(rcgen::Certificate, KeyPair), TlsError> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    let key = key()?;
    let certificate = params.signed_by(&key, authority).map_err(TlsError::new)?;
    Ok((certificate, key))
}

fn key() -> Result<KeyPair, TlsError> {
    KeyPair::generate().map_err(TlsError::new)
}

fn acceptor(
    authority: &CertifiedIssuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    key: &KeyPair,
) -> Result<TlsAcceptor, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).map_err(TlsError::new)?;
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(TlsError::new)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::new)?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate], key)
        .map_err(TlsError::new)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns certificate parameters with the common name `name` and no alternative names.
fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    params
}

fn common_name(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}
