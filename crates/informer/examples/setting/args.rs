//! Parses the arguments `--kubeconfig` and `--context`, which all examples accept, even those that use no
//! cluster.

use std::{env, path::PathBuf};

use anyhow::{Context, bail};

const USAGE: &str =
    "usage: [--kubeconfig FILE] [--context NAME]; without arguments an embedded server is used";

/// Returns the path of the kubeconfig file and the name of the context; `None` for a missing argument.
///
/// # Errors
/// Returns an error if an argument is unknown or has no value.
pub(crate) fn parse() -> anyhow::Result<(Option<PathBuf>, Option<String>)> {
    let (mut kubeconfig, mut context) = (None, None);
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--kubeconfig" => kubeconfig = Some(value()?.into()),
            "--context" => context = Some(value()?),
            _ => bail!("unknown argument {arg:?}; {USAGE}"),
        }
    }
    Ok((kubeconfig, context))
}
