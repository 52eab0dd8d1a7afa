//! Parses the command line of a program that was started under the name `kube-apiserver` or `etcd`.
//!
//! The flags are those of the original programs, so that scripts and test environments need no change. A flag that the
//! original does not have is an error. A flag without effect here is reported when the program starts.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, ArgMatches, parser::ValueSource};
use kube_informer_apiserver::Authorization;
use tracing::level_filters::LevelFilter;

use super::{Asked, Wanted, refuse};
use crate::command::{
    Command,
    stand_in::{Etcd, KubeApiserver},
};

/// The flags of kube-apiserver 1.36, one per line; `?` follows the name of a flag whose value can be left out.
const KUBE_APISERVER: &str = include_str!("kube_apiserver_flags.txt");

/// The flags of etcd 3.6, in the same format.
const ETCD: &str = include_str!("etcd_flags.txt");

/// Default of `--secure-port`.
const SECURE_PORT: u16 = 6443;

/// Default of `--cert-dir`.
const CERT_DIR: &str = "/var/run/kubernetes";

/// Default of `--listen-client-urls`.
const CLIENT_URL: &str = "http://localhost:2379";

/// Flags whose effect the server has anyway, or that only concern parts of a cluster that it does not have.
const FULFILLED: [&str; 12] = [
    "advertise-address",
    "advertise-client-urls",
    "allow-privileged",
    "data-dir",
    "disable-admission-plugins",
    "etcd-servers",
    "listen-peer-urls",
    "service-account-issuer",
    "service-account-key-file",
    "service-account-signing-key-file",
    "unsafe-no-fsync",
    "v",
];

/// Parses the arguments if the program has the name of one that it can stand in for.
pub(super) fn read(arguments: &[OsString]) -> Option<Asked> {
    let program = Path::new(arguments.first()?).file_name()?;
    let raise = if program == OsStr::new("kube-apiserver") {
        let parsed = parse("kube-apiserver", KUBE_APISERVER, arguments);
        parsed.map(|flags| {
            (
                flags.verbosity(),
                kube_apiserver(flags).map(Command::KubeApiserver),
            )
        })
    } else if program == OsStr::new("etcd") {
        let parsed = parse("etcd", ETCD, arguments);
        parsed.map(|flags| (LevelFilter::ERROR, etcd(flags).map(Command::Etcd)))
    } else {
        return None;
    };
    Some(match raise {
        Err(error) => refuse(&error),
        Ok((_, Err(what))) => Asked::Wrongly(what),
        Ok((verbosity, Ok(command))) => Asked::For(Wanted { verbosity, command }),
    })
}

fn kube_apiserver(mut flags: Flags) -> Result<KubeApiserver, String> {
    let ip = flags.parsed("bind-address", IpAddr::V4(Ipv4Addr::LOCALHOST))?;
    let port = flags.parsed("secure-port", SECURE_PORT)?;
    let directory = flags.take("cert-dir");
    let directory = PathBuf::from(directory.as_deref().unwrap_or(CERT_DIR));
    let [certificate, key] = [
        ("tls-cert-file", "apiserver.crt"),
        ("tls-private-key-file", "apiserver.key"),
    ]
    .map(|(flag, name)| {
        let path = flags.take(flag).map(PathBuf::from);
        path.unwrap_or_else(|| directory.join(name))
    });
    let modes = flags.take("authorization-mode");
    Ok(KubeApiserver {
        address: SocketAddr::new(ip, port),
        authorization: authorization(modes.as_deref())?,
        certificate,
        key,
        client_ca: flags.take("client-ca-file").map(PathBuf::from),
        tokens: flags.take("token-auth-file").map(PathBuf::from),
        without_effect: flags.rest(),
    })
}

/// Returns the authorization that a value of `--authorization-mode` selects: every mode can allow a request.
fn authorization(modes: Option<&str>) -> Result<Authorization, String> {
    let modes: Vec<&str> = modes.unwrap_or("AlwaysAllow").split(',').collect();
    // No kubelet is here, for which the mode `Node` would allow requests.
    let unknown = modes
        .iter()
        .find(|mode| !["AlwaysAllow", "Node", "RBAC"].contains(mode));
    match unknown {
        Some(mode) => Err(format!(
            "--authorization-mode has {mode:?}; AlwaysAllow, Node and RBAC are supported"
        )),
        None if modes.contains(&"AlwaysAllow") => Ok(Authorization::AlwaysAllow),
        None => Ok(Authorization::Rbac),
    }
}

fn etcd(mut flags: Flags) -> Result<Etcd, String> {
    let urls = flags.take("listen-client-urls");
    let urls = urls.as_deref().unwrap_or(CLIENT_URL).split(',');
    let addresses: Result<Vec<SocketAddr>, String> = urls.map(address).collect();
    Ok(Etcd {
        addresses: addresses?,
        without_effect: flags.rest(),
    })
}

/// Returns the address in a URL such as `http://127.0.0.1:2379`.
fn address(url: &str) -> Result<SocketAddr, String> {
    let host = url.trim().strip_prefix("http://");
    let host = host.map(|host| host.trim_end_matches('/').replace("localhost", "127.0.0.1"));
    host.and_then(|host| host.parse().ok()).ok_or_else(|| {
        format!("--listen-client-urls has {url:?}; only URLs such as http://127.0.0.1:2379 are supported")
    })
}

/// The flags of a command line, with their last values.
struct Flags(BTreeMap<String, String>);

fn parse(
    name: &'static str,
    table: &'static str,
    arguments: &[OsString],
) -> Result<Flags, clap::Error> {
    let flags = table.lines().filter(|line| !line.is_empty());
    let flags = flags.map(|line| {
        let (flag, is_optional) = match line.strip_suffix('?') {
            Some(flag) => (flag, true),
            None => (line, false),
        };
        let arg = Arg::new(flag).long(flag).action(ArgAction::Append);
        let arg = if flag == "v" { arg.short('v') } else { arg };
        if is_optional {
            arg.num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
        } else {
            arg
        }
    });
    let command = clap::Command::new(name).version("1.36, by kubectl-informer").args(flags).about(
        "kubectl-informer in place of the program of this name, for tests. Only some of the flags have an effect; the others are reported.",
    );
    Ok(Flags::of(&command.try_get_matches_from(arguments)?))
}

impl Flags {
    fn of(matches: &ArgMatches) -> Self {
        let typed = matches
            .ids()
            .map(clap::Id::as_str)
            .filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
        let values = typed.filter_map(|id| {
            let value = matches.get_many::<String>(id)?.next_back()?;
            Some((id.to_owned(), value.clone()))
        });
        Self(values.collect())
    }

    fn take(&mut self, flag: &str) -> Option<String> {
        self.0.remove(flag)
    }

    fn parsed<T: std::str::FromStr>(&mut self, flag: &str, default: T) -> Result<T, String> {
        let Some(value) = self.take(flag) else {
            return Ok(default);
        };
        let parsed = value.parse();
        parsed.map_err(|_| format!("--{flag} has the invalid value {value:?}"))
    }

    fn verbosity(&self) -> LevelFilter {
        match self.0.get("v").and_then(|level| level.parse().ok()) {
            None | Some(0) => LevelFilter::ERROR,
            Some(1..=3) => LevelFilter::WARN,
            Some(4 | 5) => LevelFilter::INFO,
            Some(_) => LevelFilter::TRACE,
        }
    }

    /// Returns the names of the flags that have no effect here.
    fn rest(self) -> Vec<String> {
        let names = self.0.into_keys();
        names.filter(|name| !FULFILLED.contains(&&**name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Asked {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        read(&arguments).expect("the name is known")
    }

    #[test]
    fn the_flags_of_envtest_are_understood() {
        let line = "/assets/kube-apiserver --allow-privileged=true --authorization-mode=RBAC --bind-address=127.0.0.1 \
            --cert-dir=/tmp/k8s --client-ca-file=/tmp/k8s/client-cert-auth-ca.crt --disable-admission-plugins=ServiceAccount \
            --etcd-servers=http://127.0.0.1:2379 --secure-port=38381 --service-account-issuer=https://127.0.0.1:38381/ \
            --service-account-key-file=/tmp/k8s/sa-signer.crt --service-account-signing-key-file=/tmp/k8s/sa-signer.key \
            --service-cluster-ip-range=10.0.0.0/24 -v=4";
        let Asked::For(Wanted {
            verbosity,
            command: Command::KubeApiserver(options),
        }) = typed(line)
        else {
            panic!("{line}");
        };
        assert_eq!(verbosity, LevelFilter::INFO);
        let expected = KubeApiserver {
            address: "127.0.0.1:38381".parse().unwrap(),
            authorization: Authorization::Rbac,
            certificate: "/tmp/k8s/apiserver.crt".into(),
            key: "/tmp/k8s/apiserver.key".into(),
            client_ca: Some("/tmp/k8s/client-cert-auth-ca.crt".into()),
            tokens: None,
            without_effect: vec!["service-cluster-ip-range".to_owned()],
        };
        assert_eq!(options, expected);
        let line = "etcd --advertise-client-urls=http://127.0.0.1:1 --data-dir=/tmp/e --listen-client-urls=http://127.0.0.1:1,http://localhost:2 --listen-peer-urls=http://127.0.0.1:3 --unsafe-no-fsync=true";
        let Asked::For(Wanted {
            command: Command::Etcd(options),
            ..
        }) = typed(line)
        else {
            panic!("{line}");
        };
        let addresses = ["127.0.0.1:1", "127.0.0.1:2"].map(|address| address.parse().unwrap());
        assert_eq!(
            options,
            Etcd {
                addresses: addresses.into(),
                without_effect: Vec::new()
            }
        );
    }

    #[test]
    fn flags_without_effect_are_reported_and_unknown_flags_are_errors() {
        let line = "kube-apiserver --feature-gates=A=true --anonymous-auth --feature-gates B=false";
        let Asked::For(Wanted {
            command: Command::KubeApiserver(options),
            ..
        }) = typed(line)
        else {
            panic!("{line}");
        };
        assert_eq!(options.without_effect, ["anonymous-auth", "feature-gates"]);
        assert_eq!(options.address.port(), SECURE_PORT);
        for (line, expected) in [
            ("kube-apiserver --insecure-port=0", "--insecure-port"),
            (
                "kube-apiserver --secure-port=many",
                "--secure-port has the invalid value \"many\"",
            ),
            (
                "kube-apiserver --authorization-mode=RBAC,ABAC",
                "--authorization-mode has \"ABAC\"",
            ),
            (
                "etcd --listen-client-urls=unix://a",
                "http://127.0.0.1:2379",
            ),
        ] {
            match typed(line) {
                Asked::Wrongly(what) => assert!(what.contains(expected), "{what}"),
                other => panic!("{line}: {other:?}"),
            }
        }
        assert!(read(&["kubectl-informer".into(), "serve".into()]).is_none());
    }

    #[test]
    fn help_lists_the_flags_at_the_start_of_lines() {
        for (line, flag) in [
            ("etcd --help", "--unsafe-no-fsync"),
            ("kube-apiserver --help", "--bind-address"),
        ] {
            let Asked::Help(text) = typed(line) else {
                panic!("{line}");
            };
            assert!(text.lines().any(|line| line.trim_start().starts_with(flag)));
        }
    }
}
