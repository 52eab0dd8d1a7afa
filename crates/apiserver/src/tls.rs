//! Serves TLS with certificates that the server generates, or that the program has.
//!
//! Identifies clients by their certificates.
//!
//! Guarantees:
//! - each generated [`Tls`] has its own certificate authority, whose key never leaves the process;
//! - client certificates are optional, but the handshake fails for a certificate from another authority;
//! - `Debug` output, logs and messages contain no keys, and nothing is written to the disk.

mod subject;

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
use tokio_rustls::rustls::pki_types::pem::PemObject;
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

/// A server certificate, and the authority of client certificates. Cheap to clone.
///
/// Generated certificates are valid from 1975 to 4096. Keys are random and do not depend on
/// [`crate::Builder::rng_seed`].
///
/// Several servers can use one `Tls`. A client that trusts the authority trusts all these servers.
#[derive(Clone)]
pub struct Tls {
    inner: Arc<Inner>,
}

struct Inner {
    /// The authority that issues certificates. `None` if the certificates are the program's.
    authority: Option<CertifiedIssuer<'static, KeyPair>>,
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

/// The error of a failed attempt to generate or read a certificate.
///
/// The cause is an invalid name, a system without a source of randomness, or an invalid text in PEM.
#[derive(Debug, thiserror::Error)]
#[error("the certificate could not be created or read")]
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
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).map_err(TlsError::new)?;
        let acceptor = acceptor(Some(roots), vec![certificate.der().clone()], key)?;
        Ok(Tls {
            inner: Arc::new(Inner {
                ca_pem: authority.pem(),
                authority: Some(authority),
                acceptor,
                issued: Mutex::default(),
            }),
        })
    }

    /// Uses a server certificate that the program has, and reads the users from client certificates, as kube-apiserver
    /// does with `--tls-cert-file`, `--tls-private-key-file` and `--client-ca-file`.
    ///
    /// `chain` is the server's certificate and the certificates between it and a root, and `key` its private key, in
    /// PEM. `client_ca` contains the authorities of client certificates in PEM. The user's name is the common name of
    /// the certificate, and the groups are its organizations. Without `client_ca`, the server requests no client
    /// certificates.
    ///
    /// # Errors
    ///
    /// Returns an error if a text contains no certificate or no key, or if the key does not belong to the certificate.
    pub fn from_pem(chain: &str, key: &str, client_ca: Option<&str>) -> Result<Tls, TlsError> {
        let certificates = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(TlsError::new)?;
        let roots = client_ca.map(|authorities| {
            let mut roots = RootCertStore::empty();
            for authority in self::certificates(authorities)? {
                roots.add(authority).map_err(TlsError::new)?;
            }
            Ok(roots)
        });
        let acceptor = acceptor(roots.transpose()?, certificates, key)?;
        Ok(Tls {
            inner: Arc::new(Inner {
                ca_pem: chain.to_owned(),
                authority: None,
                acceptor,
                issued: Mutex::default(),
            }),
        })
    }

    /// Returns the certificate of the authority in PEM, or the chain of [`Tls::from_pem`]. Clients must trust it.
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
    /// Returns an error if the system has no source of randomness, or if the certificates are those of
    /// [`Tls::from_pem`], whose authority has no key here.
    pub fn issue(&self, user: User) -> Result<ClientCertificate, TlsError> {
        let Some(authority) = &self.inner.authority else {
            return Err(TlsError::new("the key of the authority is not known"));
        };
        let params = named(&user.name);
        let purpose = ExtendedKeyUsagePurpose::ClientAuth;
        let (certificate, key) = issue(authority, params, purpose)?;
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
        if self.inner.authority.is_none() {
            let user = subject::user_of(certificate);
            return Ok((stream, user));
        }
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

/// Returns the certificates in a text in PEM, of which there must be one at least.
fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_slice_iter(pem.as_bytes());
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(TlsError::new)?;
    if found.is_empty() {
        return Err(TlsError::new("the text has no certificate"));
    }
    Ok(found)
}

/// Returns the acceptor of connections. Client certificates, which are optional, must be issued by one of `clients`.
fn acceptor(
    clients: Option<RootCertStore>,
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<TlsAcceptor, TlsError> {
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::new)?;
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(TlsError::new)?;
            config.with_client_cert_verifier(verifier)
        }
    };
    let mut config = config
        .with_single_cert(certificates, key)
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
