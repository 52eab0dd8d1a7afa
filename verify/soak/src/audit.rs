//! Reads the audit logs of kube-apiserver, and compares them with the requests that [`Wire`]s observed.
//!
//! Guarantees:
//! - Each list or watch of an informer in an audit log must match a request that a wire observed. The audit
//!   id, the kind and an error status must be the same, and the logs must contain the request only once.
//!   Otherwise, a layer between the wire and the server has sent, changed or repeated a request.
//! - Each request that a wire observed with a successful response must be in a log. Empty logs are therefore
//!   also reported as errors.
//!
//! kube-apiserver writes the start of a request to the log before it handles the request.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{BufRead as _, BufReader, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::wire::{AUDIT_PREFIX, Kind, Wire};

/// The audit policy: logs only lists and watches of this program's kinds, without request and response
/// bodies.
pub(crate) const POLICY: &str = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[
{"level":"Metadata","verbs":["list","watch"],"resources":[{"group":"","resources":["pods","configmaps","secrets"]}]},
{"level":"None"}]}
"#;

/// Names of the audit logs in the folder of the control plane, one for each kube-apiserver.
pub(crate) const FILES: [&str; 2] = ["audit-1.log", "audit-2.log"];

/// Start of a line of an audit log.
const EVENT: &str = r#"{"kind":"Event""#;

/// The audit logs, with the position up to which they were read.
#[derive(Debug)]
pub(crate) struct Logs {
    files: Vec<(PathBuf, u64)>,
    /// The audit ids of all requests so far.
    received: BTreeSet<String>,
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
    /// Descriptions of the errors: log lines that can't be parsed, and differences between the audit logs and
    /// the requests that the informers sent.
    pub(crate) wrong: Vec<String>,
}

impl Logs {
    pub(crate) fn new(folder: &Path) -> Self {
        let file = |name: &&str| (folder.join(name), 0);
        Self {
            files: FILES.iter().map(file).collect(),
            received: BTreeSet::new(),
        }
    }

    /// Reads the events that were logged since the last call, and compares them with the requests in `wires`.
    ///
    /// A [`Wire`] records the requests of one source, which is one list and watch of an informer. The keys of
    /// `wires` are the names of the sources.
    ///
    /// # Errors
    /// Returns an error if a log can't be read.
    pub(crate) fn read(&mut self, wires: &BTreeMap<String, Arc<Wire>>) -> Result<Audited> {
        let answered = answered(wires);
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
                let event = &line[line.rfind(EVENT).unwrap_or_default()..];
                match serde_json::from_str::<Event>(event) {
                    Ok(event) => audited.note(&event, wires, &mut self.received),
                    Err(error) => audited.wrong.push(format!("audit log: {error}: {line}")),
                }
            }
        }
        audited.compare(&answered, &self.received);
        Ok(audited)
    }
}

/// Returns the audit ids of all requests with a successful response.
fn answered(wires: &BTreeMap<String, Arc<Wire>>) -> Vec<String> {
    let of = |wire: &Arc<Wire>| {
        let requests = wire.requests().into_iter().enumerate();
        let answered = requests.filter(|(_, sent)| (200..300).contains(&sent.status));
        let ids = answered.map(|(number, _)| wire.audit_id(number));
        ids.collect::<Vec<_>>()
    };
    wires.values().flat_map(of).collect()
}

impl Audited {
    fn note(
        &mut self,
        event: &Event,
        wires: &BTreeMap<String, Arc<Wire>>,
        received: &mut BTreeSet<String>,
    ) {
        let Some(id) = event.audit_id.strip_prefix(AUDIT_PREFIX) else {
            return;
        };
        if event.stage == "RequestReceived" {
            self.requests += 1;
            if !received.insert(event.audit_id.clone()) {
                let line = format!("audit log: {} was received twice", event.audit_id);
                self.wrong.push(line);
            }
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

    /// Reports the requests that had a successful response, and that no server received.
    fn compare(&mut self, answered: &[String], received: &BTreeSet<String>) {
        let missing: Vec<_> = answered
            .iter()
            .filter(|id| !received.contains(*id))
            .collect();
        if let Some(first) = missing.first() {
            let count = missing.len();
            let line = format!("audit log: {count} answered requests are missing, such as {first}");
            self.wrong.push(line);
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
    let is_error = sent.status >= 400 || code.is_some_and(|code| code >= 400);
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

    /// Returns the errors for an audit log line with the audit id `id` and the query `query`.
    ///
    /// In the test, informers have sent only one request: a watch with the audit id `soak-large1.0-0`.
    fn wrong(id: &str, query: &str) -> Vec<String> {
        let wire = Wire::new("large1.0");
        wire.record(Kind::Watch);
        let wires = wires(wire);
        let line = format!(
            r#"{{"auditID":"{id}","requestURI":"/api/v1/pods?{query}","stage":"RequestReceived"}}"#
        );
        let mut audited = Audited::default();
        let event = serde_json::from_str(&line).unwrap();
        audited.note(&event, &wires, &mut BTreeSet::new());
        audited.wrong
    }

    fn wires(wire: Arc<Wire>) -> BTreeMap<String, Arc<Wire>> {
        BTreeMap::from([(wire.name().to_owned(), wire)])
    }

    #[test]
    fn a_request_that_is_received_twice_or_not_at_all_is_found() {
        let folder = std::env::temp_dir().join(format!("soak-audit-{}", fastrand::u64(..)));
        std::fs::create_dir(&folder).unwrap();
        let wire = Wire::new("large1.0");
        let number = wire.record(Kind::Watch);
        wire.answered(number, http::StatusCode::OK);
        let wires = wires(wire);
        let mut logs = Logs::new(&folder);
        let empty = logs.read(&wires).unwrap().wrong;
        assert!(
            empty[0].contains("1 answered requests are missing"),
            "{empty:?}"
        );
        let line = format!(
            r#"{EVENT},"auditID":"soak-large1.0-0","requestURI":"/api/v1/pods?watch=1","stage":"RequestReceived"}}"#
        );
        // The first line continues that of a killed server.
        std::fs::write(folder.join(FILES[0]), format!("{}{line}\n", &line[..30])).unwrap();
        assert_eq!(logs.read(&wires).unwrap().wrong, Vec::<String>::new());
        std::fs::write(folder.join(FILES[1]), format!("{line}\nno event\n")).unwrap();
        let wrong = logs.read(&wires).unwrap().wrong;
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(wrong[0].contains("received twice"), "{wrong:?}");
        assert!(wrong[1].contains("no event"), "{wrong:?}");
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
