//! Resolves the scope of an informer: its namespaces, and a [`Selection`] for each of them.
//!
//! A [`Selection`] consists of selectors and of options for list and watch requests. Selections can be set
//! for one informer, for its type and for all kinds. This module combines them by precedence into one
//! [`Scope`]. It sends no requests.

use std::collections::BTreeMap;

use crate::{logs, reflector::RequestOptions, selector::Selector};

/// The empty namespace name, which stands for all namespaces that the scope does not list separately.
const ALL: &str = "";

/// Selectors and request options for one namespace or for all namespaces.
///
/// If a field is not set, a less specific [`Level`] applies. An empty selector counts as set.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    pub(super) labels: Option<Selector>,
    pub(super) fields: Option<String>,
    pub(super) requests: RequestOptions,
}

/// Generates builder methods that set the fields of the [`Selection`] at `self.$path`.
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

/// The namespaces and the [`Selection`]s that were set for one informer, for one type, or for all kinds.
///
/// Settings for one informer have the highest precedence, and settings for all kinds have the lowest.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub(super) everywhere: Selection,
    /// The namespaces to list and watch, each with its [`Selection`]. An empty map means all namespaces.
    ///
    /// `None` means that no namespaces were set here. Then the namespaces for the type apply, or else those
    /// for all kinds.
    pub(super) namespaces: Option<BTreeMap<String, Selection>>,
}

/// The namespaces of an informer, each with the selectors that apply to its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    /// Never empty, ordered by namespace.
    pub(super) sections: Vec<Section>,
}

/// One namespace of an informer's scope, which the informer lists and watches separately.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Name of the namespace. The empty name means all namespaces that [`Scope::sections`] does not name.
    pub(super) namespace: String,
    pub(super) labels: Selector,
    pub(super) fields: String,
    pub(super) requests: RequestOptions,
}

/// Ignores the options of list and watch requests.
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
    /// Fills the values that are not set in `self` with the values of `general`.
    ///
    /// The namespaces are not merged: if `self` sets namespaces, those of `general` are ignored.
    pub(super) fn or(self, general: Self) -> Self {
        Self {
            everywhere: self.everywhere.or(Some(&general.everywhere)),
            namespaces: self.namespaces.or(general.namespaces),
        }
    }

    /// Returns the selection for a namespace. Unset values are filled from the selection for all namespaces.
    fn of(&self, namespace: &str) -> Selection {
        let named = self.namespaces.as_ref();
        let here = named.and_then(|named| named.get(namespace)).cloned();
        here.unwrap_or_default().or(Some(&self.everywhere))
    }

    /// Returns the name of an option for list and watch requests that differs between `self` and `other`, if
    /// any.
    ///
    /// Does not compare selectors.
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
    /// Combines the levels of precedence into the scope of one informer.
    ///
    /// `levels` is ordered from the most to the least specific level: the informer, its type, all kinds. If a
    /// level does not set a value, the value of the next level applies. For a cluster-scoped kind, namespaces
    /// are ignored.
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

    /// Returns a default name for an informer, such as `pods in shop with labels app=web`.
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

    /// Returns the result of `of`, if the result is equal for all sections and not empty.
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

    /// Adds conditions to the field selector that exclude the objects in `namespaces`.
    ///
    /// The informer lists each of these namespaces with a separate request. Without the conditions, it would
    /// list their objects twice. The name `""` in `namespaces` is ignored.
    fn leave_out(&mut self, namespaces: &[&str]) {
        let named = namespaces.iter().filter(|namespace| **namespace != ALL);
        let excluded = named.map(|namespace| format!("metadata.namespace!={namespace}"));
        let own = Some(std::mem::take(&mut self.fields)).filter(|fields| !fields.is_empty());
        self.fields = excluded.chain(own).collect::<Vec<_>>().join(",");
    }
}

#[cfg(test)]
mod tests;
