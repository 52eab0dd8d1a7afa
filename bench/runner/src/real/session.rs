//! Runs the measurements of `cargo xtask bench real` one after the other.
//!
//! A measurement consists of rounds. Each round first measures the server without clients. The round then has
//! one block for each combination of a case (a program with its arguments) and a number of clients. A block
//! runs its case several times.
//!
//! Guarantees: each block starts a new kube-apiserver process. The processes of all blocks use one etcd.

use anyhow::{Context as _, Result};
use kube_client::Client;
use kube_informer_realserver::{Binaries, ControlPlane};
use serde_json::{Value, json};

use super::{
    CASES, NO_CLIENT, Options, SERVED,
    clients::{Clients, at_once},
    meter::Meter,
    pods::Pods,
};
use crate::{case::Case, child::Programs, samples::Samples};

/// The state of a run of `cargo xtask bench real`.
pub(super) struct Session<'a> {
    options: &'a Options,
    programs: &'a Programs,
    server: ControlPlane,
    pods: Pods,
    samples: Samples,
}

impl<'a> Session<'a> {
    /// Starts etcd and kube-apiserver, measures all rounds, and returns the samples.
    ///
    /// # Errors
    /// Returns an error if the server or a client fails.
    pub(super) async fn measure(
        options: &'a Options,
        programs: &'a Programs,
        binaries: &Binaries,
    ) -> Result<Samples> {
        let server = ControlPlane::start(binaries).await?;
        let client = Client::try_from(server.config().await?)?;
        eprintln!("writing {} pods", options.pods);
        let pods = Pods::write(client, options.pods).await?;
        let mut begun = Self {
            options,
            programs,
            server,
            pods,
            samples: Samples::default(),
        };
        let description = begun.pods.served().await?;
        begun.record(1, SERVED, &description)?;
        for round in 1..=options.rounds {
            begun.round(round).await?;
        }
        Ok(begun.samples)
    }

    /// Measures every selected case with every number of clients, and the server without clients.
    async fn round(&mut self, round: usize) -> Result<()> {
        let meter = self.new_server().await?;
        for _ in 0..self.options.runs {
            let cpu_s = self.events_cpu_s(&meter).await?;
            self.record(round, NO_CLIENT, &json!({"events_cpu_s": cpu_s}))?;
        }
        for &clients in &self.options.clients {
            for (name, program, arguments) in CASES {
                if !name.contains(&self.options.common.program) {
                    continue;
                }
                let case = Case::new(name, program, arguments);
                self.block(round, &case, clients)
                    .await
                    .with_context(|| at_once(name, clients))?;
            }
        }
        Ok(())
    }

    /// Restarts kube-apiserver, and then runs the case several times, each time with `clients` clients.
    async fn block(&mut self, round: usize, case: &Case, clients: usize) -> Result<()> {
        let meter = self.new_server().await?;
        let name = at_once(&case.name, clients);
        for _ in 0..self.options.runs {
            let line = self.run(case, clients, &meter).await?;
            self.record(round, &name, &line)?;
            self.server.check_alive()?;
        }
        Ok(())
    }

    /// Restarts kube-apiserver, waits until the new process is idle, and returns a meter for the process.
    async fn new_server(&mut self) -> Result<Meter> {
        self.server.restart_api_server().await?;
        Meter::of_idle(self.server.api_server_id()).await
    }

    async fn run(&self, case: &Case, count: usize, meter: &Meter) -> Result<Value> {
        meter.settle().await?;
        meter.reset_peak()?;
        let before = meter.start()?;
        let program = self.programs.path(case.program);
        let kubeconfig = self.server.kubeconfig();
        let mut clients = Clients::start(&program, case, count, &kubeconfig, self.options.events)?;
        clients.all_print("synced").await?;
        meter.settle().await?;
        let list_cpu_s = meter.spent_s(&before)?;
        let peak_kib = meter.peak_kib()?;
        clients.all_print("ready").await?;
        let events_cpu_s = self.events_cpu_s(meter).await?;
        let mut line = clients.finish().await?;
        line.insert("server_list_cpu_s".to_owned(), json!(list_cpu_s));
        line.insert("server_peak_kib".to_owned(), json!(peak_kib));
        line.insert("events_cpu_s".to_owned(), json!(events_cpu_s));
        Ok(Value::Object(line))
    }

    /// Changes pods, and returns the server's CPU time for the changes, in seconds.
    async fn events_cpu_s(&self, meter: &Meter) -> Result<f64> {
        meter.settle().await?;
        let before = meter.start()?;
        let Options { events, rate, .. } = self.options;
        self.pods.change(*events, *rate).await?;
        meter.settle().await?;
        meter.spent_s(&before)
    }

    /// Records a result of the case `name`, and prints it in the format that [`Samples::of_log`] reads.
    fn record(&mut self, round: usize, name: &str, line: &Value) -> Result<()> {
        eprintln!("round {round} of {}: {name}", self.options.rounds);
        eprintln!("  {line}");
        self.samples.add(name, &line.to_string())
    }
}
