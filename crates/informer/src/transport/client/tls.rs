//! Selects the TLS backend and the crypto provider for the client of [`super::connect`].
//!
//! Guarantees:
//! - If `kube-client` has the features `rustls-tls` and `openssl-tls`, `rustls-tls` takes precedence, as in
//!   kube's own client builder.
//! - rustls uses the crypto provider that the process has installed. If the process has installed none, this
//!   module installs the provider that rustls was compiled with: `aws-lc-rs` if available, otherwise `ring`.
//! - Without a crypto provider or a TLS backend, the functions return an error that names the features to
//!   enable.
//!
//! A crate can't query the features of its dependencies. For each item of rustls and kube that exists only
//! with a feature, this module therefore declares a stand-in with the same name. The compiler selects the
//! stand-in if the feature is disabled.

use kube_client::{Client, Config, Error, client::ConfigExt};
use rustls::{ClientConfig, crypto::CryptoProvider};

/// Error for a TLS connection if a crypto provider is neither installed nor compiled in.
#[derive(Debug, thiserror::Error)]
#[error(
    "no crypto provider for TLS: enable feature `aws-lc-rs` or `ring` of kube-client, \
     or call `install_default` of a `rustls::crypto::CryptoProvider` first"
)]
struct NoProvider;

/// Error for a TLS connection if `kube-client` was built without a TLS backend.
#[derive(Debug, thiserror::Error)]
#[error(
    "no TLS backend: enable feature `rustls-tls` of kube-client with `aws-lc-rs` or `ring`, \
     or feature `openssl-tls`"
)]
struct NoBackend;

/// Error for HTTP/2 with prior knowledge over TLS if `kube-client` was built without rustls.
#[derive(Debug, thiserror::Error)]
#[error(
    "HTTP/2 with prior knowledge over TLS needs rustls: \
     enable feature `rustls-tls` of kube-client with `aws-lc-rs` or `ring`"
)]
pub(super) struct NoRustls;

/// Returns the rustls configuration for the server in `config`, if `kube-client` was built with rustls.
///
/// # Errors
/// Returns an error if there is no crypto provider, or if certificates or keys can't be read.
pub(super) fn rustls_config(config: &Config) -> Result<Option<ClientConfig>, Error> {
    // Resolves to kube's method, which takes a `&Config`, if it exists; otherwise to the stand-in,
    // which takes a `&&Config`.
    build(|| config.rustls_client_config())
}

/// Creates a client for HTTP/1.1 with kube's own client builder.
///
/// # Errors
/// Returns an error if there is no crypto provider or no TLS backend, or if kube's client builder fails.
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

/// Installs rustls' compiled-in crypto provider if kube uses rustls and the process has no provider.
///
/// `_make` is not called. Its return type `R` shows whether kube uses rustls ([`Rustls::BUILT_IN`]).
///
/// # Errors
/// Returns an error if kube uses rustls, and a crypto provider is neither installed nor compiled in.
fn require_provider<R: Rustls>(_make: &impl Fn() -> R) -> Result<(), Error> {
    if !R::BUILT_IN || CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    let provider = provider_or_error(compiled_in())?;
    // Fails if another thread has installed a provider in the meantime. That provider then applies.
    drop(provider.install_default());
    Ok(())
}

fn provider_or_error<P>(compiled_in: Option<P>) -> Result<P, Error> {
    compiled_in.ok_or_else(|| failed(NoProvider))
}

/// Returns the crypto provider compiled into rustls, if any; prefers aws-lc-rs to ring.
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

/// Return type of the stand-ins. A stand-in replaces a function of rustls or kube if a feature is disabled.
///
/// The traits [`Provider`] and [`Rustls`] are implemented for this type and for the result types of the
/// original functions. A caller can therefore process either result.
struct Absent;

// The compiler calls a stand-in dead code if a feature shadows it.
const _: [fn() -> Absent; 2] = [
    self::aws_lc_rs::default_provider,
    self::ring::default_provider,
];
const _: fn(&&'static Config) -> Absent = <&'static Config>::rustls_client_config;

/// Stand-in for `rustls::crypto::aws_lc_rs`, so that this module compiles if the feature `aws-lc-rs` of
/// rustls is disabled.
mod aws_lc_rs {
    pub(super) fn default_provider() -> super::Absent {
        super::Absent
    }
}

/// Stand-in for `rustls::crypto::ring`, so that this module compiles if the feature `ring` of rustls is
/// disabled.
mod ring {
    pub(super) fn default_provider() -> super::Absent {
        super::Absent
    }
}

/// Converts the result of a `default_provider` function to an `Option`.
///
/// The option is `None` if the provider's feature of rustls is disabled.
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

/// Provides a method `rustls_client_config` if `kube-client` lacks the feature `rustls-tls`.
///
/// With the feature, kube's method of the same name takes precedence.
trait WithoutRustls {
    fn rustls_client_config(&self) -> Absent;
}

impl<C: ConfigExt> WithoutRustls for &C {
    fn rustls_client_config(&self) -> Absent {
        Absent
    }
}

/// Converts the result of `rustls_client_config` to an optional configuration of rustls.
///
/// The configuration is `None` if `kube-client` was built without rustls.
trait Rustls {
    /// Whether `kube-client` was built with feature `rustls-tls`.
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

    /// The expected provider is ring, because the tests of this crate enable only ring.
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
