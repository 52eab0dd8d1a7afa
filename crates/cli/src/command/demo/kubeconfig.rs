//! Reads the configuration of a client from a kubeconfig.
//!
//! Guarantees: each error is one line that contains the path of the file and the next step for the user. No
//! error quotes the content of the file, which can contain secrets.

use std::path::Path;

use anyhow::{anyhow, bail};
use kube_client::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Returns the configuration for `context`, or for the current context of the kubeconfig at `path`.
pub(super) async fn config_of(path: &Path, context: Option<&str>) -> anyhow::Result<Config> {
    let shown = path.display();
    if let Err(error) = std::fs::File::open(path) {
        bail!("can't read the kubeconfig {shown}: {error}; name another file with --kubeconfig");
    }
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| {
        // The parser's further lines quote the file.
        let error = error.to_string();
        let error = error.lines().next().unwrap_or_default();
        anyhow!("can't parse the kubeconfig {shown}: {error}; name another file with --kubeconfig")
    })?;
    let contexts: Vec<_> = kubeconfig
        .contexts
        .iter()
        .map(|context| &*context.name)
        .collect();
    let wanted = context.or(kubeconfig.current_context.as_deref());
    if !wanted.is_some_and(|wanted| contexts.contains(&wanted)) {
        return Err(no_context(path, wanted, &contexts));
    }
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| {
            let error = one_line(&error.to_string());
            anyhow!("can't use the kubeconfig {shown}: {error}; correct it, or name another file with --kubeconfig")
        })
}

/// Returns the error for a kubeconfig without the context `wanted`, or without a current context.
fn no_context(path: &Path, wanted: Option<&str>, contexts: &[&str]) -> anyhow::Error {
    let (shown, has) = (path.display(), contexts.join(", "));
    match wanted {
        _ if contexts.is_empty() => anyhow!(
            "no contexts in the kubeconfig {shown}; name another file with --kubeconfig, or omit --kubeconfig to use an embedded server"
        ),
        Some(wanted) => anyhow!(
            "no context {wanted:?} in the kubeconfig {shown}; add --context with one of: {has}"
        ),
        None => anyhow!(
            "no current context in the kubeconfig {shown}; run \"kubectl config use-context NAME --kubeconfig {shown}\", or add --context with one of: {has}"
        ),
    }
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
