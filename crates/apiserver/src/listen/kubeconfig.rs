//! Builds the kubeconfig with which `kubectl` and other clients connect to the server.
//!
//! Guarantees:
//! - with TLS, the kubeconfig contains the certificate of the server's certificate authority;
//! - the kubeconfig contains credentials only if the program adds them, for example with
//!   [`Kubeconfig::token`];
//! - the [`Display`](fmt::Display) output contains these credentials, and the `Debug` output does not.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::connection::Security;
#[cfg(feature = "tls")]
use crate::tls::ClientCertificate;

/// A kubeconfig for one server. The `Display` output is the content of a kubeconfig file.
///
/// A file with credentials should be readable only by its owner.
#[derive(Clone)]
pub struct Kubeconfig {
    server: String,
    /// YAML lines of the section `cluster`, without the line `server`.
    cluster: Vec<String>,
    user: Vec<String>,
}

impl Kubeconfig {
    pub(super) fn new(address: SocketAddr, security: &Security) -> Kubeconfig {
        let address = SocketAddr::new(reachable(address.ip()), address.port());
        let (scheme, cluster) = match security {
            Security::Plain => ("http", Vec::new()),
            #[cfg(feature = "tls")]
            Security::Tls(tls) => {
                let authority = data("certificate-authority-data", tls.ca_pem());
                ("https", vec![authority])
            }
        };
        Kubeconfig {
            server: format!("{scheme}://{address}"),
            cluster,
            user: Vec::new(),
        }
    }

    /// Adds a bearer token.
    ///
    /// `kubectl` and other Go clients send a token only over TLS.
    #[must_use]
    pub fn token(mut self, token: &str) -> Kubeconfig {
        let quoted = serde_json::Value::from(token);
        self.user.push(format!("token: {quoted}"));
        self
    }

    /// Adds a client certificate and its private key.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn client_certificate(mut self, certificate: &ClientCertificate) -> Kubeconfig {
        self.user.push(data(
            "client-certificate-data",
            certificate.certificate_pem(),
        ));
        self.user
            .push(data("client-key-data", certificate.key_pem()));
        self
    }

    /// Returns the URL of the server.
    pub fn server(&self) -> &str {
        &self.server
    }
}

impl fmt::Display for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = match self.user.as_slice() {
            [] => " {}".to_owned(),
            members => format!("\n    {}", members.join("\n    ")),
        };
        let mut cluster = vec![format!("server: {}", self.server)];
        cluster.extend(self.cluster.iter().cloned());
        write!(
            f,
            "apiVersion: v1
kind: Config
clusters:
- name: embedded
  cluster:
    {}
users:
- name: anybody
  user:{user}
contexts:
- name: embedded
  context:
    cluster: embedded
    user: anybody
    namespace: default
current-context: embedded
",
            cluster.join("\n    ")
        )
    }
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Returns `ip`, or a loopback address if `ip` is an unspecified address.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

#[cfg(feature = "tls")]
fn data(member: &str, pem: &str) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(pem);
    format!("{member}: {encoded}")
}

#[cfg(test)]
mod tests {
    use kube_client::config::Kubeconfig as Read;

    use super::*;

    fn plain(address: &str) -> Kubeconfig {
        Kubeconfig::new(address.parse().unwrap(), &Security::Plain)
    }

    fn read(written: &Kubeconfig) -> (String, kube_client::config::AuthInfo) {
        let read = Read::from_yaml(&written.to_string()).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("embedded"));
        let cluster = read.clusters[0].cluster.as_ref().unwrap();
        let user = read.auth_infos[0].auth_info.clone().unwrap();
        (cluster.server.clone().unwrap(), user)
    }

    #[test]
    fn a_client_parses_the_kubeconfig() {
        let (server, user) = read(&plain("127.0.0.1:8001"));
        assert_eq!(server, "http://127.0.0.1:8001");
        assert!(user.token.is_none());
    }

    #[test]
    fn a_listener_on_all_addresses_is_reachable_on_loopback() {
        assert_eq!(plain("0.0.0.0:1").server(), "http://127.0.0.1:1");
        assert_eq!(plain("[::]:1").server(), "http://[::1]:1");
    }

    #[test]
    fn a_token_is_in_the_text_and_not_in_debug_output() {
        let token = "a\"b: #c";
        let config = plain("127.0.0.1:8001").token(token);
        let (_, user) = read(&config);
        assert_eq!(serde_json::to_value(user).unwrap()["token"], token);
        assert!(!format!("{config:?}").contains("b: #c"));
    }
}
