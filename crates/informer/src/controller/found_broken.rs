//! Marks stored objects as broken if they fail to decode when they are read, in packed and lazy caches.
//!
//! The store has a single writer, so a reader does not modify the store. The first read that fails sends a
//! command, and the loop marks the object as broken between two batches.

use super::{Command, Serving};
use crate::object::ObjectName;

impl<K: Send + Sync + 'static> Serving<K> {
    /// Marks the stored object `name` as broken.
    ///
    /// Also receives the [`Command::FoundBroken`] commands that directly follow in the channel, and marks
    /// their objects. Many failed reads thus cause a single update of the store and the status.
    ///
    /// If a command of another type was received, returns this command. The caller must execute it.
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
