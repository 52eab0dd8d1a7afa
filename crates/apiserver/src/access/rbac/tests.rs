//! Tests of RBAC decisions against a naive model, with objects and requests drawn from a seed.

use fastrand::Rng;
use serde_json::{Value, json};

use super::super::attributes::Attributes;
use super::super::user::User;
use super::{Rbac, RbacKind};

/// All RBAC objects of a server as JSON, which the model reads anew for each decision.
#[derive(Default)]
struct Model(Vec<(RbacKind, String, Value)>);

const NAMESPACES: [&str; 2] = ["x", "y"];
const VERBS: [&str; 4] = ["get", "list", "delete", "*"];
const GROUPS: [&str; 3] = ["", "apps", "*"];
const RESOURCES: [&str; 6] = ["pods", "pods/log", "*/log", "*/scale", "deployments", "*"];
const NAMES: [&str; 3] = ["a", "b", "r"];
const PATHS: [&str; 6] = ["/a", "/a/*", "/b*", "*", "/a/b", "/c"];

fn some<'a>(rng: &mut Rng, from: &[&'a str], max: usize) -> Vec<&'a str> {
    (0..rng.usize(1..=max))
        .map(|_| from[rng.usize(..from.len())])
        .collect()
}

fn one<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(..from.len())]
}

fn rule(rng: &mut Rng) -> Value {
    let verbs = some(rng, &VERBS, 3);
    if rng.u8(..4) == 0 {
        return json!({"verbs": verbs, "nonResourceURLs": some(rng, &PATHS, 2)});
    }
    let mut rule = json!({
        "verbs": verbs,
        "apiGroups": some(rng, &GROUPS, 3),
        "resources": some(rng, &RESOURCES, 3),
    });
    if rng.u8(..3) == 0 {
        rule["resourceNames"] = json!(some(rng, &NAMES, 2));
    }
    rule
}

fn role(rng: &mut Rng, kind: RbacKind) -> Value {
    let rules: Vec<Value> = (0..rng.usize(..5)).map(|_| rule(rng)).collect();
    let mut role = json!({"metadata": {"labels": {"in": one(rng, &NAMES)}}, "rules": rules});
    if kind == RbacKind::ClusterRole && rng.u8(..4) == 0 {
        let selector = json!({"matchLabels": {"in": one(rng, &NAMES)}});
        role["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
    }
    role
}

fn binding(rng: &mut Rng, kind: RbacKind) -> Value {
    let subjects: Vec<Value> = (0..rng.usize(1..5))
        .map(|_| match rng.u8(..3) {
            0 => json!({"kind": "User", "name": one(rng, &["u", "v"])}),
            1 => json!({"kind": "Group", "name": one(rng, &["g", "h"])}),
            _ => {
                let mut account = json!({"kind": "ServiceAccount", "name": one(rng, &["s"])});
                if rng.bool() {
                    account["namespace"] = json!(one(rng, &NAMESPACES));
                }
                account
            }
        })
        .collect();
    let kinds: &[&str] = match kind {
        RbacKind::RoleBinding => &["Role", "ClusterRole"],
        _ => &["ClusterRole"],
    };
    let role = json!({"kind": one(rng, kinds), "name": one(rng, &NAMES)});
    json!({"metadata": {}, "roleRef": role, "subjects": subjects})
}

fn user(rng: &mut Rng) -> User {
    let accounts = ["system:serviceaccount:x:s", "system:serviceaccount:y:s"];
    let mut user = User::new(one(rng, &["u", "v", "w", accounts[0], accounts[1]]));
    user.groups = match rng.u8(..3) {
        0 => vec!["g".to_owned()],
        1 => vec!["h".to_owned(), "g".to_owned()],
        _ => Vec::new(),
    };
    user
}

fn request(rng: &mut Rng) -> Attributes {
    let verb = one(rng, &["get", "list", "delete", "get", "watch"]).to_owned();
    if rng.u8(..4) == 0 {
        let path = one(rng, &["/a", "/a/", "/a/b", "/b", "/bb/c", "/c", ""]).to_owned();
        return Attributes {
            verb,
            path: Some(path),
            ..Attributes::default()
        };
    }
    Attributes {
        verb,
        group: one(rng, &["", "apps", "batch"]).to_owned(),
        resource: one(rng, &["pods", "deployments"]).to_owned(),
        subresource: one(rng, &["", "", "log", "scale"]).to_owned(),
        namespace: one(rng, &["", "x", "y", "x", "y"]).to_owned(),
        name: one(rng, &["", "a", "b", "c"]).to_owned(),
        path: None,
    }
}

fn texts(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

impl Model {
    fn get(&self, kind: RbacKind, key: &str) -> Option<&Value> {
        let mut all = self.0.iter();
        let found = all.find(|(one, name, _)| *one == kind && name == key);
        found.map(|(.., object)| object)
    }

    fn set(&mut self, kind: RbacKind, key: &str, object: Option<Value>) {
        self.0
            .retain(|(one, name, _)| !(*one == kind && name == key));
        self.0
            .extend(object.map(|object| (kind, key.to_owned(), object)));
    }

    /// Returns the rules of a cluster role. `seen` contains the roles that are being aggregated.
    fn cluster_rules<'a>(&'a self, name: &str, seen: &mut Vec<String>) -> Option<Vec<&'a Value>> {
        let role = self.get(RbacKind::ClusterRole, name)?;
        let Some(selectors) = role["aggregationRule"]["clusterRoleSelectors"].as_array() else {
            return Some(role["rules"].as_array()?.iter().collect());
        };
        seen.push(name.to_owned());
        let mut rules = Vec::new();
        for (kind, other, object) in &self.0 {
            let is_selected = selectors.iter().any(|selector| {
                selector["matchLabels"]["in"] == object["metadata"]["labels"]["in"]
            });
            if *kind == RbacKind::ClusterRole && is_selected && !seen.contains(other) {
                rules.extend(self.cluster_rules(other, seen).unwrap_or_default());
            }
        }
        Some(rules)
    }

    fn allows(&self, user: &User, wanted: &Attributes) -> bool {
        self.0.iter().any(|(kind, key, binding)| {
            let place = match (kind, key.split_once('/')) {
                (RbacKind::ClusterRoleBinding, _) => "",
                (RbacKind::RoleBinding, Some((place, _))) if place == wanted.namespace => place,
                _ => return false,
            };
            let mut subjects = binding["subjects"].as_array().unwrap().iter();
            if !subjects.any(|subject| Model::is(user, subject, place)) {
                return false;
            }
            let name = binding["roleRef"]["name"].as_str().unwrap();
            let rules = match binding["roleRef"]["kind"].as_str() {
                Some("Role") => self
                    .get(RbacKind::Role, &format!("{place}/{name}"))
                    .and_then(|role| Some(role["rules"].as_array()?.iter().collect())),
                _ => self.cluster_rules(name, &mut Vec::new()),
            };
            let mut rules = rules.unwrap_or_default().into_iter();
            rules.any(|rule| Model::rule_allows(rule, wanted))
        })
    }

    fn is(user: &User, subject: &Value, place: &str) -> bool {
        let name = subject["name"].as_str().unwrap();
        match subject["kind"].as_str().unwrap() {
            "User" => user.name == name,
            "Group" => user.groups.iter().any(|group| group == name),
            _ => {
                let place = subject["namespace"].as_str().unwrap_or(place);
                user.name == format!("system:serviceaccount:{place}:{name}")
            }
        }
    }

    fn rule_allows(rule: &Value, wanted: &Attributes) -> bool {
        let has = |member: &str, text: &str| {
            let list = texts(&rule[member]);
            list.contains(&"*") || list.contains(&text)
        };
        if !has("verbs", &wanted.verb) {
            return false;
        }
        if let Some(path) = &wanted.path {
            return texts(&rule["nonResourceURLs"]).iter().any(|url| {
                let start = url.strip_suffix('*');
                url == path || start.is_some_and(|start| path.starts_with(start))
            });
        }
        let (resource, below) = (&wanted.resource, &wanted.subresource);
        let matches = if below.is_empty() {
            has("resources", resource)
        } else {
            has("resources", &format!("{resource}/{below}"))
                || texts(&rule["resources"]).contains(&format!("*/{below}").as_str())
        };
        let names = texts(&rule["resourceNames"]);
        matches
            && has("apiGroups", &wanted.group)
            && (names.is_empty() || names.contains(&wanted.name.as_str()))
    }
}

/// Changes one random object in both.
fn change(rng: &mut Rng, rbac: &mut Rbac, model: &mut Model) {
    let kind = RbacKind::ALL[rng.usize(..4)];
    let name = one(rng, &NAMES);
    let key = match kind {
        RbacKind::Role | RbacKind::RoleBinding => format!("{}/{name}", one(rng, &NAMESPACES)),
        _ => name.to_owned(),
    };
    let object = match kind {
        _ if rng.u8(..5) == 0 => None,
        RbacKind::Role | RbacKind::ClusterRole => Some(role(rng, kind)),
        _ => Some(binding(rng, kind)),
    };
    rbac.follow(kind, &key, object.as_ref().and_then(Value::as_object));
    model.set(kind, &key, object);
}

#[test]
fn decisions_are_those_of_a_model_that_reads_all_objects() {
    let mut allowed = 0;
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let (mut rbac, mut model) = (Rbac::default(), Model::default());
        for step in 0..60 {
            for _ in 0..3 {
                change(&mut rng, &mut rbac, &mut model);
            }
            let (user, wanted) = (user(&mut rng), request(&mut rng));
            let decision = rbac.decide(&user, &wanted);
            let expected = model.allows(&user, &wanted);
            assert_eq!(
                decision.is_allowed, expected,
                "seed {seed}, step {step}: {user:?} {wanted:?}, {}",
                decision.reason
            );
            allowed += usize::from(expected);
        }
    }
    // Both decisions are frequent, so that neither is compared by chance only.
    assert!((2_000..16_000).contains(&allowed), "{allowed} of 18000");
}

#[test]
fn an_empty_index_remains_after_all_bindings_are_removed() {
    let mut rng = Rng::with_seed(7);
    let (mut rbac, mut model) = (Rbac::default(), Model::default());
    for _ in 0..500 {
        change(&mut rng, &mut rbac, &mut model);
    }
    for (kind, key, _) in &model.0 {
        rbac.follow(*kind, key, None);
    }
    assert!(rbac.bindings.is_empty() && rbac.cluster_bindings.is_empty());
    assert!(rbac.cluster_bindings.has_no_subject());
    assert!(rbac.aggregating.is_empty() && rbac.cluster_roles.is_empty());
}
