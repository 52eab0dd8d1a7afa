//! Objects of packed and lazy caches that turn out not to decode when they are read.
//!
//! The store has one writer, so a reader does not change it: the first read that fails sends a command, and
//! the loop moves the object among the broken ones between two batches.

use super::{Command, Serving};
use crate::object::ObjectName;

impl<K: Send + Sync + 'static> Serving<K> {
    /// Moves this object among the broken ones, together with all others whose commands wait behind it. If
    /// many are read at once, readers get one new root and the status one update. Returns the command behind them.
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
