//! Defines [`ConsistencyChecks`], the results of comparisons of a cache with its server.
//!
//! The module compares no objects.

use std::{fmt, sync::Arc};

use crate::{
    object::{ObjectName, ResourceVersion},
    transport,
};

/// Results of an informer's [consistency checks](crate::shared_informer::Builder::consistency_check).
///
/// If the informer has several sources, such as namespaces, the counts are totals over all sources. All
/// counts are zero if checks are disabled.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConsistencyChecks {
    /// Number of checks that found no difference.
    pub same: u64,
    /// Number of checks that found a difference.
    pub different: u64,
    /// Number of checks that failed because the server did not return the state at the cache's revision.
    pub failed: u64,
    /// The last difference that a check found; `None` if no check found a difference. A later list may have
    /// repaired the difference.
    pub last_difference: Option<Arc<Difference>>,
    /// Error of the last failed check; `None` if no check has failed.
    pub last_failure: Option<Arc<transport::Error>>,
}

/// The difference between a cache and its server at the cache's revision.
///
/// The value contains the names of a few objects, but never the content of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The collection that was compared, from
    /// [`ListerWatcher::description`](crate::transport::ListerWatcher::description).
    pub description: Arc<str>,
    /// Revision of the cache at which the objects were compared.
    pub revision: ResourceVersion,
    /// Whether the server is at an older revision than the cache, because the server was restored from a
    /// backup or is another server. If `true`, no objects were compared.
    pub went_back: bool,
    /// Number of objects that are on the server and not in the cache.
    pub missing: usize,
    /// Number of objects that have another revision on the server than in the cache.
    pub outdated: usize,
    /// Number of objects that have another uid on the server than in the cache, because they were deleted and
    /// created again under the same name.
    pub replaced: usize,
    /// Number of objects that are in the cache and not on the server.
    pub surplus: usize,
    /// Names of some of the objects that differ, at most [`Difference::NAMED`].
    pub examples: Vec<ObjectName>,
}

impl Difference {
    /// Maximum length of [`Difference::examples`].
    pub const NAMED: usize = 5;

    /// Returns the number of objects that differ.
    pub fn objects(&self) -> usize {
        self.missing + self.outdated + self.replaced + self.surplus
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            description,
            revision,
            went_back,
            missing,
            outdated,
            replaced,
            surplus,
            examples,
        } = self;
        if *went_back {
            return write!(
                f,
                "{description}: the server has not reached revision {revision} of the cache: it was restored from a backup, or is another server"
            );
        }
        write!(
            f,
            "{description}: the cache differs from the server at revision {revision}: {missing} missing, {outdated} outdated, {replaced} replaced, {surplus} surplus"
        )?;
        let mut separator = " (";
        for name in examples {
            write!(f, "{separator}{name}")?;
            separator = ", ";
        }
        match (examples.len(), self.objects()) {
            (0, _) => Ok(()),
            (named, all) if named < all => f.write_str(", …)"),
            _ => f.write_str(")"),
        }
    }
}
