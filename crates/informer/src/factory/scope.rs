//! Which objects an informer is over, and what wins where several things are said of it.

use std::collections::BTreeMap;

use crate::selector::Selector;

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
mod tests {
    use expect_test::expect;

    use super::*;

    fn labels(value: &str) -> Selection {
        Selection {
            labels: Some(value.parse().unwrap()),
            fields: None,
        }
    }

    fn level(everywhere: Selection, namespaces: &[(&str, Selection)]) -> Level {
        let namespaces = namespaces.iter().cloned();
        let namespaces: BTreeMap<_, _> = namespaces
            .map(|(name, selection)| (name.to_owned(), selection))
            .collect();
        Level {
            everywhere,
            namespaces: Some(namespaces).filter(|namespaces| !namespaces.is_empty()),
        }
    }

    fn show(scope: &Scope) -> String {
        let sections = scope.sections.iter().map(|section| {
            let Section {
                namespace,
                labels,
                fields,
            } = section;
            format!("{namespace:?} {labels} {fields}")
                .trim_end()
                .to_owned()
                + "\n"
        });
        sections.collect()
    }

    #[test]
    fn what_is_said_nearest_to_an_informer_holds_for_each_namespace() {
        let nothing = Selection::default();
        let all = level(
            labels("from=all"),
            &[("a", labels("from=all-in-a")), ("b", nothing.clone())],
        );
        let type_only = level(labels("from=type"), &[]);
        let type_in_a = level(
            nothing.clone(),
            &[("a", labels("from=type-in-a")), ("b", nothing.clone())],
        );
        let both = level(
            labels("from=type"),
            &[("a", labels("from=type-in-a")), ("b", nothing.clone())],
        );
        let rows = [
            ("nothing of the type", &nothing, Level::default()),
            ("of the type", &nothing, type_only.clone()),
            ("of the type in a", &nothing, type_in_a),
            ("of the type and in a", &nothing, both.clone()),
            ("own", &labels("from=own"), both),
            ("own says all", &labels(""), type_only),
        ];
        let mut table = String::new();
        for (what, own, of_type) in rows {
            let scope = Scope::resolve((own, None), &of_type, &all, true);
            table += what;
            table += "\n";
            table += &show(&scope);
        }
        expect![[r#"
            nothing of the type
            "a" from=all-in-a
            "b" from=all
            of the type
            "a" from=type
            "b" from=type
            of the type in a
            "a" from=type-in-a
            "b" from=all
            of the type and in a
            "a" from=type-in-a
            "b" from=type
            own
            "a" from=own
            "b" from=own
            own says all
            "a"
            "b"
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn labels_and_fields_are_decided_one_by_one() {
        let fields = Selection {
            labels: None,
            fields: Some("spec.nodeName=n".to_owned()),
        };
        let all = level(
            labels("from=all"),
            &[("a", fields.clone()), ("b", labels(""))],
        );
        let none = (&Selection::default(), None);
        let scope = Scope::resolve(none, &Level::default(), &all, true);
        expect![[r#"
            "a" from=all spec.nodeName=n
            "b"
        "#]]
        .assert_eq(&show(&scope));
    }

    #[test]
    fn namespaces_are_the_own_ones_or_the_types_or_those_of_all() {
        let of = |namespaces: &[&str]| {
            let namespaces = namespaces.iter();
            let namespaces: Vec<_> = namespaces
                .map(|name| (*name, Selection::default()))
                .collect();
            level(Selection::default(), &namespaces)
        };
        let own = Selection::default();
        let names = |own_namespaces: Option<&[String]>, of_type: &Level, of_all: &Level| {
            let scope = Scope::resolve((&own, own_namespaces), of_type, of_all, true);
            let names = scope.sections.into_iter();
            names.map(|section| section.namespace).collect::<Vec<_>>()
        };
        let (a, b, nothing) = (of(&["a"]), of(&["b"]), of(&[]));
        let c = ["c".to_owned(), "c".to_owned()];
        assert_eq!(names(Some(&c), &b, &a), ["c"]);
        assert_eq!(names(Some(&[]), &b, &a), [""], "none of them is all");
        assert_eq!(names(None, &b, &a), ["b"]);
        assert_eq!(names(None, &nothing, &a), ["a"]);
        assert_eq!(names(None, &nothing, &nothing), [""]);
    }

    #[test]
    fn all_namespaces_beside_named_ones_are_the_others() {
        let all = level(
            Selection {
                labels: None,
                fields: Some("status.phase!=Failed".to_owned()),
            },
            &[
                ("", Selection::default()),
                ("b", labels("x=y")),
                ("a", Selection::default()),
            ],
        );
        let own = Selection::default();
        let scope = Scope::resolve((&own, None), &Level::default(), &all, true);
        expect![[r#"
            ""  metadata.namespace!=a,metadata.namespace!=b,status.phase!=Failed
            "a"  status.phase!=Failed
            "b" x=y status.phase!=Failed
        "#]]
        .assert_eq(&show(&scope));
    }

    #[test]
    fn a_kind_in_no_namespace_is_not_concerned_by_them() {
        let all = level(labels("from=all"), &[("a", labels("from=a"))]);
        let of_type = level(Selection::default(), &[("b", labels("from=b"))]);
        let own = Selection::default();
        let scope = Scope::resolve((&own, Some(&["c".to_owned()])), &of_type, &all, false);
        assert_eq!(show(&scope), "\"\" from=all\n");
    }
}
