//! Parses the arguments `--kubeconfig` and `--context`.
//!
//! All examples accept these arguments, including the examples that use no cluster.

use std::{env, path::PathBuf};

use anyhow::{Context, bail};

const USAGE: &str =
    "usage: [--kubeconfig FILE] [--context NAME]; without arguments an embedded server is used";

/// Returns the values of `--kubeconfig` and `--context`. `None` means that the argument is missing.
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
