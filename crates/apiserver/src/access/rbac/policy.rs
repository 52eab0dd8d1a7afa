//! Rules of roles: which requests a rule allows, and which rules cover another rule.
//!
//! Guarantees: the matches are those of `pkg/apis/rbac/v1/evaluation_helpers.go` and of
//! `auth/rbac/validation/policy_comparator.go` in Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use super::super::attributes::Attributes;
use crate::quote::Quoted;

/// A rule of a role (`PolicyRule`). Its members are those of the JSON object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct PolicyRule {
    verbs: Vec<String>,
    groups: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    urls: Vec<String>,
}

/// The rules for one verb, and one resource with at most one name or one path, into which rules can be divided.
pub(in super::super) struct Parts(Vec<PolicyRule>);

// === impl PolicyRule ===

impl PolicyRule {
    /// Returns the rules in the member `rules` of a role.
    pub(in super::super) fn all_of(rules: Option<&Value>) -> Vec<PolicyRule> {
        let rules = rules.and_then(Value::as_array).into_iter().flatten();
        rules.map(PolicyRule::parse).collect()
    }

    /// The two rules that allow everything.
    pub(in super::super) fn everything() -> [PolicyRule; 2] {
        let all = || vec!["*".to_owned()];
        let resources = PolicyRule {
            verbs: all(),
            groups: all(),
            resources: all(),
            ..PolicyRule::default()
        };
        let paths = PolicyRule {
            verbs: all(),
            urls: all(),
            ..PolicyRule::default()
        };
        [resources, paths]
    }

    fn parse(rule: &Value) -> PolicyRule {
        let texts = |member: &str| {
            let texts = rule[member].as_array().into_iter().flatten();
            texts.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        PolicyRule {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    pub(super) fn allows(&self, attributes: &Attributes) -> bool {
        if !has_or_star(&self.verbs, &attributes.verb) {
            return false;
        }
        if let Some(path) = &attributes.path {
            return self.urls.iter().any(|url| covers_path(url, path));
        }
        has_or_star(&self.groups, &attributes.group)
            && self
                .resources
                .iter()
                .any(|resource| matches_resource(resource, attributes))
            && (self.names.is_empty() || self.names.contains(&attributes.name))
    }

    /// Returns the rule as an item of `resourceRules` of a `SelfSubjectRulesReview`, if it is for resources.
    pub(in super::super) fn resource_rule(&self) -> Option<Value> {
        if self.resources.is_empty() {
            return None;
        }
        let mut rule = json!({"verbs": self.verbs});
        let lists = [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
        ];
        for (member, list) in lists {
            if !list.is_empty() {
                rule[member] = json!(list);
            }
        }
        Some(rule)
    }

    /// Returns the rule as an item of `nonResourceRules` of a `SelfSubjectRulesReview`, if it is for paths.
    pub(in super::super) fn path_rule(&self) -> Option<Value> {
        let rule = || json!({"verbs": self.verbs, "nonResourceURLs": self.urls});
        (!self.urls.is_empty()).then(rule)
    }

    /// Returns whether the rule allows everything that a rule of [`Parts`] allows.
    fn covers(&self, part: &PolicyRule) -> bool {
        let has_all = |own: &[String], wanted: &[String]| {
            wanted.iter().all(|wanted| has_or_star(own, wanted))
        };
        let has_resource = |wanted: &String| {
            let any_of = wanted.split_once('/').map(|(_, sub)| format!("*/{sub}"));
            has_or_star(&self.resources, wanted)
                || any_of.is_some_and(|any_of| self.resources.contains(&any_of))
        };
        let has_url = |wanted: &String| self.urls.iter().any(|own| covers_path(own, wanted));
        let has_names = self.names.is_empty()
            || (!part.names.is_empty() && part.names.iter().all(|name| self.names.contains(name)));
        has_all(&self.verbs, &part.verbs)
            && has_all(&self.groups, &part.groups)
            && part.resources.iter().all(has_resource)
            && part.urls.iter().all(has_url)
            && has_names
    }

    /// Returns the number of the rule's [`Parts`].
    fn count(&self) -> usize {
        let names = self.names.len().max(1);
        let resources = self.groups.len().saturating_mul(self.resources.len());
        let targets = resources
            .saturating_mul(names)
            .saturating_add(self.urls.len());
        targets.saturating_mul(self.verbs.len())
    }

    fn push_parts(&self, parts: &mut Vec<PolicyRule>) {
        let one = |text: &String| vec![text.clone()];
        let names: Vec<Vec<String>> = match self.names.as_slice() {
            [] => vec![Vec::new()],
            names => names.iter().map(one).collect(),
        };
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    parts.extend(names.iter().map(|names| PolicyRule {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        names: names.clone(),
                        urls: Vec::new(),
                    }));
                }
            }
        }
        for url in &self.urls {
            parts.extend(self.verbs.iter().map(|verb| PolicyRule {
                verbs: one(verb),
                urls: one(url),
                ..PolicyRule::default()
            }));
        }
    }
}

/// Shows the rule as in the error of an escalation (`CompactString`).
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let shown = lists.iter().filter(|(_, list)| !list.is_empty());
        let shown: Vec<String> = shown
            .map(|(name, list)| format!("{name}:{}", quoted_list(list)))
            .collect();
        write!(f, "{{{}}}", shown.join(", "))
    }
}

// === impl Parts ===

impl Parts {
    /// Divides rules into parts. Returns `None` if there would be more than `max`.
    pub(super) fn of(rules: &[PolicyRule], max: usize) -> Option<Parts> {
        let counts = rules.iter().map(PolicyRule::count);
        if counts.fold(0, usize::saturating_add) > max {
            return None;
        }
        let mut parts = Vec::new();
        for rule in rules {
            rule.push_parts(&mut parts);
        }
        Some(Parts(parts))
    }

    /// Returns the parts that none of `owned` covers, as sorted texts. Parts that differ only in the verb are one text.
    pub(super) fn missing_from(self, owned: &[PolicyRule]) -> BTreeSet<String> {
        let is_missing = |part: &PolicyRule| !owned.iter().any(|rule| rule.covers(part));
        let mut merged: BTreeMap<PolicyRule, Vec<String>> = BTreeMap::new();
        let mut missing = BTreeSet::new();
        for mut part in self.0.into_iter().filter(is_missing) {
            if part.urls.is_empty() {
                let verbs = std::mem::take(&mut part.verbs);
                merged.entry(part).or_default().extend(verbs);
            } else {
                missing.insert(part.to_string());
            }
        }
        missing.extend(
            merged
                .into_iter()
                .map(|(part, verbs)| PolicyRule { verbs, ..part }.to_string()),
        );
        missing
    }
}

/// Returns a list as Go's `%q` shows it.
pub(in super::super) fn quoted_list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| Quoted(text).to_string()).collect();
    format!("[{}]", texts.join(" "))
}

fn has_or_star(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == "*" || one == wanted)
}

fn covers_path(url: &str, path: &str) -> bool {
    url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}

fn matches_resource(pattern: &str, attributes: &Attributes) -> bool {
    let Attributes {
        resource,
        subresource,
        ..
    } = attributes;
    if pattern == "*" {
        return true;
    }
    if subresource.is_empty() {
        return pattern == resource;
    }
    let below = |resource: &str| {
        let rest = pattern.strip_prefix(resource);
        rest.and_then(|rest| rest.strip_prefix('/')) == Some(subresource)
    };
    below(resource) || below("*")
}
