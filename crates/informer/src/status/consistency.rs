//! [`ConsistencyChecks`]: what the comparisons of a cache with its server have shown.

use std::{fmt, sync::Arc};

use crate::{
    object::{ObjectName, ResourceVersion},
    transport,
};

/// How the [consistency checks](crate::shared_informer::Builder::consistency_check) of an informer
/// have come out, of all its sources together. All zero if there are none.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConsistencyChecks {
    /// How many found that cache and server have the same.
    pub same: u64,
    /// How many found a difference.
    pub different: u64,
    /// How many could not be made: the server did not answer with the state that the cache has.
    pub failed: u64,
    /// The last difference that was found, which may be long mended.
    pub last_difference: Option<Arc<Difference>>,
    /// Why the last one that could not be made could not.
    pub last_failure: Option<Arc<transport::Error>>,
}

/// In what a cache differs from what its server has at the revision of the cache. Names a few objects,
/// never content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// What was compared, as its
    /// [`ListerWatcher`](crate::transport::ListerWatcher::description) says it.
    pub description: Arc<str>,
    /// The revision of the cache.
    pub revision: ResourceVersion,
    /// Whether the server does not know that revision yet: it was put back, or is another one. Nothing
    /// was compared then.
    pub went_back: bool,
    /// How many objects only the server has.
    pub missing: usize,
    /// How many have another revision there.
    pub outdated: usize,
    /// How many have another uid there: they were deleted, and made anew under the same name.
    pub replaced: usize,
    /// How many only the cache has.
    pub surplus: usize,
    /// Some of those objects, at most [`Difference::NAMED`].
    pub examples: Vec<ObjectName>,
}

impl Difference {
    /// So many objects are named.
    pub const NAMED: usize = 5;

    /// How many objects differ.
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
                "{description}: the server has not reached revision {revision} of the cache: it was put back, or is another one"
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
