//! Runs clients that write custom resource definitions, and objects of the kinds that these define.
//!
//! Guarantees: each definition, and each object of its kind, has only one writer, which waits for each response. After
//! an acknowledged write of a definition, the writer checks that the server has completed the work that follows: the
//! kind is served as the definition requires, with the acknowledged objects, or, after a deletion, not at all.

use anyhow::{Result, bail, ensure};
use http::Request;

use crate::{
    definition::{self, check, definition},
    object::{KINDS, Key, Seen, revision},
    request::{Answer, get},
    watcher::list,
    writer::{BYTES_MAX, Writer, create, delete},
};

/// A client that writes one definition and the objects of its kind until the server ends.
pub(crate) struct Owner {
    pub(crate) writer: Writer,
    /// Index of the defined kind in [`KINDS`].
    pub(crate) kind: usize,
}

impl Owner {
    /// Sends write requests, as [`Writer::storm`] does.
    ///
    /// # Errors
    /// Returns an error if the server rejects a request or returns an invalid response, or if the work that follows the
    /// write of a definition is incomplete.
    pub(crate) async fn storm(mut self) -> Result<()> {
        while self.writer.is_left() && self.write().await? {
            self.writer.acknowledged();
        }
        Ok(())
    }

    /// Writes the definition or an object of its kind, and returns whether the server responded.
    async fn write(&mut self) -> Result<bool> {
        let key = Key::of_definition(self.kind);
        let is_there = self.writer.notes.known.lock().state(&key).is_some();
        let value = self.writer.draw();
        let rng = &mut self.writer.rng;
        let object = definition(self.kind, value, rng.usize(20..BYTES_MAX));
        match rng.usize(..10) {
            _ if !is_there => self.define(value, create(&key, &object)?).await,
            0 => self.delete().await,
            1 | 2 => {
                let request = self.writer.replace(&key, object)?;
                self.define(value, request).await
            }
            _ => self.writer.write(self.kind).await,
        }
    }

    /// Creates or updates the definition, and checks that its kind is served.
    async fn define(&self, value: u64, request: Request<Vec<u8>>) -> Result<bool> {
        let (client, notes) = (&self.writer.client, &self.writer.notes);
        let key = Key::of_definition(self.kind);
        let Some(answer) = self.writer.send(&key, Some(value), request).await? else {
            return Ok(false);
        };
        notes.note(key.clone(), Some(value), &answer)?;
        // The server's own writes to the status do not change the number.
        notes.known.lock().tried(&key, Some(value));
        let stored = match get(client, &key.uri()).await? {
            Answer::Lost => return Ok(false),
            Answer::NotFound => bail!("{key} was stored, but does not exist"),
            Answer::Found(stored) => stored,
        };
        check(&stored)?;
        let seen = Seen::read(key.kind, &stored)?;
        ensure!(seen.value == value, "{key} is {seen:?}, not {value}");
        notes.note(key, Some(value), &stored)?;
        let Answer::Found((objects, _)) = definition::objects(client, self.kind, value).await?
        else {
            return Ok(false);
        };
        let objects = objects.into_iter();
        let objects = objects.map(|seen| (seen.key.name, (seen.value, seen.revision)));
        let (objects, known) = (objects.collect(), notes.known.lock().of_kind(self.kind));
        ensure!(
            known == objects,
            "a definition was written, and {objects:?} are stored, but {known:?} were acknowledged"
        );
        Ok(true)
    }

    /// Deletes the definition, and checks that its kind is not served.
    async fn delete(&self) -> Result<bool> {
        let notes = &self.writer.notes;
        let key = Key::of_definition(self.kind);
        let Some(marked) = self.writer.send(&key, None, delete(&key)?).await? else {
            return Ok(false);
        };
        let seen = Seen::read(key.kind, &marked)?;
        let change = (seen.key, Some(seen.value));
        notes
            .revisions
            .lock()
            .changed(revision(&marked)?, &change)?;
        notes.known.lock().done(&key, None);
        notes.known.lock().emptied(self.kind);
        match list(&self.writer.client, self.kind).await? {
            Answer::Lost => Ok(false),
            Answer::NotFound => Ok(true),
            Answer::Found(_) => bail!("{} are served without a definition", KINDS[self.kind].name),
        }
    }
}
