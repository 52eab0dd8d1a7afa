//! Which objects an informer covers, and which selection holds where several are set.

use std::collections::BTreeMap;

use crate::{logs, reflector::RequestOptions, selector::Selector};

/// Stands for all namespaces that are not named beside it.
const ALL: &str = "";

/// The labels, fields and options of requests that are set in one place. What is not set there is decided by the
/// next place; an empty selector is set.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    pub(super) labels: Option<Selector>,
    pub(super) fields: Option<String>,
    pub(super) requests: RequestOptions,
}

/// The setters of [`Selection`], for a builder that has one at this path.
macro_rules! selection_methods {
    ($($path:ident).+) => {
        /// Only objects with these labels; the empty selector means all.
        pub fn labels(mut self, labels: crate::selector::Selector) -> Self {
            self.$($path).+.labels = Some(labels);
            self
        }

        /// Only objects with these fields, for example `spec.nodeName=node-1`; the empty text means all.
        pub fn fields(mut self, fields: impl Into<String>) -> Self {
            self.$($path).+.fields = Some(fields.into());
            self
        }

        crate::reflector::request_methods!($($path).+.requests);
    };
}
pub(super) use selection_methods;

/// The selections for all kinds, for one type, or for one informer.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub(super) everywhere: Selection,
    /// By name; `None` if the next level decides, and none at all means all of them.
    pub(super) namespaces: Option<BTreeMap<String, Selection>>,
}

/// Which objects an informer is over: of each namespace those that are selected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    /// At least one, in the order of the names.
    pub(super) sections: Vec<Section>,
}

/// What is selected in one namespace, and how it is requested. Each is a source of the informer.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Empty for all that no other section has.
    pub(super) namespace: String,
    pub(super) labels: Selector,
    pub(super) fields: String,
    pub(super) requests: RequestOptions,
}

/// How something is requested does not decide which informer it is.
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
    /// What this selects, and where it does not the more `general` level.
    pub(super) fn or(self, general: Self) -> Self {
        Self {
            everywhere: self.everywhere.or(Some(&general.everywhere)),
            namespaces: self.namespaces.or(general.namespaces),
        }
    }

    /// What is set for a namespace, and for everywhere.
    fn of(&self, namespace: &str) -> Selection {
        let named = self.namespaces.as_ref();
        let here = named.and_then(|named| named.get(namespace)).cloned();
        here.unwrap_or_default().or(Some(&self.everywhere))
    }

    /// What the first option of a request that differs in any namespace is called.
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
    /// What the first of the levels selects that selects anything, in a namespace before everywhere. A kind that
    /// is in no namespace has one section, and no level's namespaces.
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

    /// A name for an informer of this scope: `pods in shop with labels app=web`. Selectors that differ
    /// between namespaces are not part of it.
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

    /// What is said of all sections.
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

    /// What another section has is not to be had twice.
    fn leave_out(&mut self, namespaces: &[&str]) {
        let named = namespaces.iter().filter(|namespace| **namespace != ALL);
        let excluded = named.map(|namespace| format!("metadata.namespace!={namespace}"));
        let own = Some(std::mem::take(&mut self.fields)).filter(|fields| !fields.is_empty());
        self.fields = excluded.chain(own).collect::<Vec<_>>().join(",");
    }
}

#[cfg(test)]
mod tests;
