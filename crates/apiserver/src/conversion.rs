//! Converts the objects of built-in kinds between the versions of a kind.
//!
//! Guarantees:
//! - the objects of all versions of a kind are stored in one version, that of Kubernetes;
//! - the conversions, their defaults and their losses are those of Kubernetes.
//!
//! In Kubernetes 1.36, two kinds that are served by default have several versions: `HorizontalPodAutoscaler`, and
//! `Event`, whose versions are in two groups. Custom kinds are converted by their [`Model`](crate::schema::Model).

mod autoscaler;
mod event;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::kinds::{Kind, Kinds};
use crate::typed::{self, ValueType};

type Members = Map<String, Value>;

/// The functions that convert the members of an object between two versions of its kind.
#[derive(Debug)]
struct Rules {
    /// The version whose objects are stored in another version: `apiVersion` and `kind`.
    shown: (&'static str, &'static str),
    /// The `apiVersion` of the stored objects.
    stored: &'static str,
    store: fn(&mut Members),
    show: fn(&mut Members),
}

const RULES: [Rules; 2] = [autoscaler::RULES, event::RULES];

/// The conversion between one version of a kind and the version in which its objects are stored.
#[derive(Debug)]
pub(crate) struct Conversion {
    rules: &'static Rules,
    shown: Arc<Kind>,
    stored: Arc<Kind>,
    stored_type: ValueType,
}

impl Conversion {
    /// Returns the conversion of a version, or `None` if its objects are stored as they are.
    ///
    /// They also are if `served` does not have the version in which Kubernetes stores them.
    pub(crate) fn of(kind: &Arc<Kind>, served: &Kinds) -> Option<Conversion> {
        let is_shown = |rules: &&Rules| rules.shown.1 == kind.kind;
        let mut rules = RULES.iter().filter(is_shown);
        let rules = rules.find(|rules| !kind.custom && rules.shown.0 == kind.api_version())?;
        let stored = served.shared_by_kind(rules.stored, &kind.kind)?;
        Some(Conversion {
            rules,
            shown: Arc::clone(kind),
            stored: Arc::clone(stored),
            stored_type: ValueType::of(stored),
        })
    }

    /// Returns the resource whose collection has the objects, such as `events`.
    pub(crate) fn collection(&self) -> String {
        self.stored.group_resource()
    }

    /// Returns the type of the stored objects.
    pub(crate) fn stored_type(&self) -> ValueType {
        self.stored_type
    }

    /// Converts an object of the version to the stored version.
    pub(crate) fn store(&self, object: &mut Members) {
        self.rules.store(&self.stored, object);
    }

    /// Converts a stored object to the version.
    pub(crate) fn show(&self, object: &mut Members) {
        (self.rules.show)(object);
        typed::complete(&self.shown, object);
    }
}

impl Rules {
    fn store(&self, stored: &Kind, object: &mut Members) {
        (self.store)(object);
        if typed::set_defaults(stored, object).is_err() {
            tracing::warn!("the defaults of a converted object are too large, so some are not set");
        }
        typed::complete(stored, object);
    }
}

/// Converts an object of a data directory to the version in which `kind` is stored. Returns `None` if the object has
/// this version.
///
/// Earlier versions of this library stored each autoscaler in the version of the last write.
#[cfg(feature = "persistence")]
pub(crate) fn upgraded(kind: &Kind, object: &Members) -> Option<Members> {
    let rules = &autoscaler::RULES;
    let is_stored = (rules.stored, rules.shown.1) == (&*kind.api_version(), &*kind.kind);
    if kind.custom || !is_stored || autoscaler::is_stored_form(object) {
        return None;
    }
    let mut object = object.clone();
    rules.store(kind, &mut object);
    Some(object)
}

/// Renames the members of an object. Each pair has the old and the new name.
fn rename(members: &mut Members, names: impl IntoIterator<Item = (&'static str, &'static str)>) {
    for (old, new) in names {
        if let Some(value) = members.remove(old) {
            members.insert(new.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests;
