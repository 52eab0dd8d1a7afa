//! Reads the audit logs of kube-apiserver, and compares them with the requests that [`Wire`]s observed.
//!
//! Guarantees: a list in an audit log that no wire observed, or that it observed as another request, is an
//! error. The logs can grow and can be replaced by longer ones between two calls of [`Logs::read`].

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::wire::{AUDIT_PREFIX, Kind, Wire};

/// The audit policy: lists and watches of this program's kinds, without their bodies.
pub(crate) const POLICY: &str = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[
{"level":"Metadata","verbs":["list","watch"],"resources":[{"group":"","resources":["pods","configmaps","secrets"]}]},
{"level":"None"}]}
"#;

/// Names of the audit logs in the folder of the control plane, one for each kube-apiserver.
pub(crate) const FILES: [&str; 2] = ["audit-1.log", "audit-2.log"];

/// The audit logs, with the position up to which they were read.
#[derive(Debug)]
pub(crate) struct Logs {
    files: Vec<(PathBuf, u64)>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    stage: String,
    response_status: Option<Status>,
}

#[derive(Debug, Deserialize)]
struct Status {
    code: Option<u16>,
}

/// The requests in the audit logs since the last read.
#[derive(Debug, Default)]
pub(crate) struct Audited {
    /// Number of requests of informers.
    pub(crate) requests: usize,
    /// Number of responses by status.
    pub(crate) statuses: BTreeMap<u16, usize>,
    /// The contradictions to the wires.
    pub(crate) wrong: Vec<String>,
}

impl Logs {
    pub(crate) fn new(folder: &Path) -> Self {
        let file = |name: &&str| (folder.join(name), 0);
        Self {
            files: FILES.iter().map(file).collect(),
        }
    }

    /// Reads the events since the last call, and compares them with the requests of `wires`, by name.
    ///
    /// # Errors
    /// Returns an error if a log can't be read.
    pub(crate) fn read(&mut self, wires: &BTreeMap<String, Arc<Wire>>) -> Result<Audited> {
        let mut audited = Audited::default();
        for (path, position) in &mut self.files {
            let Ok(mut file) = File::open(&*path) else {
                continue; // The second server has not started yet.
            };
            file.seek(SeekFrom::Start(*position))?;
            let mut lines = BufReader::new(file);
            let mut line = String::new();
            loop {
                line.clear();
                let length = lines.read_line(&mut line)?;
                // A line without its end is still being written, or its server was killed.
                if !line.ends_with('\n') {
                    break;
                }
                *position += length as u64;
                // A killed server leaves half a line, which the first line of the next one continues.
                if let Ok(event) = serde_json::from_str::<Event>(&line) {
                    audited.note(&event, wires);
                }
            }
        }
        Ok(audited)
    }
}

impl Audited {
    fn note(&mut self, event: &Event, wires: &BTreeMap<String, Arc<Wire>>) {
        let Some(id) = event.audit_id.strip_prefix(AUDIT_PREFIX) else {
            return;
        };
        if event.stage == "RequestReceived" {
            self.requests += 1;
        }
        let code = event
            .response_status
            .as_ref()
            .and_then(|status| status.code);
        if let (Some(code), "ResponseComplete") = (code, event.stage.as_str()) {
            *self.statuses.entry(code).or_default() += 1;
        }
        if let Err(wrong) = check(id, event, code, wires) {
            self.wrong
                .push(format!("audit log: {}: {wrong:#}", event.request_uri));
        }
    }
}

fn check(
    id: &str,
    event: &Event,
    code: Option<u16>,
    wires: &BTreeMap<String, Arc<Wire>>,
) -> Result<()> {
    let (name, number) = id.rsplit_once('-').context("the audit id has no number")?;
    let wire = wires
        .get(name)
        .with_context(|| format!("no informer {name}"))?;
    let number: usize = number.parse()?;
    let sent = wire.request(number);
    let sent = sent.with_context(|| format!("{name} has not sent request {number}"))?;
    let (_, query) = event.request_uri.split_once('?').unwrap_or_default();
    let kind = Kind::of(query);
    anyhow::ensure!(
        kind == sent.kind,
        "{name} sent request {number} as {:?}, and the server received {kind:?}",
        sent.kind
    );
    let is_error = code.is_some_and(|code| code >= 400);
    let differs = code.is_some_and(|code| sent.status != 0 && sent.status != code);
    anyhow::ensure!(
        !is_error || !differs,
        "{name} received {} for request {number}, and the server responded with {code:?}",
        sent.status
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares one line of an audit log with a wire that has sent one watch.
    fn wrong(id: &str, query: &str) -> Vec<String> {
        let wire = Wire::new("large1.0");
        wire.record(Kind::Watch);
        let wires = BTreeMap::from([("large1.0".to_owned(), wire)]);
        let line = format!(
            r#"{{"auditID":"{id}","requestURI":"/api/v1/pods?{query}","stage":"RequestReceived"}}"#
        );
        let mut audited = Audited::default();
        audited.note(&serde_json::from_str(&line).unwrap(), &wires);
        audited.wrong
    }

    #[test]
    fn a_request_that_no_wire_observed_is_found() {
        let none: Vec<String> = Vec::new();
        assert_eq!(wrong("soak-large1.0-0", "watch=1&resourceVersion=7"), none);
        assert_eq!(wrong("of-another-client", "limit=500"), none);
        let repeated = wrong("soak-large1.0-1", "limit=500");
        assert!(
            repeated[0].contains("has not sent request 1"),
            "{repeated:?}"
        );
        let changed = wrong("soak-large1.0-0", "limit=500");
        assert!(changed[0].contains("received List"), "{changed:?}");
    }
}
