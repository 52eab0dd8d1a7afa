//! Marks stored objects as broken if they fail to decode when a reader accesses them.
//!
//! A broken object is stored with its decoding error. Such failures occur only in a lazy or packed cache,
//! which stores encoded objects. Only the informer's loop may modify the store. A reader therefore sends a
//! command, and the loop marks the object between two batches.

use super::{Command, Serving};
use crate::object::ObjectName;

impl<K: Send + Sync + 'static> Serving<K> {
    /// Executes a [`Command::FoundBroken`] for `name`, and the `FoundBroken` commands that follow directly in
    /// the command channel.
    ///
    /// Receives commands until the batch is full, the channel is empty, or a command has another type.
    /// Returns the received command of another type, if any. The caller must execute this command.
    pub(super) fn find_broken(&mut self, name: ObjectName) -> Option<Command<K>> {
        let mut names = vec![name];
        let mut next = None;
        while names.len() < self.parts.bounds.batch
            && let Ok(command) = self.parts.commands.try_recv()
        {
            match command {
                Command::FoundBroken(name) => names.push(name),
                other => {
                    next = Some(other);
                    break;
                }
            }
        }
        let indexer = &mut self.parts.indexer;
        if indexer.find_broken(&names) {
            self.notes.note(&indexer.snapshot(), &[]);
        }
        next
    }
}
