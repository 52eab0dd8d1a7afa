//! Checks after a restart of the server that the owners of fields have their effect.
//!
//! Guarantees: [`check`] changes nothing that is stored. It returns an error in each of these cases:
//! - an apply that changes every field is not rejected with the message that names all owners of these fields;
//! - an apply of what its manager owns changes the object or the times of its owners;
//! - an apply that no longer contains a field does not remove the field, although no other manager owns it.

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::jiff::Timestamp;
use kube_client::Client;
use serde_json::Value;

use crate::{
    applier::{CONFLICT, apply, is_fixed, reject},
    object::revision,
    ownership::{Fields, Manager, Operation, Ownership},
    planted::Bug,
    request::{Answer, get},
    shared::Shared,
    writer::Notes,
};

/// Name of the counter of pending writes of shared objects that a restarted server has stored.
pub(crate) const UNANSWERED: &str = "writes of a shared object stored without an answer";
/// Name of the counter of applies that must change nothing.
pub(crate) const EQUAL: &str = "applies of equal content";
/// Name of the counter of fields that an apply has removed.
pub(crate) const REMOVED: &str = "fields removed by an apply";

/// Compares each shared object with its last acknowledged and its pending write, and tests the owners of one of them.
///
/// No client may write during the call. `nth` selects the object. `bug` is the server bug to simulate.
///
/// # Errors
/// Returns an error if an object has another state, or if its owners have not their effect.
pub(crate) async fn check(
    client: &Client,
    notes: &Notes,
    nth: usize,
    bug: Option<Bug>,
) -> Result<()> {
    for shared in &notes.shared {
        let mut shared = shared.lock().await;
        let stored = match get(client, &shared.key.uri()).await? {
            Answer::Lost => bail!("the server does not respond"),
            Answer::NotFound => None,
            Answer::Found(object) => Some(object),
        };
        let is_stored = shared.restarted(stored)?;
        notes.seen.lock().add(UNANSWERED, usize::from(is_stored));
    }
    let shared = notes.shared[nth].lock().await;
    let Some(object) = shared.object() else {
        return Ok(());
    };
    let probe = Probe {
        client,
        notes,
        shared: &shared,
        object,
        live: Ownership::read(object)?,
        bug,
    };
    probe.conflict("").await?;
    probe.conflict("status").await?;
    for (manager, config) in probe.live.appliers() {
        probe.repeat(manager, &config).await?;
        probe.remove(manager, &config).await?;
    }
    Ok(())
}

/// The requests about one object.
struct Probe<'a> {
    client: &'a Client,
    notes: &'a Notes,
    shared: &'a Shared,
    object: &'a Value,
    live: Ownership,
    bug: Option<Bug>,
}

impl Probe<'_> {
    /// Applies other values of all fields of the object or of its status, without force.
    async fn conflict(&self, subresource: &str) -> Result<()> {
        let is_status = |path: &str| path.starts_with(".status");
        let paths = self.live.fields.keys();
        let paths = paths.filter(|path| is_status(path) != subresource.is_empty());
        let config: Fields = paths.map(|path| (path.clone(), "3".to_owned())).collect();
        if config.is_empty() {
            return Ok(());
        }
        let stranger = Manager {
            name: "stranger".to_owned(),
            operation: Operation::Apply,
            subresource: subresource.to_owned(),
        };
        let message = self.live.apply(&stranger, &config, false).err();
        let message = message.context("each field has an owner")?;
        let query = match self.bug {
            Some(Bug::ConflictIgnored) => "&force=true",
            _ => "",
        };
        let request = apply(self.shared, &stranger, &config, query)?;
        let is_answered = reject(self.client, request, &message).await?;
        ensure!(is_answered, "the server does not respond");
        self.notes.seen.lock().count(CONFLICT);
        Ok(())
    }

    /// Applies the fields that a manager owns, with their values.
    async fn repeat(&self, manager: &Manager, config: &Fields) -> Result<()> {
        let mut config = config.clone();
        if self.bug == Some(Bug::EqualApplyStored) {
            config.insert(".metadata.annotations.other".to_owned(), String::new());
        }
        let request = apply(self.shared, manager, &config, "")?;
        let answer: Value = self.client.request(request).await?;
        ensure!(
            answer == *self.object,
            "an apply of equal content by {manager:?} changed {} at {}: {answer} is not {}",
            self.shared.key,
            revision(self.object)?,
            self.object
        );
        self.notes.seen.lock().count(EQUAL);
        Ok(())
    }

    /// Applies only the fields that every apply contains, in a dry run.
    async fn remove(&self, manager: &Manager, config: &Fields) -> Result<()> {
        let mut fixed = config.clone();
        if self.bug != Some(Bug::FieldKept) {
            fixed.retain(|path, _| is_fixed(path));
        }
        let since = Timestamp::now();
        let request = apply(self.shared, manager, &fixed, "&dryRun=All")?;
        let answer: Value = self.client.request(request).await?;
        fixed.retain(|path, _| is_fixed(path));
        let result = self.live.apply(manager, &fixed, false);
        let result = result.map_err(anyhow::Error::msg)?;
        let found = Ownership::read(&answer)?;
        ensure!(
            result.is(&found, [since, Timestamp::now()]),
            "an apply by {manager:?} of fewer fields of {} leads to {found:?}, not {result:?}",
            self.shared.key
        );
        let removed = self.live.fields.len() - result.fields.len();
        self.notes.seen.lock().add(REMOVED, removed);
        Ok(())
    }
}
