//! Resolves the scope of an informer: its namespaces, and a [`Selection`] for each of them.
//!
//! A [`Selection`] consists of selectors and of options for list and watch requests. Selections can be set
//! for one informer, for its type and for all kinds. This module combines them by precedence into one
//! [`Scope`]. It sends no requests.

use std::collections::BTreeMap;

use crate::{logs, reflector::RequestOptions, selector::Selector};

/// Name of the section that covers all namespaces without a section of their own.
const ALL: &str = "";

/// Selectors, and options of list and watch requests, for one namespace or for all namespaces.
///
/// If a field is not set, the value of a less specific [`Level`] applies. An empty selector counts as set.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    pub(super) labels: Option<Selector>,
    pub(super) fields: Option<String>,
    pub(super) requests: RequestOptions,
}

/// Generates the setters of a [`Selection`] for a builder. The argument is the path of the builder's field
/// that stores the selection.
macro_rules! selection_methods {
    ($($path:ident).+) => {
        /// Selects only objects that match this label selector. The empty selector selects all objects.
        pub fn labels(mut self, labels: crate::selector::Selector) -> Self {
            self.$($path).+.labels = Some(labels);
            self
        }

        /// Selects only objects that match this field selector, for example `spec.nodeName=node-1`. The empty
        /// string selects all objects.
        pub fn fields(mut self, fields: impl Into<String>) -> Self {
            self.$($path).+.fields = Some(fields.into());
            self
        }

        crate::reflector::request_methods!($($path).+.requests);
    };
}
pub(super) use selection_methods;

/// The selections that are set at one level of precedence: for one informer, for one type, or for all kinds.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub(super) everywhere: Selection,
    /// Selections of single namespaces, by name. An empty map means all namespaces. `None` means that the
    /// namespaces of a less specific level apply.
    pub(super) namespaces: Option<BTreeMap<String, Selection>>,
}

/// The namespaces of an informer, each with the selectors that apply to its objects.
///
/// A section covers one namespace, or all namespaces that have no section of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    /// The sections of the scope, ordered by namespace. There is at least one section.
    pub(super) sections: Vec<Section>,
}

/// One namespace of an informer's scope, with its selectors and its options of list and watch requests.
///
/// The informer lists and watches each section separately.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Name of the namespace that this section covers. Empty if this section covers all namespaces that have
    /// no section of their own.
    pub(super) namespace: String,
    pub(super) labels: Selector,
    pub(super) fields: String,
    pub(super) requests: RequestOptions,
}

/// Compares the namespaces and selectors of two sections. The options of list and watch requests are ignored.
impl PartialEq for Section {
    fn eq(&self, other: &Self) -> bool {
        let key = |of: &Self| (of.namespace.clone(), of.labels.clone(), of.fields.clone());
        key(self) == key(other)
    }
}

impl Eq for Section {}

impl Selection {
    fn or(self, next: Option<&Self>) -> Self {
        let Some(next) = next else {
            return self;
        };
        Self {
            labels: self.labels.or_else(|| next.labels.clone()),
            fields: self.fields.or_else(|| next.fields.clone()),
            requests: self.requests.or(next.requests),
        }
    }
}

impl Level {
    /// Returns this level. Values that this level does not set come from the less specific level `general`.
    pub(super) fn or(self, general: Self) -> Self {
        Self {
            everywhere: self.everywhere.or(Some(&general.everywhere)),
            namespaces: self.namespaces.or(general.namespaces),
        }
    }

    /// Returns the selection that this level sets for a namespace.
    ///
    /// Each value that is not set for the namespace comes from the level's selection for all namespaces.
    fn of(&self, namespace: &str) -> Selection {
        let named = self.namespaces.as_ref();
        let here = named.and_then(|named| named.get(namespace)).cloned();
        here.unwrap_or_default().or(Some(&self.everywhere))
    }

    /// Returns the name of an option of list and watch requests that differs between the two levels.
    ///
    /// Compares the selections for all namespaces first, and then the selections of single namespaces.
    /// Returns `None` if no option differs.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        let named = [self, other].map(|level| level.namespaces.iter().flatten());
        let mut named = named.into_iter().flatten();
        let differs = |name: &str| self.of(name).requests.difference(&other.of(name).requests);
        let everywhere = self.everywhere.requests;
        let everywhere = everywhere.difference(&other.everywhere.requests);
        everywhere.or_else(|| named.find_map(|(name, _)| differs(name)))
    }
}

impl Scope {
    /// Combines the levels into a scope. The first one in `levels` is the most specific level.
    ///
    /// For each selector and each option of list and watch requests, the first level that sets it applies.
    /// Within a level, the selection of the namespace has precedence over the selection for all namespaces. A
    /// cluster-scoped kind has one section, and the namespaces of all levels are ignored.
    pub(super) fn resolve(levels: &[&Level], is_namespaced: bool) -> Self {
        let nothing = Selection::default;
        let selected = |namespace: &str| {
            let levels = levels.iter().map(|level| level.of(namespace));
            levels.fold(nothing(), |selection, level| selection.or(Some(&level)))
        };
        if !is_namespaced {
            let everywhere = levels.iter().map(|level| Some(&level.everywhere));
            let section = Section::new(ALL, everywhere.fold(nothing(), Selection::or));
            return Self {
                sections: vec![section],
            };
        }
        let named = levels.iter().find_map(|level| level.namespaces.as_ref());
        let named = named.filter(|namespaces| !namespaces.is_empty());
        let namespaces: Vec<_> = named.map_or_else(
            || vec![ALL],
            |namespaces| namespaces.keys().map(String::as_str).collect(),
        );
        let sections = namespaces.iter().map(|namespace| {
            let mut section = Section::new(namespace, selected(namespace));
            if *namespace == ALL {
                section.leave_out(&namespaces);
            }
            section
        });
        Self {
            sections: sections.collect(),
        }
    }

    /// Returns a default name for an informer of this scope, such as `pods in shop with labels app=web`.
    ///
    /// The name omits selectors that are not the same in all namespaces of the scope.
    pub(super) fn name(&self, plural: &str) -> String {
        let mut name = plural.to_owned();
        let namespaces = self.sections.iter().map(|section| &*section.namespace);
        if namespaces.clone().all(|namespace| namespace != ALL) {
            name += " in ";
            name += &logs::first_few(namespaces);
        }
        if let Some(labels) = self.common(|section| section.labels.to_string()) {
            name += " with labels ";
            name += &labels;
        }
        if let Some(fields) = self.common(|section| section.fields.clone()) {
            name += " with fields ";
            name += &fields;
        }
        name
    }

    /// Returns the text that `of` returns for every section; `None` if the texts differ or are empty.
    fn common(&self, of: impl Fn(&Section) -> String) -> Option<String> {
        let mut all = self.sections.iter().map(of);
        let first = all.next().filter(|first| !first.is_empty())?;
        all.all(|other| other == first).then_some(first)
    }
}

impl Section {
    fn new(namespace: &str, selection: Selection) -> Self {
        Self {
            namespace: namespace.to_owned(),
            labels: selection.labels.unwrap_or_default(),
            fields: selection.fields.unwrap_or_default(),
            requests: selection.requests,
        }
    }

    /// Adds conditions to this section's field selector that exclude the given namespaces.
    ///
    /// The section must be the one that covers all namespaces without a section of their own. Without these
    /// conditions, the informer would list the objects in `namespaces` twice.
    fn leave_out(&mut self, namespaces: &[&str]) {
        let named = namespaces.iter().filter(|namespace| **namespace != ALL);
        let excluded = named.map(|namespace| format!("metadata.namespace!={namespace}"));
        let own = Some(std::mem::take(&mut self.fields)).filter(|fields| !fields.is_empty());
        self.fields = excluded.chain(own).collect::<Vec<_>>().join(",");
    }
}

#[cfg(test)]
mod tests;
