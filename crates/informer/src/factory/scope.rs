//! Which objects an informer is over, and what wins where several things are said of it.

use std::collections::BTreeMap;

use crate::{logs, selector::Selector};

/// Stands for all namespaces that are not named beside it.
const ALL: &str = "";

/// What is said of labels and fields in one place. Where nothing is said the next place decides; an
/// empty selector is said.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    pub(super) labels: Option<Selector>,
    pub(super) fields: Option<String>,
}

/// What is said of all kinds, or of one type.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub(super) everywhere: Selection,
    /// By name; none at all means that nothing is said of them.
    pub(super) namespaces: Option<BTreeMap<String, Selection>>,
}

/// Which objects an informer is over: of each namespace those that are selected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    /// At least one, in the order of the names.
    pub(super) sections: Vec<Section>,
}

/// What is selected in one namespace. Each is a source of the informer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Empty for all that no other section has.
    pub(super) namespace: String,
    pub(super) labels: Selector,
    pub(super) fields: String,
}

impl Selection {
    fn or(self, next: Option<&Self>) -> Self {
        let Some(next) = next else {
            return self;
        };
        Self {
            labels: self.labels.or_else(|| next.labels.clone()),
            fields: self.fields.or_else(|| next.fields.clone()),
        }
    }
}

impl Level {
    fn of_namespace(&self, namespace: &str) -> Option<&Selection> {
        self.namespaces.as_ref()?.get(namespace)
    }
}

impl Scope {
    /// What is said nearest to the informer holds: in its own options (`own`, and the namespaces
    /// there), of the type in this namespace, of the type, of all kinds in this namespace, of all
    /// kinds. A kind that is in no namespace has one section, and what is said of namespaces does not
    /// concern it.
    pub(super) fn resolve(
        (own, own_namespaces): (&Selection, Option<&[String]>),
        of_type: &Level,
        of_all: &Level,
        is_namespaced: bool,
    ) -> Self {
        let everywhere = |selection: Selection| {
            let selection = selection.or(Some(&of_type.everywhere));
            selection.or(Some(&of_all.everywhere))
        };
        if !is_namespaced {
            let section = Section::new(ALL, everywhere(own.clone()));
            return Self {
                sections: vec![section],
            };
        }
        let keys = |level: &Level| {
            let namespaces = level.namespaces.as_ref()?;
            Some(namespaces.keys().cloned().collect())
        };
        let said: Option<Vec<String>> = own_namespaces.map(<[String]>::to_vec);
        let mut namespaces = said
            .or_else(|| keys(of_type))
            .or_else(|| keys(of_all))
            .filter(|namespaces| !namespaces.is_empty())
            .unwrap_or_else(|| vec![ALL.to_owned()]);
        namespaces.sort();
        namespaces.dedup();
        let sections = namespaces.iter().map(|namespace| {
            let near = own.clone().or(of_type.of_namespace(namespace));
            let near = near.or(Some(&of_type.everywhere));
            let selection = near.or(of_all.of_namespace(namespace));
            let mut section = Section::new(namespace, everywhere(selection));
            if namespace == ALL {
                section.leave_out(&namespaces);
            }
            section
        });
        Self {
            sections: sections.collect(),
        }
    }
}

impl Scope {
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
        }
    }

    /// What another section has is not to be had twice.
    fn leave_out(&mut self, namespaces: &[String]) {
        let named = namespaces.iter().filter(|namespace| *namespace != ALL);
        let excluded = named.map(|namespace| format!("metadata.namespace!={namespace}"));
        let own = Some(std::mem::take(&mut self.fields)).filter(|fields| !fields.is_empty());
        self.fields = excluded.chain(own).collect::<Vec<_>>().join(",");
    }
}

#[cfg(test)]
mod tests;
