//! Selects TLS for [`super::connect`]: the backend and the crypto provider that `kube-client` was built with.
//!
//! Guarantees:
//! - feature `rustls-tls` of `kube-client` takes precedence over `openssl-tls`, as in kube's own
//!   client builder;
//! - rustls uses the crypto provider that the process has installed, otherwise the one that it was
//!   compiled with, which is then installed: `aws-lc-rs` before `ring`;
//! - without a provider or a backend the result is an error that names the features to enable. rustls
//!   and kube's client builder panic without a provider.
//!
//! Cargo does not tell a crate which features its dependencies have. [`compiled_in`] and [`rustls_config`]
//! let name resolution decide instead: each uses a name that exists only with a feature, and this module
//! declares a stand-in with the same name, which is used if the feature is off.

use kube_client::{Client, Config, Error, client::ConfigExt};
use rustls::{ClientConfig, crypto::CryptoProvider};

/// The error of a TLS connection for which rustls has no crypto provider.
#[derive(Debug, thiserror::Error)]
#[error(
    "no crypto provider for TLS: enable feature `aws-lc-rs` or `ring` of kube-client, \
     or call `install_default` of a `rustls::crypto::CryptoProvider` first"
)]
struct NoProvider;

/// The error of a TLS connection for which `kube-client` has no backend.
#[derive(Debug, thiserror::Error)]
#[error(
    "no TLS backend: enable feature `rustls-tls` of kube-client with `aws-lc-rs` or `ring`, \
     or feature `openssl-tls`"
)]
struct NoBackend;

/// The error of HTTP/2 with prior knowledge over TLS without rustls.
#[derive(Debug, thiserror::Error)]
#[error(
    "HTTP/2 with prior knowledge over TLS needs rustls: \
     enable feature `rustls-tls` of kube-client with `aws-lc-rs` or `ring`"
)]
pub(super) struct NoRustls;

/// Returns the configuration of rustls for this server, or `None` if `kube-client` was built without rustls.
///
/// # Errors
/// There is no crypto provider, or certificates or keys can't be read.
pub(super) fn rustls_config(config: &Config) -> Result<Option<ClientConfig>, Error> {
    // Resolves to kube's method, which takes a `&Config`, if it exists; otherwise to the stand-in,
    // which takes a `&&Config`.
    build(|| config.rustls_client_config())
}

/// Creates a client as kube builds it: over HTTP/1.1, with kube's TLS backend.
///
/// # Errors
/// There is no crypto provider or no TLS backend, or kube's client builder fails.
pub(super) fn kube_client(config: &Config) -> Result<Client, Error> {
    require_provider(&|| config.rustls_client_config())?;
    Client::try_from(config.clone()).map_err(|error| match error {
        Error::TlsRequired => failed(NoBackend),
        error => error,
    })
}

pub(super) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Service(Box::new(error))
}

fn build<R: Rustls>(make: impl Fn() -> R) -> Result<Option<ClientConfig>, Error> {
    require_provider(&make)?;
    make().config()
}

/// Makes sure that rustls has a crypto provider if kube uses rustls, because kube's client builder would
/// panic otherwise: installs the one that rustls was compiled with, or returns an error if there is none.
/// Whether kube uses rustls is known from the return type of `_make`.
fn require_provider<R: Rustls>(_make: &impl Fn() -> R) -> Result<(), Error> {
    if !R::BUILT_IN || CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    let provider = provider_or_error(compiled_in())?;
    // Fails if another thread has installed one in between, which then applies.
    drop(provider.install_default());
    Ok(())
}

fn provider_or_error<P>(compiled_in: Option<P>) -> Result<P, Error> {
    compiled_in.ok_or_else(|| failed(NoProvider))
}

/// Returns the crypto provider that rustls was compiled with, if there is one.
fn compiled_in() -> Option<CryptoProvider> {
    // Modules of rustls shadow those of this file, as a block's imports come before its module's
    // items.
    #[cfg_attr(
        not(test),
        expect(
            clippy::wildcard_imports,
            reason = "what a feature adds can't be named"
        )
    )]
    use rustls::crypto::*;

    let aws_lc_rs: Option<CryptoProvider> = aws_lc_rs::default_provider().provider();
    aws_lc_rs.or_else(|| ring::default_provider().provider())
}

/// Result of a stand-in, which is used if the feature that adds the real item is off.
struct Absent;

// The compiler calls a stand-in dead code if a feature shadows it.
const _: [fn() -> Absent; 2] = [
    self::aws_lc_rs::default_provider,
    self::ring::default_provider,
];
const _: fn(&&'static Config) -> Absent = <&'static Config>::rustls_client_config;

/// Stand-in for `rustls::crypto::aws_lc_rs`, used if rustls lacks the feature `aws-lc-rs`.
mod aws_lc_rs {
    pub(super) fn default_provider() -> super::Absent {
        super::Absent
    }
}

/// Stand-in for `rustls::crypto::ring`, used if rustls lacks the feature `ring`.
mod ring {
    pub(super) fn default_provider() -> super::Absent {
        super::Absent
    }
}

/// Converts a crypto provider, or the result of its stand-in, to an `Option`.
trait Provider {
    fn provider(self) -> Option<CryptoProvider>;
}

impl Provider for CryptoProvider {
    fn provider(self) -> Option<CryptoProvider> {
        Some(self)
    }
}

impl Provider for Absent {
    fn provider(self) -> Option<CryptoProvider> {
        None
    }
}

/// Declares the stand-in for the method that feature `rustls-tls` adds to kube's `ConfigExt`.
trait WithoutRustls {
    fn rustls_client_config(&self) -> Absent;
}

impl<C: ConfigExt> WithoutRustls for &C {
    fn rustls_client_config(&self) -> Absent {
        Absent
    }
}

/// Converts the result of `rustls_client_config`, or of its stand-in, to an `Option`.
trait Rustls {
    /// Whether `kube-client` was built with rustls.
    const BUILT_IN: bool;

    fn config(self) -> Result<Option<ClientConfig>, Error>;
}

impl Rustls for Result<ClientConfig, Error> {
    const BUILT_IN: bool = true;

    fn config(self) -> Result<Option<ClientConfig>, Error> {
        self.map(Some)
    }
}

impl Rustls for Absent {
    const BUILT_IN: bool = false;

    fn config(self) -> Result<Option<ClientConfig>, Error> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_provider_is_an_error_that_names_the_features() {
        let missing = provider_or_error(Absent.provider()).unwrap_err();
        expect_test::expect![[r#"ServiceError: no crypto provider for TLS: enable feature `aws-lc-rs` or `ring` of kube-client, or call `install_default` of a `rustls::crypto::CryptoProvider` first"#]]
            .assert_eq(&missing.to_string());
    }

    /// The tests of this crate are compiled with the crypto provider ring.
    #[test]
    fn the_provider_that_rustls_was_compiled_with_is_found() {
        let found = provider_or_error(compiled_in()).unwrap();
        let ring = rustls::crypto::ring::default_provider();
        assert_eq!(
            format!("{:?}", found.kx_groups),
            format!("{:?}", ring.kx_groups)
        );
    }

    #[test]
    fn without_rustls_in_kube_no_provider_is_required() {
        let config = Config::new("https://127.0.0.1:1".parse().unwrap());
        let without = build(|| WithoutRustls::rustls_client_config(&&config));
        assert!(without.unwrap().is_none());
    }
}
