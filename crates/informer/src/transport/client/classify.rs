//! Converts an error of a kube client to an [`Error`] with a [`Class`] and a readable message.
//!
//! Guarantees: neither a converted error nor its sources contain credentials or the output of a credential
//! plugin.

use std::error::Error as StdError;

use kube_client::client::AuthError;

use crate::{
    limits::one_line,
    transport::{Class, Error},
};

pub(crate) fn classify(error: kube_client::Error) -> Error {
    if let kube_client::Error::Api(status) = &error {
        let body = serde_json::to_vec(status).unwrap_or_default();
        return Error::from_status_body(status.code, &body);
    }
    let mut class = Class::Connection;
    let mut root: &(dyn StdError + 'static) = &error;
    let mut next = Some(root);
    while let Some(cause) = next {
        if let Some(refused) = cause.downcast_ref::<AuthError>() {
            return without_credentials(refused);
        }
        root = cause;
        next = match cause.downcast_ref::<std::io::Error>() {
            Some(io) => {
                match io.kind() {
                    std::io::ErrorKind::ConnectionRefused => class = Class::ConnectionRefused,
                    std::io::ErrorKind::TimedOut => class = Class::Timeout,
                    _ => {}
                }
                // An io::Error that wraps another error displays that one, so continue with the wrapped one.
                io.get_ref()
                    .map(|inner| inner as &(dyn StdError + 'static))
                    .or_else(|| io.source())
            }
            None => cause.source(),
        };
    }
    let what = match class {
        Class::ConnectionRefused => {
            "connection refused: no server listens at the API server's address; check the address, and that the server runs".to_owned()
        }
        Class::Timeout => "the server did not respond in time".to_owned(),
        // Includes the cause: a wrong name, certificate or network is otherwise not visible.
        _ => format!(
            "the connection to the server failed: {}",
            one_line(&root.to_string(), 200)
        ),
    };
    Error::new(class, what).with_source(error)
}

/// Returns an error about invalid credentials if `cause` or one of its sources is an [`AuthError`].
pub(super) fn without_credentials_of(cause: &(dyn StdError + 'static)) -> Option<Error> {
    let causes = std::iter::successors(Some(cause), |&cause| cause.source());
    let mut refused = causes.filter_map(|cause| cause.downcast_ref::<AuthError>());
    refused.next().map(without_credentials)
}

/// Returns an error that describes which part of the credentials is missing or invalid.
///
/// The error has no source, because kube's error may contain a credential from a plugin's output.
fn without_credentials(error: &AuthError) -> Error {
    let what = match error {
        AuthError::AuthExecStart(_) => {
            "the credential plugin can't be started; check the command of the user's exec plugin in the kubeconfig"
        }
        AuthError::AuthExecRun { .. } => {
            "the credential plugin failed; run its command by hand to see its output"
        }
        AuthError::AuthExecParse(_) => {
            "the credential plugin returned no valid ExecCredential; run its command by hand to see its output"
        }
        AuthError::ReadTokenFile(..) => {
            "the token file can't be read; check that it exists, and its permissions"
        }
        _ => "the credentials are invalid; check the user in the kubeconfig",
    };
    Error::new(Class::Unauthorized, what)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_failed_connection_has_a_one_line_reason() {
        let inner = std::io::Error::other("invalid peer certificate:\nUnknownIssuer");
        let error = kube_client::Error::Service(Box::new(std::io::Error::other(inner)));
        let error = classify(error);
        assert_eq!(error.class(), Class::Connection);
        assert_eq!(
            error.to_string(),
            "the connection to the server failed: invalid peer certificate: UnknownIssuer"
        );
    }

    #[test]
    fn every_failure_of_credentials_and_connections_has_its_text() {
        let io = |kind| std::io::Error::from(kind);
        let missing = || io(std::io::ErrorKind::NotFound);
        let refused = [
            AuthError::AuthExecStart(missing()),
            AuthError::ReadTokenFile(missing(), "/s3cret".into()),
            AuthError::MissingCommand,
        ];
        let refused = refused.map(kube_client::Error::Auth);
        let broken = [
            std::io::ErrorKind::ConnectionRefused,
            std::io::ErrorKind::TimedOut,
            std::io::ErrorKind::ConnectionReset,
        ];
        let broken = broken.map(|kind| kube_client::Error::Service(Box::new(io(kind))));
        let texts = refused.into_iter().chain(broken).map(|error| {
            let error = classify(error);
            format!("{}: {error}\n", error.class().as_str())
        });
        expect![[r#"
            unauthorized: the credential plugin can't be started; check the command of the user's exec plugin in the kubeconfig
            unauthorized: the token file can't be read; check that it exists, and its permissions
            unauthorized: the credentials are invalid; check the user in the kubeconfig
            connection_refused: connection refused: no server listens at the API server's address; check the address, and that the server runs
            timeout: the server did not respond in time
            connection: the connection to the server failed: connection reset
        "#]].assert_eq(&texts.collect::<String>());
    }

    #[test]
    fn no_error_contains_the_output_of_a_plugin() {
        let output = std::process::Output {
            status: std::process::ExitStatus::default(),
            stdout: b"{\"token\": \"s3cret\"}".to_vec(),
            stderr: Vec::new(),
        };
        let failed = || AuthError::AuthExecRun {
            cmd: "plugin".to_owned(),
            out: Box::new(output.clone()),
        };
        let unmade = kube_client::Error::Auth(failed());
        let unmade = without_credentials_of(&unmade).unwrap();
        assert_eq!(
            unmade.to_string(),
            "the credential plugin failed; run its command by hand to see its output"
        );
        assert!(unmade.source().is_none(), "{unmade:?}");
        let direct = kube_client::Error::Auth(failed());
        let wrapped = kube_client::Error::Service(Box::new(std::io::Error::other(failed())));
        for error in [direct, wrapped] {
            let error = classify(error);
            assert_eq!(error.class(), Class::Unauthorized);
            assert_eq!(
                error.to_string(),
                "the credential plugin failed; run its command by hand to see its output"
            );
            assert!(error.source().is_none(), "{error:?}");
        }
    }
}
