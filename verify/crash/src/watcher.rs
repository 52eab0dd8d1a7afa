//! A plain watch that goes on, life after life, from the last revision that it has heard of.
//!
//! Guarantees: it is told each change of its kind once and in order, or that its revision is too old (410); then it starts anew from a list, and that is counted.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{AsyncBufReadExt as _, StreamExt as _};
use harness::coverage::Counts;
use http::Request;
use kube_client::Client;
use serde_json::Value;

use crate::{
    object::{KINDS, Seen, revision},
    planted::Bug,
    writer::Notes,
};

/// What one kind's watcher has heard.
#[derive(Debug)]
pub(crate) struct Watcher {
    kind: usize,
    /// Where its history began.
    begun: u64,
    /// The last revision that it was told.
    last: u64,
    /// The changes since it began.
    told: Vec<u64>,
    pub(crate) seen: Counts<&'static str>,
    /// What it does not hear, on purpose.
    bug: Option<Bug>,
}

/// Counted: an event of a watch.
pub(crate) const EVENT: &str = "watch events";
/// Counted: a watch that resumes from its last revision.
pub(crate) const RESUMED: &str = "resumed watches";
/// Counted: a watch whose revision is too old.
pub(crate) const TOO_OLD: &str = "watches that were too old";

impl Watcher {
    /// One that has heard nothing; it begins with a new server's first revision.
    pub(crate) fn new(kind: usize, revision: u64, bug: Option<Bug>) -> Self {
        Self {
            kind,
            begun: revision,
            last: revision,
            told: Vec::new(),
            seen: Counts::default(),
            bug,
        }
    }

    pub(crate) fn kind(&self) -> usize {
        self.kind
    }

    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Follows a server until it is gone.
    ///
    /// # Errors
    /// What it is told makes no sense.
    pub(crate) async fn follow(&mut self, client: &Client, notes: &Arc<Notes>) -> Result<()> {
        let mut resumes = true;
        loop {
            let uri = format!(
                "{}?watch=1&allowWatchBookmarks=1&resourceVersion={}",
                KINDS[self.kind].collection, self.last
            );
            let request = Request::builder().uri(uri).body(Vec::new())?;
            let Ok(lines) = client.request_stream(request).await else {
                return Ok(());
            };
            let mut lines = lines.lines();
            let mut is_first = true;
            loop {
                // Half a line is no event.
                let Some(Ok(line)) = lines.next().await else {
                    return Ok(());
                };
                let Ok(event) = serde_json::from_str::<Value>(&line) else {
                    return Ok(());
                };
                if event["type"] == "ERROR" {
                    ensure!(
                        is_first && event["object"]["code"] == 410,
                        "a watch from {} ended with {event}",
                        self.last
                    );
                    if !self.relist(client, notes).await? {
                        return Ok(());
                    }
                    break;
                }
                if is_first && std::mem::take(&mut resumes) {
                    self.seen.count(RESUMED);
                    if self.bug == Some(Bug::GapInWatch) {
                        continue;
                    }
                }
                is_first = false;
                if event["type"] == "DELETED" && self.bug == Some(Bug::DeletionUntold) {
                    continue;
                }
                self.hear(&event, notes)?;
            }
            resumes = false;
        }
    }

    /// Takes one event.
    fn hear(&mut self, event: &Value, notes: &Arc<Notes>) -> Result<()> {
        let object = &event["object"];
        let revision = revision(object)?;
        let mut revisions = notes.revisions.lock();
        if event["type"] == "BOOKMARK" {
            ensure!(revision >= self.last, "a bookmark at {revision} leads back");
            self.last = revision;
            revisions.told(revision);
            return Ok(());
        }
        ensure!(
            revision > self.last,
            "an event at {revision} behind one at {}",
            self.last
        );
        self.last = revision;
        self.told.push(revision);
        self.seen.count(EVENT);
        let seen = Seen::read(self.kind, object)?;
        let value = match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => Some(seen.value),
            Some("DELETED") => None,
            _ => bail!("an event of no type: {event}"),
        };
        revisions.changed(revision, &(seen.key, value))
    }

    /// Begins anew; returns whether the server was still there.
    async fn relist(&mut self, client: &Client, notes: &Arc<Notes>) -> Result<bool> {
        // What it was not told of until now, it will never be.
        let Some((_, list)) = list(client, self.kind).await? else {
            return Ok(false);
        };
        ensure!(
            list > self.last,
            "revision {} is too old, and the list is at {list}",
            self.last
        );
        self.check(notes)?;
        self.seen.count(TOO_OLD);
        (self.begun, self.last) = (list, list);
        self.told.clear();
        notes.revisions.lock().told(list);
        Ok(true)
    }

    /// Whether it was told of every change up to the last that it heard of, as far as anybody knows of them.
    ///
    /// # Errors
    /// One is missing.
    pub(crate) fn check(&self, notes: &Arc<Notes>) -> Result<()> {
        let happened = notes
            .revisions
            .lock()
            .between(self.kind, self.begun, self.last);
        let missing = happened
            .iter()
            .find(|revision| self.told.binary_search(revision).is_err());
        match missing {
            None => Ok(()),
            Some(revision) => bail!(
                "a watch of {} that began at {} and came to {} was not told of revision {revision}",
                KINDS[self.kind].resource,
                self.begun,
                self.last
            ),
        }
    }
}

/// All objects of a kind, and the list's revision; none if the server is gone.
///
/// # Errors
/// An object is there in part.
pub(crate) async fn list(client: &Client, kind: usize) -> Result<Option<(Vec<Seen>, u64)>> {
    let request = Request::builder()
        .uri(KINDS[kind].collection)
        .body(Vec::new())?;
    let Ok(list) = client.request::<Value>(request).await else {
        return Ok(None);
    };
    let items = list["items"].as_array().context("a list without items")?;
    let seen: Result<Vec<Seen>> = items.iter().map(|item| Seen::read(kind, item)).collect();
    Ok(Some((seen?, revision(&list)?)))
}
