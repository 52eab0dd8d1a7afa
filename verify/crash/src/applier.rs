//! Runs clients that apply, patch and update the same objects, each under several names of managers.
//!
//! Guarantees: a client waits for its turn to write an object, so that an object has one pending write. The object in
//! each response must be what [`Ownership`] computes. An apply that this computation rejects must be rejected with the
//! same message; the client then repeats it with force.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use http::{Method, Request};
use kube_client::{Client, Error};
use serde_json::{Value, json};

use crate::{
    object::{KINDS, VALUE_OF},
    ownership::{Fields, Manager, Operation, Ownership, member, set},
    shared::{NODE, Shared},
    writer::{Notes, Writer, delete},
};

/// Name of the counter of applies that were rejected because of another owner.
pub(crate) const CONFLICT: &str = "conflicts of applies";
/// Name of the counter of applies that took fields of other managers.
pub(crate) const FORCED: &str = "applies by force";
/// Name of the counter of applies of a status.
pub(crate) const STATUS: &str = "applies of a status";

/// Length of long values in config maps, more than a page of the database.
const LONG: usize = 5_000;

/// A client that writes the shared objects until the server ends.
pub(crate) struct Applier {
    pub(crate) writer: Writer,
}

/// The fields that a write of an object or of its subresource can contain.
struct Part {
    subresource: &'static str,
    map: &'static str,
    /// The field with the value 1 that each create and each apply contains, so that the map is never empty.
    base: &'static str,
    others: [&'static str; 3],
}

const DATA: Part = Part {
    subresource: "",
    map: ".data",
    base: "base",
    others: ["a", "b", "c"],
};
const LABELS: Part = Part {
    map: ".metadata.labels",
    ..DATA
};
const ALLOCATABLE: Part = Part {
    subresource: "status",
    map: ".status.allocatable",
    base: "pods",
    others: ["cpu", "memory", "ephemeral-storage"],
};

/// Returns the request that applies `config`; `query` is empty or starts with `&`.
pub(crate) fn apply(
    shared: &Shared,
    manager: &Manager,
    config: &Fields,
    query: &str,
) -> Result<Request<Vec<u8>>> {
    let mut object = shared.key.bare();
    set(&mut object, config);
    let mut uri = shared.key.uri();
    if !manager.subresource.is_empty() {
        uri = format!("{uri}/{}", manager.subresource);
    }
    let uri = format!("{uri}?fieldManager={}{query}", manager.name);
    request(Method::PATCH, (uri, "apply-patch+yaml"), &object)
}

/// Sends an apply that must be rejected with a message. Returns whether the server responded.
///
/// # Errors
/// Returns an error if the apply is executed, or rejected with another error.
pub(crate) async fn reject(
    client: &Client,
    request: Request<Vec<u8>>,
    message: &str,
) -> Result<bool> {
    match client.request::<Value>(request).await {
        Ok(object) => {
            let metadata = &object["metadata"];
            bail!("an apply was not rejected with {message:?}: {metadata}")
        }
        Err(Error::Api(status)) => {
            ensure!(
                status.code == 409 && status.message == message,
                "an apply was rejected with {:?}, not {message:?}",
                status.message
            );
            Ok(true)
        }
        Err(_) => Ok(false),
    }
}

/// Returns whether each apply by any manager contains the field.
pub(crate) fn is_fixed(path: &str) -> bool {
    let is_base = |part: &Part| path == format!("{}.{}", part.map, part.base);
    path.starts_with(&annotation("")) || [DATA, LABELS, ALLOCATABLE].iter().any(is_base)
}

fn annotation(of: &str) -> String {
    format!(".metadata.annotations.{VALUE_OF}{of}")
}

fn request(
    method: Method,
    (uri, content): (String, &str),
    body: &Value,
) -> Result<Request<Vec<u8>>> {
    let request = Request::builder().method(method).uri(uri);
    let request = request.header("content-type", format!("application/{content}"));
    Ok(request.body(body.to_string().into_bytes())?)
}

impl Applier {
    /// Sends write requests, as [`Writer::storm`] does.
    ///
    /// # Errors
    /// Returns an error if the server rejects a request for another reason than a computed conflict, or returns another
    /// object than the computed one.
    pub(crate) async fn storm(mut self) -> Result<()> {
        let notes = Arc::clone(&self.writer.notes);
        while self.writer.is_left() {
            let nth = self.writer.rng.usize(..notes.shared.len());
            let mut shared = notes.shared[nth].lock().await;
            // If the write of another client has no response, the server has ended.
            if shared.is_pending() || !self.write(&notes, &mut shared).await? {
                break;
            }
            drop(shared);
            self.writer.acknowledged();
        }
        Ok(())
    }

    /// Writes an object, and returns whether the server responded.
    async fn write(&mut self, notes: &Notes, shared: &mut Shared) -> Result<bool> {
        let value = notes.next_value();
        let live = shared.ownership()?;
        let is_node = shared.key.kind == NODE;
        let main = if is_node { LABELS } else { DATA };
        if shared.object().is_none() {
            return if self.writer.rng.bool() {
                self.create(shared, &main, value).await
            } else {
                self.apply(shared, &main, value).await
            };
        }
        match self.writer.rng.usize(..12) {
            0 => {
                let request = delete(&shared.key)?;
                self.send(shared, None, (value, request)).await
            }
            1..3 => {
                let (result, fields) = self.edit(&live, &main, value);
                let mut patch = json!({});
                for path in live.fields.keys().chain(fields.keys()) {
                    let (old, new) = (live.fields.get(path), fields.get(path));
                    if old != new {
                        *member(&mut patch, path) = json!(new);
                    }
                }
                let uri = format!("{}?fieldManager={}", shared.key.uri(), self.editor().name);
                let request = request(Method::PATCH, (uri, "merge-patch+json"), &patch)?;
                self.send(shared, Some(result), (value, request)).await
            }
            3..5 => {
                let (result, fields) = self.edit(&live, &main, value);
                let mut object = shared.object().context("it exists")?.clone();
                *member(&mut object, main.map) = json!({});
                set(&mut object, &fields);
                let uri = format!("{}?fieldManager={}", shared.key.uri(), self.editor().name);
                let request = request(Method::PUT, (uri, "json"), &object)?;
                self.send(shared, Some(result), (value, request)).await
            }
            5..8 if is_node => self.apply(shared, &ALLOCATABLE, value).await,
            _ => self.apply(shared, &main, value).await,
        }
    }

    /// Creates the object without an apply.
    async fn create(&mut self, shared: &mut Shared, part: &Part, value: u64) -> Result<bool> {
        let editor = self.editor();
        let fields = self.draw(part, &editor, value);
        let mut object = shared.key.bare();
        set(&mut object, &fields);
        let collection = KINDS[shared.key.kind].collection;
        let uri = format!("{collection}?fieldManager={}", editor.name);
        let request = request(Method::POST, (uri, "json"), &object)?;
        let result = Ownership::default().update(&editor, &fields);
        self.send(shared, Some(result), (value, request)).await
    }

    /// Applies a drawn configuration to the object or its status.
    async fn apply(&mut self, shared: &mut Shared, part: &Part, value: u64) -> Result<bool> {
        let manager = Manager {
            name: format!("manager-{}", self.writer.number),
            operation: Operation::Apply,
            subresource: part.subresource.to_owned(),
        };
        let config = self.draw(part, &manager, value);
        let live = shared.ownership()?;
        let conflict = live.apply(&manager, &config, false).err();
        let is_forced = self.writer.rng.bool();
        if let Some(message) = &conflict
            && !is_forced
        {
            let request = apply(shared, &manager, &config, "")?;
            if !reject(&self.writer.client, request, message).await? {
                return Ok(false);
            }
            self.writer.notes.seen.lock().count(CONFLICT);
        }
        let query = if is_forced || conflict.is_some() {
            "&force=true"
        } else {
            ""
        };
        let result = live.apply(&manager, &config, true);
        let result = result.map_err(anyhow::Error::msg)?;
        let request = apply(shared, &manager, &config, query)?;
        let is_written = self.send(shared, Some(result), (value, request)).await?;
        if is_written && conflict.is_some() {
            self.writer.notes.seen.lock().count(FORCED);
        }
        if is_written && !part.subresource.is_empty() {
            self.writer.notes.seen.lock().count(STATUS);
        }
        Ok(is_written)
    }

    /// Draws a change of some fields that is no apply. Returns its result, and all fields after it.
    fn edit(&mut self, live: &Ownership, part: &Part, value: u64) -> (Ownership, Fields) {
        let editor = self.editor();
        let mut fields = live.fields.clone();
        fields.insert(annotation(&editor.name), value.to_string());
        for other in part.others {
            let path = format!("{}.{other}", part.map);
            match self.writer.rng.usize(..4) {
                0 => drop(fields.remove(&path)),
                1 => drop(fields.insert(path, self.text(part))),
                _ => {}
            }
        }
        (live.update(&editor, &fields), fields)
    }

    /// Draws the fields of an apply or a create.
    fn draw(&mut self, part: &Part, manager: &Manager, value: u64) -> Fields {
        let name = format!("{}{}", manager.name, manager.subresource);
        let base = format!("{}.{}", part.map, part.base);
        let fixed = [(annotation(&name), value.to_string()), (base, "1".into())];
        let mut fields = Fields::from(fixed);
        for other in part.others {
            if self.writer.rng.bool() {
                fields.insert(format!("{}.{other}", part.map), self.text(part));
            }
        }
        fields
    }

    /// Draws the value of a field. Values are often equal, so that a field can have several owners.
    fn text(&mut self, part: &Part) -> String {
        let is_long = part.map == DATA.map && self.writer.rng.bool();
        let text = if self.writer.rng.bool() { "1" } else { "2" };
        text.repeat(if is_long { LONG } else { 1 })
    }

    fn editor(&self) -> Manager {
        Manager {
            name: format!("editor-{}", self.writer.number),
            operation: Operation::Update,
            subresource: String::new(),
        }
    }

    /// Sends a write with its number. Returns whether the server responded; `result` is `None` for a deletion.
    async fn send(
        &self,
        shared: &mut Shared,
        result: Option<Ownership>,
        (value, request): (u64, Request<Vec<u8>>),
    ) -> Result<bool> {
        let wanted = result.as_ref().map(|_| value);
        shared.tried(result);
        let key = shared.key.clone();
        let Some(answer) = self.writer.send(&key, wanted, request).await? else {
            return Ok(false);
        };
        self.writer.notes.note(key, wanted, &answer)?;
        shared.done(wanted.map(|_| answer))?;
        Ok(true)
    }
}
