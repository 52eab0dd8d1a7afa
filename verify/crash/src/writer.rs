//! Runs clients that write concurrently. Each client writes its own objects over its own connection.
//!
//! Guarantees: a client records a write before it sends the request, and records the response before it sends
//! the next request. A client stops after the first request without a response.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, Result, bail, ensure};
use fastrand::Rng;
use harness::coverage::Counts;
use http::{Method, Request};
use kube_client::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    known::Known,
    object::{BUILTIN, CUSTOM, KINDS, Key, annotations, revision},
    request::{Answer, get},
    revisions::Revisions,
    shared::{self, Shared},
};

/// Number of objects that [`bloat`] creates, 20 MB in total. The server compacts files above 16 MiB.
const BLOATED: usize = 80;
/// Size in bytes of the text in each object that [`bloat`] creates. The text is an annotation. Kubernetes
/// permits at most 256 KiB of annotations per object.
const BLOATED_BYTES: usize = 250_000;

/// Number of object names per writer and kind.
const NAMES: usize = 4;

/// Maximum size in bytes of the text in an object. An object can fill several database pages of 4 KiB.
pub(crate) const BYTES_MAX: usize = 12_000;

/// The records that all clients share: acknowledged and pending writes, and received revisions.
pub(crate) struct Notes {
    pub(crate) known: Mutex<Known>,
    pub(crate) revisions: Mutex<Revisions>,
    /// Notified by the watchers after each change of a definition, and at the end of a server process.
    ///
    /// False if the server has not completed the work that follows the last write of the definition.
    pub(crate) redefined: watch::Sender<bool>,
    /// The objects that several managers write. A client locks an object until it has received the response.
    pub(crate) shared: Vec<tokio::sync::Mutex<Shared>>,
    /// Counters of the writes of these objects.
    pub(crate) seen: Mutex<Counts<&'static str>>,
    /// The last number that [`Notes::next_value`] has returned.
    value: AtomicU64,
}

/// A client that writes objects until the server ends.
pub(crate) struct Writer {
    pub(crate) number: usize,
    pub(crate) client: Client,
    pub(crate) notes: Arc<Notes>,
    pub(crate) rng: Rng,
    /// Number of acknowledged writes of all writers since the current server process started.
    pub(crate) acknowledged: Arc<watch::Sender<usize>>,
    /// Number of writes that this writer still sends; `None` for no limit.
    pub(crate) left: Option<usize>,
}

/// The operation of a write request.
#[derive(Clone, Copy)]
enum Deed {
    Create,
    Update,
    Patch,
    Delete,
}

impl Notes {
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::default(),
            revisions: Mutex::default(),
            // No definition has been written.
            redefined: watch::Sender::new(true),
            shared: shared::keys()
                .map(|key| tokio::sync::Mutex::new(Shared::new(key)))
                .collect(),
            seen: Mutex::default(),
            value: AtomicU64::new(0),
        }
    }

    /// Returns a number that identifies the write of a shared object, and is higher than all earlier ones.
    pub(crate) fn next_value(&self) -> u64 {
        self.value.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records the response to a write request.
    ///
    /// `wanted` is the value that the request writes, or `None` for a deletion.
    ///
    /// # Errors
    /// Returns an error if the server rejected the request, if the response has no valid revision,
    /// or if another change has the same revision.
    pub(crate) fn note(&self, key: Key, wanted: Option<u64>, answer: &Value) -> Result<()> {
        let Some(value) = wanted else {
            ensure!(answer["status"] == "Success", "{key}: {answer}");
            self.known.lock().done(&key, None);
            return Ok(());
        };
        if answer["kind"] == "Status" {
            bail!("{key} was refused: {answer}");
        }
        let revision = revision(answer)?;
        self.known.lock().done(&key, Some((value, revision)));
        let mut revisions = self.revisions.lock();
        revisions.changed(revision, &(key, Some(value)))
    }
}

impl Writer {
    /// Sends write requests until the server does not respond, or until this client has sent `left` requests.
    ///
    /// If `left` is `None`, the number of requests is not limited.
    ///
    /// # Errors
    /// Returns an error if the server rejects a request or returns an invalid response.
    pub(crate) async fn storm(mut self) -> Result<()> {
        while self.is_left() {
            let kind = self.rng.usize(BUILTIN);
            if !self.write(kind).await? {
                break;
            }
            self.acknowledged();
        }
        Ok(())
    }

    pub(crate) fn is_left(&self) -> bool {
        self.left != Some(0)
    }

    /// Counts an acknowledged write.
    pub(crate) fn acknowledged(&mut self) {
        self.acknowledged.send_modify(|count| *count += 1);
        self.left = self.left.map(|left| left - 1);
    }

    /// Writes an object of a kind, and returns whether the server responded.
    pub(crate) async fn write(&mut self, kind: usize) -> Result<bool> {
        let name = format!("w{}-{}", self.number, self.rng.usize(..NAMES));
        let key = Key { kind, name };
        let stored = self.notes.known.lock().state(&key);
        let deed = match self.rng.usize(..4) {
            _ if stored.is_none() => Deed::Create,
            0 => Deed::Delete,
            1 => Deed::Patch,
            _ => Deed::Update,
        };
        let value = self.draw();
        let request = self.request(&key, deed, value)?;
        let wanted = (!matches!(deed, Deed::Delete)).then_some(value);
        let Some(answer) = self.send(&key, wanted, request).await? else {
            return Ok(false);
        };
        self.notes.note(key, wanted, &answer)?;
        Ok(true)
    }

    /// Draws a number that identifies a write. Numbers are unique.
    pub(crate) fn draw(&mut self) -> u64 {
        self.rng.u64(1..u64::MAX)
    }

    /// Sends a write request, and returns the response, or `None` if the server does not respond.
    ///
    /// `wanted` is the value that the request writes, or `None` for a deletion.
    ///
    /// # Errors
    /// Returns an error if the server rejects the request.
    pub(crate) async fn send(
        &self,
        key: &Key,
        wanted: Option<u64>,
        request: Request<Vec<u8>>,
    ) -> Result<Option<Value>> {
        self.notes.known.lock().tried(key, wanted);
        match self.client.request(request).await {
            Ok(answer) => Ok(Some(answer)),
            Err(refusal @ kube_client::Error::Api(_)) => {
                Err(refusal).with_context(|| format!("{key} was refused"))
            }
            // The result is unknown, so the write stays open.
            Err(_) => Ok(None),
        }
    }

    fn request(&mut self, key: &Key, deed: Deed, value: u64) -> Result<Request<Vec<u8>>> {
        let bytes = self.rng.usize(20..BYTES_MAX);
        let object = || key.object(value, bytes);
        match deed {
            Deed::Create => create(key, &object()),
            Deed::Update if CUSTOM.contains(&key.kind) => self.replace(key, object()),
            Deed::Update => request(Method::PUT, key.uri(), &object()),
            Deed::Patch => {
                let patch = json!({"metadata": {"annotations": annotations(value, bytes)}});
                let request = Request::patch(key.uri());
                let request = request.header("content-type", "application/merge-patch+json");
                Ok(request.body(patch.to_string().into_bytes())?)
            }
            Deed::Delete => delete(key),
        }
    }

    /// Returns the request that replaces an object, if it has its last acknowledged revision.
    ///
    /// Kubernetes requires a revision in an update of a definition or of a custom object.
    pub(crate) fn replace(&self, key: &Key, mut object: Value) -> Result<Request<Vec<u8>>> {
        let stored = self.notes.known.lock().state(key);
        let (_, revision) = stored.context("an object that exists is replaced")?;
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        request(Method::PUT, key.uri(), &object)
    }
}

/// Returns the request that creates an object.
pub(crate) fn create(key: &Key, object: &Value) -> Result<Request<Vec<u8>>> {
    let uri = KINDS[key.kind].collection.to_owned();
    request(Method::POST, uri, object)
}

/// Returns the request that deletes an object.
pub(crate) fn delete(key: &Key) -> Result<Request<Vec<u8>>> {
    Ok(Request::delete(key.uri()).body(Vec::new())?)
}

fn request(method: Method, uri: String, object: &Value) -> Result<Request<Vec<u8>>> {
    let request = Request::builder().method(method).uri(uri);
    let request = request.header("content-type", "application/json");
    Ok(request.body(object.to_string().into_bytes())?)
}

/// Sends list requests until the server ends, and records the revisions of the lists.
///
/// # Errors
/// Returns an error if a list has a lower revision than an earlier list.
pub(crate) async fn read(client: Client, notes: Arc<Notes>) -> Result<()> {
    let mut before = 0;
    loop {
        for kind in &KINDS {
            let list = match get(&client, &format!("{}?limit=1", kind.collection)).await? {
                Answer::Lost => return Ok(()),
                Answer::NotFound => continue,
                Answer::Found(list) => list,
            };
            let revision = revision(&list)?;
            ensure!(
                revision >= before,
                "a list at {revision} after one at {before}"
            );
            before = revision;
            notes.revisions.lock().told(revision);
        }
    }
}

/// Creates large objects and deletes all but the last, so the database file is mostly empty.
///
/// # Errors
/// Returns an error if the server does not respond, or returns an invalid response.
pub(crate) async fn bloat(client: &Client, notes: &Notes) -> Result<()> {
    let key = |nth: usize| Key {
        kind: 0,
        name: format!("large-{nth}"),
    };
    let delete = async |key: Key| {
        notes.known.lock().tried(&key, None);
        let answer = client.request(delete(&key)?).await?;
        notes.note(key, None, &answer)
    };
    let last = key(BLOATED - 1);
    let is_there = notes.known.lock().state(&last).is_some();
    if is_there {
        delete(last).await?;
    }
    for (value, nth) in (1..).zip(0..BLOATED) {
        let key = key(nth);
        let request = create(&key, &key.object(value, BLOATED_BYTES))?;
        notes.known.lock().tried(&key, Some(value));
        let answer = client.request(request).await?;
        notes.note(key, Some(value), &answer)?;
    }
    // The last object keeps the end of the file in use.
    for key in (0..BLOATED - 1).map(key) {
        delete(key).await?;
    }
    Ok(())
}
