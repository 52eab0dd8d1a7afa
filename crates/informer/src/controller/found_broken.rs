//! Handles objects of packed and lazy caches that fail to decode when they are read.
//!
//! The store has a single writer, so a reader does not modify it. The first read that fails sends a command,
//! and the loop marks the object as broken between two batches.

use super::{Command, Serving};
use crate::object::ObjectName;

impl<K: Send + Sync + 'static> Serving<K> {
    /// Marks this object as broken, together with the objects of the commands that directly follow.
    ///
    /// Many failed reads thus cause a single update of the store and the status. Returns the first command
    /// of another kind, if one was received.
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
