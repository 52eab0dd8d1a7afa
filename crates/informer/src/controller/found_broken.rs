//! Marks stored objects of a packed or lazy cache as broken if they fail to decode when they are read.
//!
//! Only the informer's loop may modify the store. A reader therefore sends a command, and the loop marks the
//! object as broken between two batches.

use super::{Command, Serving};
use crate::object::ObjectName;

impl<K: Send + Sync + 'static> Serving<K> {
    /// Marks the stored object `name` as broken, and the objects of all [`Command::FoundBroken`] that
    /// directly follow in the channel.
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
