//! Tests of access control: attributes of requests, matching of access rules, and tokens in headers.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use http::{HeaderMap, HeaderValue, Method};

use super::attributes::Attributes;
use super::{Authorization, Gate, Policy, Rule, User, bearer};
use crate::route::Query;

fn check(requests: &[&str], expected: &Expect) {
    let mut trace = String::new();
    for request in requests {
        let (method, uri) = request.split_once(' ').expect("a method and a path");
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let method: Method = method.parse().unwrap();
        match Attributes::of(&method, path, &Query::parse(query)) {
            None => writeln!(trace, "{request}: -").unwrap(),
            Some(attributes) => {
                writeln!(trace, "{}", attributes.forbidden(&User::new("u"), "")).unwrap();
            }
        }
    }
    expected.assert_eq(&trace);
}

#[test]
fn a_forbidden_request_receives_kubernetes_message() {
    check(
        &[
            "GET /api/v1/pods",
            "GET /api/v1/namespaces/x/pods?watch=1",
            "GET /api/v1/namespaces/x/pods/a?watch=1",
            "GET /api/v1/watch/namespaces/x/pods/a",
            "GET /api/v1/namespaces/x/pods/a/log",
            "GET /api/v1/namespaces/x/pods?fieldSelector=status.phase%3DRunning,metadata.name%3Db",
            "GET /api/v1/namespaces/x/pods?fieldSelector=metadata.name!%3Db",
            "GET /api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Db&labelSelector=!",
            "GET /api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Db&limit=many",
            "GET /api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Db%2Fc",
            "GET /api/v1/watch/namespaces/x/pods?fieldSelector=metadata.name%3Db",
            "GET /api/v1/namespaces/x",
            "PUT /api/v1/namespaces/x/finalize",
            "HEAD /api/v1/nodes/n",
            "POST /apis/apps/v1/namespaces/x/deployments",
            "PATCH /apis/apps/v1/namespaces/x/deployments/d/status",
            "DELETE /apis/foo.io/v1/foos",
            "DELETE /apis/foo.io/v1/foos/f",
        ],
        &expect![[r#"
            pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope
            pods is forbidden: User "u" cannot watch resource "pods" in API group "" in the namespace "x"
            pods "a" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "x"
            pods "a" is forbidden: User "u" cannot watch resource "pods" in API group "" in the namespace "x"
            pods "a" is forbidden: User "u" cannot get resource "pods/log" in API group "" in the namespace "x"
            pods "b" is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "x"
            pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "x"
            pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "x"
            pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "x"
            pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "x"
            pods is forbidden: User "u" cannot watch resource "pods" in API group "" in the namespace "x"
            namespaces "x" is forbidden: User "u" cannot get resource "namespaces" in API group "" in the namespace "x"
            namespaces "x" is forbidden: User "u" cannot update resource "namespaces/finalize" in API group "" in the namespace "x"
            nodes "n" is forbidden: User "u" cannot get resource "nodes" in API group "" at the cluster scope
            deployments.apps is forbidden: User "u" cannot create resource "deployments" in API group "apps" in the namespace "x"
            deployments.apps "d" is forbidden: User "u" cannot patch resource "deployments/status" in API group "apps" in the namespace "x"
            foos.foo.io is forbidden: User "u" cannot deletecollection resource "foos" in API group "foo.io" at the cluster scope
            foos.foo.io "f" is forbidden: User "u" cannot delete resource "foos" in API group "foo.io" at the cluster scope
        "#]],
    );
}

#[test]
fn escapes_in_a_path_are_decoded_before_it_is_split() {
    check(
        &[
            "GET //api/v1//pods/",
            "GET /api/v1/%70ods",
            "GET /api/v1/namespaces/x/pods/a%2Flog",
            "GET /api/v1",
            "GET /apis/apps/v1",
            "GET /healthz",
            "DELETE /a%20b%3C/",
            "GET /api/v1/%zz",
        ],
        &expect![[r#"
            forbidden: User "u" cannot get path "//api/v1//pods/"
            pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope
            pods "a" is forbidden: User "u" cannot get resource "pods/log" in API group "" in the namespace "x"
            forbidden: User "u" cannot get path "/api/v1"
            forbidden: User "u" cannot get path "/apis/apps/v1"
            forbidden: User "u" cannot get path "/healthz"
            forbidden: User "u" cannot delete path "/a b&lt;/"
            GET /api/v1/%zz: -
        "#]],
    );
}

/// Returns whether `rule` permits a request of the user `u` in the group `g`.
fn allows(rule: Rule, method: &Method, uri: &str) -> bool {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let attributes = Attributes::of(method, path, &Query::parse(query)).unwrap();
    let mut policy = Policy::default();
    policy.add_rules([rule]);
    let user = User::new("u").in_group("g");
    Gate::new(Authorization::AlwaysAllow)
        .decide(&policy, &user, &attributes)
        .is_allowed
}

#[test]
fn resource_patterns_follow_kubectl_syntax() {
    let get =
        |pattern: &str, path: &str| allows(Rule::allow(["get"], [pattern]), &Method::GET, path);
    let (pod, log) = (
        "/api/v1/namespaces/x/pods/a",
        "/api/v1/namespaces/x/pods/a/log",
    );
    let scale = "/apis/apps/v1/namespaces/x/deployments/d/scale";
    let deployment = "/apis/apps/v1/namespaces/x/deployments/d";
    for (pattern, allowed) in [
        ("pods", vec![pod]),
        ("pods/log", vec![log]),
        ("pods.apps", vec![]),
        ("deployments", vec![]),
        ("deployments.apps", vec![deployment]),
        ("deployments.apps/scale", vec![scale]),
        ("*/scale", vec![scale]),
        ("*.apps", vec![deployment, scale]),
        ("*", vec![pod, log, deployment, scale]),
    ] {
        let got: Vec<&str> = [pod, log, deployment, scale]
            .into_iter()
            .filter(|path| get(pattern, path))
            .collect();
        assert_eq!(got, allowed, "{pattern}");
    }
}

#[test]
fn a_rule_matches_only_within_its_restrictions() {
    let pods = || Rule::allow(["get", "list"], ["pods"]);
    let one = "/api/v1/namespaces/x/pods/a";
    let all = "/api/v1/pods";
    for (rule, uri, allowed) in [
        (pods(), one, true),
        (pods().named(["a"]), one, true),
        (pods().named(["b"]), one, false),
        (pods().named(["a"]), all, false),
        (
            pods().named(["a"]),
            "/api/v1/pods?fieldSelector=metadata.name%3Da",
            true,
        ),
        (pods().in_namespaces(["x", "y"]), one, true),
        (pods().in_namespaces(["y"]), one, false),
        (pods().in_namespaces(["x"]), all, false),
        (pods().for_user("u"), one, true),
        (pods().for_user("v"), one, false),
        (pods().for_user("v").for_group("g"), one, true),
        (pods().for_group("h"), one, false),
        (Rule::allow(["*"], ["pods"]), one, true),
        (Rule::allow(["list"], ["pods"]), one, false),
    ] {
        let shown = format!("{rule:?} {uri}");
        assert_eq!(allows(rule, &Method::GET, uri), allowed, "{shown}");
    }
}

#[test]
fn a_token_follows_bearer_in_any_case_and_no_other_scheme() {
    for (value, token) in [
        ("Bearer a", Some("a")),
        ("  bearer a  ", Some("a")),
        ("BEARER a b", Some("a")),
        ("Bearer", None),
        ("Bearera", None),
        ("Basic a", None),
        ("", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static(value));
        assert_eq!(bearer(&headers), token.map(str::as_bytes), "{value:?}");
    }
}

#[test]
fn only_the_whole_token_matches() {
    let mut policy = Policy::default();
    policy.grant("secret", User::new("a"));
    policy.grant("other", User::new("b"));
    policy.grant("secret", User::new("c"));
    let name = |token: &str| {
        policy
            .user_of(token.as_bytes())
            .map(|user| user.name.clone())
    };
    assert_eq!(name("secret").as_deref(), Some("c"), "the later user's");
    assert_eq!(name("other").as_deref(), Some("b"));
    for wrong in ["", "secre", "secrets", "Secret"] {
        assert_eq!(name(wrong), None, "{wrong:?}");
    }
}
