//! Runs the embedded server in place of `kube-apiserver` and `etcd`, as the test environment of controller-runtime
//! (envtest) and of kubebuilder starts them.
//!
//! Guarantees:
//! - the server listens only where the flags say, with the certificates that they name;
//! - SIGTERM and SIGINT end the process with exit code 0, as they end the original programs.
//!
//! Both processes exist only because the test environment starts two. The objects are in the memory of
//! `kube-apiserver`, and are lost when it ends. `etcd` stores nothing.

mod health;

use std::{
    fs, io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use kube_informer_apiserver::{Authorization, Server, Tls, User};

use super::Ending;
use crate::{interrupt::Interrupt, output};

/// The flags of `kube-apiserver` that have an effect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KubeApiserver {
    pub(crate) address: SocketAddr,
    pub(crate) authorization: Authorization,
    /// File with the server's certificate in PEM. If it does not exist, a certificate is generated.
    pub(crate) certificate: PathBuf,
    /// File with the key of the certificate in PEM.
    pub(crate) key: PathBuf,
    /// File with the authorities of client certificates in PEM.
    pub(crate) client_ca: Option<PathBuf>,
    /// File with tokens, one per line: token, name, uid and groups in quotes.
    pub(crate) tokens: Option<PathBuf>,
    /// The names of flags that were passed and have no effect.
    pub(crate) without_effect: Vec<String>,
}

/// The flags of `etcd` that have an effect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Etcd {
    pub(crate) addresses: Vec<SocketAddr>,
    /// The names of flags that were passed and have no effect.
    pub(crate) without_effect: Vec<String>,
}

/// Runs the server in place of `kube-apiserver` until a signal arrives.
pub(crate) async fn kube_apiserver(
    options: &KubeApiserver,
    interrupt: &mut Interrupt,
) -> anyhow::Result<Ending> {
    warn_of(&options.without_effect);
    let mut builder = Server::builder()
        .authorization(options.authorization)
        .allow_remote(!options.address.ip().is_loopback());
    if let Some(path) = &options.tokens {
        for (token, user) in tokens(&read(path)?).map_err(|line| not_a_token(path, line))? {
            builder = builder.token(&token, user);
        }
    }
    let server = builder.build();
    let tls = tls(options)?;
    let address = options.address;
    let listening = server.listen_tls(address, &tls).await;
    let listening = listening.with_context(|| format!("can't listen on {address}"))?;
    output::complain(format_args!(
        "kubectl-informer serves in place of kube-apiserver at https://{}; objects are in memory",
        listening.local_addr()
    ));
    interrupt.next().await;
    listening.shutdown().await;
    Ok(Ending::Done)
}

/// Runs in place of `etcd`: answers health checks until a signal arrives.
pub(crate) async fn etcd(options: &Etcd, interrupt: &mut Interrupt) -> anyhow::Result<Ending> {
    warn_of(&options.without_effect);
    let health = health::Health::listen(&options.addresses).await?;
    output::complain("kubectl-informer runs in place of etcd and stores nothing");
    interrupt.next().await;
    health.shutdown().await;
    Ok(Ending::Done)
}

fn warn_of(without_effect: &[String]) {
    if !without_effect.is_empty() {
        let names = without_effect.join(", --");
        output::complain(format_args!("flags without effect: --{names}"));
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))
}

/// Reads the certificates, or generates one for the address if there is none, as kube-apiserver does.
fn tls(options: &KubeApiserver) -> anyhow::Result<Tls> {
    let chain = match fs::read_to_string(&options.certificate) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && options.client_ca.is_none() => {
            let host = host_of(options.address.ip());
            return Ok(Tls::generate([host.as_str()])?);
        }
        other => other.with_context(|| format!("can't read {}", options.certificate.display()))?,
    };
    let client_ca = options.client_ca.as_deref().map(read).transpose()?;
    Ok(Tls::from_pem(
        &chain,
        &read(&options.key)?,
        client_ca.as_deref(),
    )?)
}

fn host_of(address: IpAddr) -> String {
    if address.is_unspecified() {
        return "localhost".to_owned();
    }
    address.to_string()
}

/// Parses a file of tokens. Returns the number of the first malformed line as an error.
fn tokens(text: &str) -> Result<Vec<(String, User)>, usize> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let tokens = lines.map(|(at, line)| {
        let (fixed, groups) = match line.split_once('"') {
            Some((fixed, groups)) => (fixed, groups.strip_suffix('"').ok_or(at + 1)?),
            None => (line, ""),
        };
        let mut fields = fixed.split(',').map(str::trim);
        let (Some(token), Some(name), Some(_uid)) = (fields.next(), fields.next(), fields.next())
        else {
            return Err(at + 1);
        };
        let unquoted = fields.filter(|group| !group.is_empty());
        let quoted = groups.split(',').map(str::trim);
        let groups = unquoted.chain(quoted.filter(|group| !group.is_empty()));
        if token.is_empty() || name.is_empty() {
            return Err(at + 1);
        }
        let user = groups.fold(User::new(name), User::in_group);
        Ok((token.to_owned(), user))
    });
    tokens.collect()
}

fn not_a_token(path: &Path, line: usize) -> anyhow::Error {
    anyhow!(
        "{} line {line} is no token: expected token,name,uid,\"group,group\"",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_tokens_has_users_and_groups() {
        let text = "t1,admin,1,\"system:masters,ops\"\n\nt2, joe ,2\nt3,ann,3,solo\n";
        let expected = [
            (
                "t1",
                User::new("admin")
                    .in_group("system:masters")
                    .in_group("ops"),
            ),
            ("t2", User::new("joe")),
            ("t3", User::new("ann").in_group("solo")),
        ];
        let expected = expected.map(|(token, user)| (token.to_owned(), user));
        assert_eq!(tokens(text), Ok(expected.to_vec()));
        assert_eq!(tokens("t1,admin,1\nt2,joe\n"), Err(2));
        assert_eq!(tokens("t1,admin,1,\"open\n"), Err(1));
        assert_eq!(tokens(",admin,1\n"), Err(1));
    }
}
