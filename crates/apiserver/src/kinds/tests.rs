//! Tests the table of built-in kinds, and the addition of custom kinds to the built-in kinds.

use kube_informer_protobuf::Messages;

use super::*;

/// Describes a kind in one line: `group_resource apiVersion scope verbs [subresources]`.
fn describe(kind: &Kind) -> String {
    let subresources: Vec<_> = kind
        .subresources
        .iter()
        .map(|sub| format!("{}:{}@{}/{}", sub.name, sub.kind, sub.group, sub.version))
        .collect();
    format!(
        "{} {} {:?} {} [{}]",
        kind.group_resource(),
        kind.api_version(),
        kind.scope,
        kind.verbs.join(","),
        subresources.join(" ")
    )
}

#[test]
fn every_row_of_the_table_parses() {
    let rows = V1_36.lines().filter(|line| !line.starts_with('#'));
    let bad: Vec<_> = rows
        .clone()
        .filter(|row| Kind::from_row(row).is_none())
        .collect();
    assert_eq!(bad, [""; 0]);
    assert_eq!(
        Kinds::builtin().len(),
        rows.count(),
        "no two rows are the same resource"
    );
}

#[test]
fn common_kinds_match_their_discovery_documents() {
    let kinds = Kinds::builtin();
    let found: Vec<_> = [
        ("", "v1", "persistentvolumeclaims"),
        ("", "v1", "nodes"),
        ("", "v1", "events"),
        ("events.k8s.io", "v1", "events"),
        ("apps", "v1", "deployments"),
        ("storage.k8s.io", "v1", "storageclasses"),
        ("authentication.k8s.io", "v1", "tokenreviews"),
    ]
    .into_iter()
    .map(|(group, version, plural)| describe(kinds.by_resource(group, version, plural).unwrap()))
    .collect();
    let all = "create,delete,deletecollection,get,list,patch,update,watch";
    assert_eq!(
        found,
        [
            format!(
                "persistentvolumeclaims v1 Namespaced {all} [status:PersistentVolumeClaim@/v1]"
            ),
            format!("nodes v1 Cluster {all} [proxy:NodeProxyOptions@/v1 status:Node@/v1]"),
            format!("events v1 Namespaced {all} []"),
            format!("events.events.k8s.io events.k8s.io/v1 Namespaced {all} []"),
            format!(
                "deployments.apps apps/v1 Namespaced {all} [scale:Scale@autoscaling/v1 status:Deployment@apps/v1]"
            ),
            format!("storageclasses.storage.k8s.io storage.k8s.io/v1 Cluster {all} []"),
            "tokenreviews.authentication.k8s.io authentication.k8s.io/v1 Cluster create []"
                .to_owned(),
        ]
    );
}

#[test]
fn a_pod_has_its_short_name_category_and_subresources() {
    let kinds = Kinds::builtin();
    let pod = kinds.by_kind("v1", "Pod").unwrap();
    assert_eq!(
        (pod.plural.as_str(), pod.singular.as_str()),
        ("pods", "pod")
    );
    assert_eq!(
        (pod.short_names.as_slice(), pod.categories.as_slice()),
        (&["po".to_owned()][..], &["all".to_owned()][..])
    );
    assert!(
        ["binding", "eviction", "log", "status"]
            .iter()
            .all(|name| pod.has_subresource(name))
    );
    assert!(!pod.has_subresource("scale"));
    let eviction = pod
        .subresources
        .iter()
        .find(|sub| sub.name == "eviction")
        .unwrap();
    assert_eq!(eviction.verbs, ["create"]);
    assert!(pod.preferred && !pod.custom);
}

#[test]
fn only_one_of_two_versions_is_preferred() {
    let kinds = Kinds::builtin();
    let preferred = |version| {
        kinds
            .by_resource("autoscaling", version, "horizontalpodautoscalers")
            .unwrap()
            .preferred
    };
    assert!(preferred("v2"));
    assert!(!preferred("v1"));
}

#[test]
fn no_beta_or_alpha_version_is_served() {
    let kinds = Kinds::builtin();
    let unstable: Vec<_> = kinds
        .iter()
        .map(Kind::api_version)
        .filter(|version| version.contains("alpha") || version.contains("beta"))
        .collect();
    assert_eq!(unstable, [""; 0]);
}

#[test]
fn a_kind_is_found_by_its_own_version_and_group_only() {
    let kinds = Kinds::builtin();
    assert!(kinds.by_kind("apps/v1", "Deployment").is_some());
    assert!(kinds.by_kind("v1", "Deployment").is_none());
    assert!(kinds.by_kind("apps/v1beta1", "Deployment").is_none());
    assert!(kinds.by_resource("apps", "v1", "pods").is_none());
}

#[test]
fn a_custom_kind_is_inserted_in_order_and_serves_every_verb() {
    let mut kinds = Kinds::builtin();
    let before = kinds.len();
    kinds.add(Kind::custom(
        "example.com",
        "v1",
        "Widget",
        "widgets",
        Scope::Namespaced,
    ));
    assert_eq!(kinds.len(), before + 1);
    assert!(
        kinds
            .iter()
            .is_sorted_by(|a, b| a.position() < b.position())
    );
    let widget = kinds.by_resource("example.com", "v1", "widgets").unwrap();
    assert_eq!(
        describe(widget),
        "widgets.example.com example.com/v1 Namespaced \
         create,delete,deletecollection,get,list,patch,update,watch [status:Widget@example.com/v1]"
    );
    assert!(widget.custom && widget.preferred);
    assert_eq!(widget.singular, "widget");
}

#[test]
fn adding_a_kind_again_replaces_it() {
    let mut kinds = Kinds::builtin();
    let before = kinds.len();
    kinds.add(Kind::custom(
        "apps",
        "v1",
        "Deployment",
        "deployments",
        Scope::Cluster,
    ));
    assert_eq!(kinds.len(), before);
    assert_eq!(
        kinds.by_kind("apps/v1", "Deployment").unwrap().scope,
        Scope::Cluster
    );
}

#[test]
fn a_malformed_line_is_rejected() {
    let good = "apps/v1\tThing\tthings\tthing\t-\t-\tcluster\tpreferred\t-\t*\t-";
    assert!(Kind::from_row(good).is_some());
    for bad in [
        "",
        "apps/v1\tThing\tthings",
        "apps/v1\tThing\tthings\tthing\t-\t-\tgalaxy\tpreferred\t-\t*\t-",
        "apps/v1\tThing\tthings\tthing\t-\t-\tcluster\tsometimes\t-\t*\t-",
        "apps/v1\tThing\tthings\tthing\t-\t-\tcluster\tpreferred\t-\t*\tstatus",
        "apps/v1\tThing\tthings\tthing\t-\t-\tcluster\tpreferred\t-\t*\tscale@Scale=get",
        "apps/v1\tThing\tthings\tthing\t-\t-\tcluster\tpreferred\t-\t*\t-\tmore",
    ] {
        assert!(Kind::from_row(bad).is_none(), "{bad:?}");
    }
}

#[test]
fn every_writable_kind_has_a_message() {
    let kinds = Kinds::builtin();
    let missing: Vec<_> = kinds
        .iter()
        .filter(|kind| {
            let mut verbs = kind.verbs.iter();
            verbs.any(|verb| verb == "create" || verb == "update")
        })
        .filter(|kind| {
            let messages = Messages::v1_36();
            messages.of_kind(&kind.api_version(), &kind.kind).is_none()
        })
        .map(Kind::group_resource)
        .collect();
    assert_eq!(missing, [""; 0]);
}
