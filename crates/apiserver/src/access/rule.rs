//! Defines access rules: a rule allows verbs on resources, for certain users or for all users.
//!
//! Guarantees:
//! - No rule forbids a request, so the order of the rules does not matter.
//! - A rule matches a request as an RBAC rule of Kubernetes does.

use serde_json::{Value, json};

use super::User;
use super::attributes::Attributes;

/// An access rule that allows verbs on resources.
///
/// A rule applies to all users and namespaces, unless methods such as [`Rule::in_namespaces`] restrict it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a rule is for `Builder::rules` or `Access::replace_rules`"]
pub struct Rule {
    verbs: Vec<String>,
    resources: Vec<Pattern>,
    names: Vec<String>,
    namespaces: Vec<String>,
    users: Vec<String>,
    groups: Vec<String>,
}

/// A pattern for resources, in the syntax of `kubectl create role --resource`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    /// API group of the resource. `*` matches every group.
    group: String,
    /// Plural name of the resource. `*` matches every resource.
    plural: String,
    /// Name of the subresource. `None` matches the resource itself.
    ///
    /// If the plural name is `*`, `None` also matches all subresources.
    subresource: Option<String>,
}

// === impl Rule ===

impl Rule {
    /// Creates a rule that allows these verbs, such as `list`, on these resources.
    ///
    /// A resource is written as `pods`, `pods/log`, `deployments.apps` or `deployments.apps/scale`. A rule
    /// for `pods` does not apply to subresources such as `pods/log`.
    ///
    /// The verb `*` matches every verb. The resource `*` matches every resource and subresource. `*.apps`
    /// matches all resources and subresources of the group `apps`. `*/scale` matches the subresource `scale`
    /// of every resource.
    pub fn allow<'a, 'b>(
        verbs: impl IntoIterator<Item = &'a str>,
        resources: impl IntoIterator<Item = &'b str>,
    ) -> Rule {
        Rule {
            verbs: owned(verbs),
            resources: resources.into_iter().map(Pattern::parse).collect(),
            names: Vec::new(),
            namespaces: Vec::new(),
            users: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Restricts the rule to objects with these names.
    ///
    /// The rule then does not allow POST requests that create objects, because these requests have no name in
    /// their path. It allows a list or watch only if the field selector requires one of the names by
    /// `metadata.name`.
    pub fn named<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Rule {
        self.names.extend(owned(names));
        self
    }

    /// Restricts the rule to these namespaces.
    ///
    /// The rule then does not allow requests that span all namespaces, or requests for cluster-scoped
    /// resources.
    pub fn in_namespaces<'a>(mut self, namespaces: impl IntoIterator<Item = &'a str>) -> Rule {
        self.namespaces.extend(owned(namespaces));
        self
    }

    /// Adds a user to whom the rule applies. A rule without users and groups applies to everyone.
    pub fn for_user(mut self, name: &str) -> Rule {
        self.users.push(name.to_owned());
        self
    }

    /// Adds a group, such as `system:authenticated`, to whose members the rule applies.
    ///
    /// A rule without users and groups applies to everyone.
    pub fn for_group(mut self, name: &str) -> Rule {
        self.groups.push(name.to_owned());
        self
    }

    pub(super) fn allows(&self, user: &User, attributes: &Attributes) -> bool {
        let any_of = |allowed: &[String], asked: &str| {
            allowed.is_empty() || allowed.iter().any(|one| one == asked)
        };
        attributes.path.is_none()
            && self.is_for(user)
            && self
                .verbs
                .iter()
                .any(|verb| verb == "*" || *verb == attributes.verb)
            && self.resources.iter().any(|one| one.matches(attributes))
            && any_of(&self.names, &attributes.name)
            && any_of(&self.namespaces, &attributes.namespace)
    }

    /// Returns whether the rule applies to `user` in `namespace`. Does not check verbs and resources.
    pub(super) fn applies(&self, user: &User, namespace: &str) -> bool {
        let namespaces = &self.namespaces;
        self.is_for(user)
            && (namespaces.is_empty() || namespaces.iter().any(|one| one == namespace))
    }

    /// Converts the rule to `ResourceRule`s of a `SelfSubjectRulesReview` status, one for each API group.
    pub(super) fn to_resource_rules(&self) -> Vec<Value> {
        let mut rules: Vec<(&str, Vec<String>)> = Vec::new();
        for pattern in &self.resources {
            let resource = match &pattern.subresource {
                None => pattern.plural.clone(),
                Some(subresource) => format!("{}/{subresource}", pattern.plural),
            };
            match rules.iter_mut().find(|(group, _)| *group == pattern.group) {
                Some((_, resources)) => resources.push(resource),
                None => rules.push((&pattern.group, vec![resource])),
            }
        }
        let with_names = |(group, resources)| {
            let mut rule =
                json!({"verbs": self.verbs, "apiGroups": [group], "resources": resources});
            if !self.names.is_empty() {
                rule["resourceNames"] = json!(self.names);
            }
            rule
        };
        rules.into_iter().map(with_names).collect()
    }

    fn is_for(&self, user: &User) -> bool {
        (self.users.is_empty() && self.groups.is_empty())
            || self.users.contains(&user.name)
            || self.groups.iter().any(|group| user.is_in(group))
    }
}

// === impl Pattern ===

impl Pattern {
    fn parse(text: &str) -> Pattern {
        let (resource, subresource) = match text.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (text, None),
        };
        let (plural, group) = match resource.split_once('.') {
            Some(both) => both,
            None if resource == "*" => ("*", "*"),
            None => (resource, ""),
        };
        Pattern {
            group: group.to_owned(),
            plural: plural.to_owned(),
            subresource,
        }
    }

    fn matches(&self, attributes: &Attributes) -> bool {
        let any = self.plural == "*";
        let part = match &self.subresource {
            None => any || attributes.subresource.is_empty(),
            Some(subresource) => *subresource == attributes.subresource,
        };
        part && (any || self.plural == attributes.resource)
            && (self.group == "*" || self.group == attributes.group)
    }
}

fn owned<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    texts.into_iter().map(str::to_owned).collect()
}
