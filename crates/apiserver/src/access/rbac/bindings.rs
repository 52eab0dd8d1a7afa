//! The bindings of roles in one scope, by subject.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::user::{User, account_name};
use super::RoleRef;
use crate::quote::Quoted;

/// The bindings of a namespace, or those of the cluster.
#[derive(Default)]
pub(super) struct Bindings {
    by_name: BTreeMap<String, Binding>,
    /// The names of the bindings of each subject.
    by_subject: BTreeMap<Subject, BTreeSet<String>>,
}

pub(super) struct Binding {
    pub(super) role: RoleRef,
    name: String,
    /// Empty for a `ClusterRoleBinding`.
    namespace: String,
    subjects: Vec<NamedSubject>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// The name of a user. A service account is the user with its name.
    User(String),
    Group(String),
}

/// A subject, as the reason of a decision describes it.
struct NamedSubject {
    subject: Subject,
    described: String,
}

// === impl Bindings ===

impl Bindings {
    /// Replaces the binding with this name, or removes it if `binding` is `None`.
    pub(super) fn set(&mut self, name: &str, binding: Option<Binding>) {
        let old = match binding {
            Some(binding) => {
                for named in &binding.subjects {
                    let names = self.by_subject.entry(named.subject.clone()).or_default();
                    names.insert(name.to_owned());
                }
                self.by_name.insert(name.to_owned(), binding)
            }
            None => self.by_name.remove(name),
        };
        let new = self.by_name.get(name);
        for named in old.into_iter().flat_map(|old| old.subjects) {
            let subject = named.subject;
            let mut kept = new.into_iter().flat_map(|new| &new.subjects);
            if kept.any(|kept| kept.subject == subject) {
                continue;
            }
            if let Some(names) = self.by_subject.get_mut(&subject) {
                names.remove(name);
                if names.is_empty() {
                    self.by_subject.remove(&subject);
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    #[cfg(test)]
    pub(super) fn has_no_subject(&self) -> bool {
        self.by_subject.is_empty()
    }

    /// Returns the bindings of a user and of the user's groups, in the order of their names.
    pub(super) fn of(&self, user: &User) -> impl Iterator<Item = &Binding> {
        let groups = user.groups.iter().cloned().map(Subject::Group);
        let subjects = std::iter::once(Subject::User(user.name.clone())).chain(groups);
        let names: BTreeSet<&String> = subjects
            .filter_map(|subject| self.by_subject.get(&subject))
            .flatten()
            .collect();
        names.into_iter().filter_map(|name| self.by_name.get(name))
    }
}

// === impl Binding ===

impl Binding {
    /// Parses a binding. `namespace` is empty for a `ClusterRoleBinding`.
    pub(super) fn parse(binding: &Map<String, Value>, namespace: &str) -> Binding {
        let metadata = binding.get("metadata").unwrap_or(&Value::Null);
        let subjects = binding.get("subjects").and_then(Value::as_array);
        let subjects = subjects.into_iter().flatten();
        Binding {
            role: RoleRef::parse(binding.get("roleRef").unwrap_or(&Value::Null)),
            name: metadata["name"].as_str().unwrap_or_default().to_owned(),
            namespace: namespace.to_owned(),
            subjects: subjects
                .filter_map(|subject| NamedSubject::parse(subject, namespace))
                .collect(),
        }
    }

    /// Returns the binding, its role and its first subject that the user is, as the reason of a decision.
    pub(super) fn described(&self, user: &User) -> String {
        let mut subjects = self.subjects.iter();
        let subject = subjects.find(|named| named.subject.is(user));
        let (kind, name) = match self.namespace.as_str() {
            "" => ("ClusterRoleBinding", self.name.clone()),
            namespace => ("RoleBinding", format!("{}/{namespace}", self.name)),
        };
        format!(
            "{kind} {} of {} {} to {}",
            Quoted(&name),
            self.role.kind,
            Quoted(&self.role.name),
            subject.map_or("", |named| &named.described)
        )
    }
}

// === impl NamedSubject ===

impl NamedSubject {
    /// Parses a subject. A service account without a namespace is one of the binding's namespace.
    ///
    /// Returns `None` if no user can be the subject.
    fn parse(subject: &Value, namespace: &str) -> Option<NamedSubject> {
        let text = |member: &str| subject[member].as_str().unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        let mut shown = name.to_owned();
        let subject = match kind {
            "User" => Subject::User(name.to_owned()),
            "Group" => Subject::Group(name.to_owned()),
            "ServiceAccount" => {
                let namespace = match text("namespace") {
                    "" => namespace,
                    namespace => namespace,
                };
                if namespace.is_empty() {
                    return None;
                }
                shown = format!("{name}/{namespace}");
                Subject::User(account_name(namespace, name))
            }
            _ => return None,
        };
        Some(NamedSubject {
            subject,
            described: format!("{kind} {}", Quoted(&shown)),
        })
    }
}

// === impl Subject ===

impl Subject {
    fn is(&self, user: &User) -> bool {
        match self {
            Subject::User(name) => *name == user.name,
            Subject::Group(group) => user.is_in(group),
        }
    }
}
