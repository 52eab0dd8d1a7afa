//! Watches one kind, and resumes the watch from the last received revision after each
//! restart of the server.
//!
//! Guarantees: [`Watcher::follow`] returns an error if the watch receives a change twice or out of order.
//! [`Watcher::check`] returns an error if the watch has missed a change of its kind. If the server
//! rejects the revision with status 410, the watcher sends a list request, and then watches from the
//! revision of the list. While the watched kind is not served, the watcher waits for a change of a definition.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use futures_util::{AsyncBufReadExt as _, StreamExt as _};
use harness::coverage::Counts;
use http::Request;
use kube_client::Client;
use serde_json::Value;

use crate::{
    definition,
    object::{CUSTOM, DEFINITION, KINDS, Key, Seen, revision},
    planted::Bug,
    request::{Answer, get},
    revisions::{Missed, Reason},
    writer::Notes,
};

/// The watch of one kind, which continues after each restart of the server.
#[derive(Debug)]
pub(crate) struct Watcher {
    kind: usize,
    /// Revision of the watcher's last list; initially the revision at which the first watch starts.
    begun: u64,
    /// Revision of the last received event, bookmark or list.
    last: u64,
    /// Revisions of the received changes, in ascending order. A new list clears this vector.
    told: Vec<u64>,
    pub(crate) seen: Counts<&'static str>,
    /// The server bug to simulate. For `GapInWatch` and `DeletionUntold`, the watcher ignores some events.
    bug: Option<Bug>,
}

/// The last response of this server process from which a watcher has its revision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// None yet: the revision is from an earlier server process.
    Restart,
    List,
    /// A watch that is open, or that ended after all its events.
    Watch,
}

/// Name of the counter of received changes.
pub(crate) const EVENT: &str = "watch events";
/// Name of the counter of watches that continue in a new server process.
pub(crate) const RESUMED: &str = "resumed watches";
/// Name of the counter of watches that the server rejected because their revision was too old.
pub(crate) const TOO_OLD: &str = "watches whose revision was too old";

impl Watcher {
    /// Creates a watcher whose first watch starts at `revision`.
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

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Watches the server until the server ends.
    ///
    /// # Errors
    /// Returns an error if:
    /// - the watch delivers a change twice or out of order, or another client received a different change at
    ///   the same revision;
    /// - an event is invalid;
    /// - an event has the type `ERROR`, unless it has status 410 and is the first event of the first watch in this
    ///   server process, or of a watch of a custom kind;
    /// - after status 410, the new list is invalid or not newer than the last event;
    /// - after status 410, [`Self::check`] finds a missed change.
    pub(crate) async fn follow(&mut self, client: &Client, notes: &Arc<Notes>) -> Result<()> {
        let followed = self.watch(client, notes).await;
        // The watchers that wait for a definition end too.
        notes.redefined.send_replace(true);
        followed
    }

    async fn watch(&mut self, client: &Client, notes: &Arc<Notes>) -> Result<()> {
        let mut before = Before::Restart;
        let is_custom = CUSTOM.contains(&self.kind);
        let mut redefined = notes.redefined.subscribe();
        loop {
            redefined.mark_unchanged();
            let uri = format!(
                "{}?watch=1&allowWatchBookmarks=1&resourceVersion={}",
                KINDS[self.kind].collection, self.last
            );
            let request = Request::builder().uri(uri).body(Vec::new())?;
            let lines = match Answer::of(client.request_stream(request).await)? {
                Answer::Lost => return Ok(()),
                Answer::NotFound => {
                    redefined.changed().await?;
                    continue;
                }
                Answer::Found(lines) => lines,
            };
            let mut lines = lines.lines();
            let mut is_first = true;
            loop {
                let line = match lines.next().await {
                    Some(Ok(line)) => line,
                    // The watch of a custom kind ends when its definition changes.
                    None if is_custom => {
                        before = Before::Watch;
                        break;
                    }
                    None | Some(Err(_)) => return Ok(()),
                };
                // A partial line is not an event.
                let Ok(event) = serde_json::from_str::<Value>(&line) else {
                    return Ok(());
                };
                if event["type"] == "ERROR" {
                    let is_old =
                        event["object"]["code"] == 410 && (before == Before::Restart || is_custom);
                    ensure!(
                        is_first && is_old,
                        "a watch from {} ended with {event}",
                        self.last
                    );
                    match self.relist(client, notes, before).await? {
                        Answer::Lost => return Ok(()),
                        // The definition was deleted after the watch request.
                        Answer::NotFound => {}
                        Answer::Found(()) => before = Before::List,
                    }
                    break;
                }
                if is_first && before == Before::Restart {
                    before = Before::Watch;
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
        }
    }

    /// Checks the order of an event and records its revision. Unless the event is a bookmark, also records
    /// the change.
    fn hear(&mut self, event: &Value, notes: &Arc<Notes>) -> Result<()> {
        let object = &event["object"];
        let revision = revision(object)?;
        let mut revisions = notes.revisions.lock();
        if event["type"] == "BOOKMARK" {
            ensure!(
                revision >= self.last,
                "a bookmark at {revision} is older than the last event"
            );
            self.last = revision;
            revisions.told(revision);
            return Ok(());
        }
        ensure!(
            revision > self.last,
            "an event at {revision} after one at {}",
            self.last
        );
        self.last = revision;
        self.told.push(revision);
        self.seen.count(EVENT);
        let seen = Seen::read(self.kind, object)?;
        let value = match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => Some(seen.value),
            Some("DELETED") => None,
            _ => bail!("an event of unknown type: {event}"),
        };
        revisions.changed(revision, &(seen.key, value))?;
        if self.kind == DEFINITION {
            let is_complete = value.is_none() || definition::check(object).is_ok();
            notes.redefined.send_replace(is_complete);
        }
        Ok(())
    }

    /// Sends a list request. The next watch starts from the revision of the received list.
    ///
    /// `before` is what preceded the watch that the server has rejected.
    async fn relist(
        &mut self,
        client: &Client,
        notes: &Arc<Notes>,
        before: Before,
    ) -> Result<Answer<()>> {
        // Events that it has not received by now are lost.
        let list = match list(client, self.kind).await? {
            Answer::Lost => return Ok(Answer::Lost),
            Answer::NotFound => return Ok(Answer::NotFound),
            Answer::Found((_, list)) => list,
        };
        ensure!(
            list > self.last,
            "revision {} is reported as too old, but the list is at {list}",
            self.last
        );
        self.check(notes)?;
        self.seen.count(TOO_OLD);
        let definition = Key::of_definition(self.kind);
        let mut revisions = notes.revisions.lock();
        revisions.missed(Missed {
            range: self.last + 1..=list,
            reason: match before {
                Before::Restart => Reason::Restart,
                Before::List => Reason::Change(definition),
                Before::Watch => Reason::ChangeAfterWatch(definition),
            },
        });
        revisions.told(list);
        (self.begun, self.last) = (list, list);
        self.told.clear();
        Ok(Answer::Found(()))
    }

    /// Checks that the watcher has received each change of its kind that any client has received.
    ///
    /// The check covers the changes at revisions higher than `self.begun` and at most `self.last`.
    ///
    /// # Errors
    /// Returns an error if a change is missing.
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
                "a watch of {} from {} to {} did not receive revision {revision}",
                KINDS[self.kind].resource,
                self.begun,
                self.last
            ),
        }
    }
}

/// Returns a kind's objects and the list's revision.
///
/// # Errors
/// Returns an error if the response is no valid list, or if [`Seen::read`] rejects an object.
pub(crate) async fn list(client: &Client, kind: usize) -> Result<Answer<(Vec<Seen>, u64)>> {
    Ok(match get(client, KINDS[kind].collection).await? {
        Answer::Lost => Answer::Lost,
        Answer::NotFound => Answer::NotFound,
        Answer::Found(list) => Answer::Found(Seen::list(kind, &list)?),
    })
}
