//! Starts several processes of a measured program, which list and watch at the same time, and collects their
//! results.
//!
//! Guarantees: each client is a process with its own connections. Dropping [`Clients`] kills all its
//! processes.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::case::Case;

/// Maximum time that [`Clients`] waits for the next line of a client's output.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Returns the name of the results of `clients` simultaneous clients, for example `{name}, 8 at once`.
pub(super) fn at_once(name: &str, clients: usize) -> String {
    match clients {
        1 => name.to_owned(),
        _ => format!("{name}, {clients} at once"),
    }
}

/// The client processes of one run. Dropping this value kills the processes.
pub(super) struct Clients(Vec<Running>);

struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Clients {
    /// Starts `count` processes of `program`, each of which exits after `events` pod changes.
    ///
    /// # Errors
    /// Returns an error if the program can't be started.
    pub(super) fn start(
        program: &Path,
        case: &Case,
        count: usize,
        kubeconfig: &Path,
        events: usize,
    ) -> Result<Self> {
        let start = |_| {
            let mut child = Command::new(program)
                .args(&case.arguments)
                .arg("--kubeconfig")
                .arg(kubeconfig)
                .args(["--events", &events.to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .with_context(|| format!("can't start {}", program.display()))?;
            let output = child.stdout.take().context("standard output is piped")?;
            let lines = BufReader::new(output).lines();
            Ok(Running { child, lines })
        };
        (0..count).map(start).collect::<Result<_>>().map(Self)
    }

    /// Waits until each client has printed the line `expected`.
    ///
    /// # Errors
    /// Returns an error if a client prints another line, exits, or prints nothing for [`SILENCE_MAX`].
    pub(super) async fn all_print(&mut self, expected: &str) -> Result<()> {
        for client in &mut self.0 {
            let line = client.line().await?;
            ensure!(
                line == expected,
                "a client printed {line:?} instead of {expected:?}"
            );
        }
        Ok(())
    }

    /// Waits until all clients have exited, and returns their combined results.
    ///
    /// # Errors
    /// Returns an error if a client fails, prints no JSON object, or prints nothing for [`SILENCE_MAX`].
    pub(super) async fn finish(mut self) -> Result<Map<String, Value>> {
        let mut figures = Vec::new();
        for client in &mut self.0 {
            let line = client.line().await?;
            let line = serde_json::from_str(&line);
            figures.push(line.context("the figures are not a JSON object")?);
            let status = client.child.wait().await?;
            ensure!(status.success(), "a client failed: {status}");
        }
        Ok(together(&figures))
    }
}

impl Running {
    async fn line(&mut self) -> Result<String> {
        let Ok(line) = timeout(SILENCE_MAX, self.lines.next_line()).await else {
            bail!("a client printed nothing for {SILENCE_MAX:?}");
        };
        line?.context("a client ended early")
    }
}

/// Returns the longest sync time of several clients, and the mean of every other field.
fn together(figures: &[Map<String, Value>]) -> Map<String, Value> {
    let of = |field: &str| -> Vec<f64> {
        let values = figures.iter().filter_map(|line| line.get(field)?.as_f64());
        values.collect()
    };
    let most = |field| of(field).into_iter().reduce(f64::max);
    let mean = |field| {
        let values = of(field);
        let count = f64::from(u32::try_from(values.len()).ok()?);
        (count > 0.0).then(|| values.iter().sum::<f64>() / count)
    };
    [
        ("objects", mean("objects")),
        ("sync_s", most("sync_s")),
        ("sync_cpu_s", mean("sync_cpu_s")),
        ("peak_kib", mean("peak_kib")),
        ("steady_kib", mean("steady_kib")),
        ("cpu_us_per_event", mean("cpu_us_per_event")),
    ]
    .into_iter()
    .map(|(field, value)| (field.to_owned(), json!(value)))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_time_is_the_maximum_and_cost_the_mean_of_all_clients() {
        let line = |text: &str| serde_json::from_str(text).unwrap();
        let figures = [
            line(r#"{"sync_s": 1.0, "sync_cpu_s": 2.0, "p50_us": null}"#),
            line(r#"{"sync_s": 5.0, "sync_cpu_s": 3.0, "p50_us": null}"#),
        ];
        let both = together(&figures);
        assert_eq!(both["sync_s"], json!(5.0));
        assert_eq!(both["sync_cpu_s"], json!(2.5));
        assert_eq!(both["steady_kib"], Value::Null);
    }
}
