//! Defines the error of an apply that would take fields of other managers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::managed::Identifier;
use super::set::Set;
use crate::status::StatusCause;

/// Maximum number of conflicts that a message lists. Kubernetes has no such limit.
pub(crate) const CONFLICTS_MAX: usize = 1_000;

/// Total length in bytes of the paths after which a message lists no more conflicts.
pub(crate) const CONFLICTS_BYTES_MAX: usize = 1 << 20;

/// The fields that an apply would change, although other managers own them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conflicts {
    pub(super) by_manager: BTreeMap<String, Set>,
}

impl Conflicts {
    /// Returns the conflicts without those in some fields.
    pub(super) fn without(mut self, fields: &Set) -> Conflicts {
        self.by_manager.retain(|_, set| {
            set.subtract(fields);
            !set.is_empty()
        });
        self
    }

    /// Returns the message of the 409 error.
    pub(crate) fn message(&self) -> String {
        let count: usize = self.by_manager.values().map(Set::len).sum();
        let listed = self.listed();
        if let ([(manager, paths)], 1) = (listed.as_slice(), count) {
            let path = paths.first().map(String::as_str).unwrap_or_default();
            return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        let mut message = format!("Apply failed with {count} conflicts: ");
        for (at, (manager, paths)) in listed.iter().enumerate() {
            let line_end = if at == 0 { "" } else { "\n" };
            write!(message, "{line_end}conflicts with {manager}:")
                .expect("writing to a String does not fail");
            for path in paths {
                write!(message, "\n- {path}").expect("writing to a String does not fail");
            }
        }
        message
    }

    /// Returns the causes of the 409 error.
    pub(crate) fn causes(&self) -> Vec<StatusCause> {
        let mut causes = Vec::new();
        for (manager, paths) in self.listed() {
            causes.extend(paths.into_iter().map(|path| StatusCause {
                reason: "FieldManagerConflict".to_owned(),
                message: format!("conflict with {manager}"),
                field: path,
            }));
        }
        causes
    }

    /// Returns the managers, and the paths of each, as far as the limits allow.
    fn listed(&self) -> Vec<(String, Vec<String>)> {
        let (mut count, mut bytes) = (0, 0);
        let mut listed = Vec::new();
        for (manager, set) in &self.by_manager {
            let mut paths = Vec::new();
            let done = set.each_path(&mut Vec::new(), &mut |path| {
                if count == CONFLICTS_MAX || bytes >= CONFLICTS_BYTES_MAX {
                    return Err(());
                }
                let path: String = path.iter().map(ToString::to_string).collect();
                count += 1;
                bytes += path.len();
                paths.push(path);
                Ok(())
            });
            let name = Identifier::parse(manager).unwrap_or_default();
            listed.push((name.to_string(), paths));
            if done.is_err() {
                break;
            }
        }
        listed
    }
}
