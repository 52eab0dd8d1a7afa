//! Tests of the table of messages.

use super::*;

#[test]
fn a_table_with_an_unknown_word_is_rejected() {
    const OPTIONS: &str = "k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions\tobject\n";
    let parse = |rows: &str| Messages::parse(format!("{rows}{OPTIONS}").leak(), true);
    let well = parse("x.A\tobject\tv1/A\n\t1\tb\t[]x.A\talways\n\t3\tc\tstring\tsent\n");
    assert!(well.is_some_and(|messages| messages.of_kind("v1", "A") == Some(MessageId(0))));
    for broken in [
        "x.A\tobject\n\t1\tb\tx.B\talways\n",
        "x.A\tobject\n\t1\tb\tstring\tsometimes\n",
        "x.A\tobject\n\tone\tb\tstring\talways\n",
        "x.A\tobject\n\t1\tb\tstring\talways\tv1.B\trequired\tnow\n",
        "x.A\tobject\n\t1\tb\tstring\talways\n\t1\tc\tstring\talways\n",
        "x.A\tshape\n",
        "x.A\n",
        "\t1\tb\tstring\talways\n",
    ] {
        assert!(parse(broken).is_none(), "{broken:?}");
    }
    assert!(Messages::parse("x.A\tobject\n", true).is_none());
}

#[test]
fn fields_have_the_types_of_go() {
    let messages = Messages::v1_36();
    let id = messages.of_kind("v1", "Node").unwrap();
    let Type::Message(spec) = messages.get(id).fields[1].value else {
        panic!("a spec is a message");
    };
    let Type::Message(status) = messages.get(id).fields[2].value else {
        panic!("a status is a message");
    };
    let shown = |id, name: &str| {
        let mut fields = messages.get(id).fields.iter();
        let field = fields.find(|field| field.name == name).unwrap();
        [messages.go_type(field), messages.go_item_type(field)]
    };
    assert_eq!(shown(spec, "taints"), ["[]v1.Taint", "v1.Taint"]);
    assert_eq!(shown(spec, "podCIDRs"), ["[]string", "string"]);
    let capacity = shown(status, "capacity");
    assert_eq!(capacity, ["v1.ResourceList", "resource.Quantity"]);
    let volumes = shown(status, "volumesInUse");
    assert_eq!(volumes, ["[]v1.UniqueVolumeName", "v1.UniqueVolumeName"]);
    assert_eq!(messages.get(spec).type_name(), "NodeSpec");
}

#[test]
fn fields_of_a_later_version_are_only_in_the_larger_table_and_indexes_are_equal() {
    let (all, older) = (Messages::builtin(), Messages::v1_36());
    assert!(all.kinds().eq(older.kinds()));
    let of = |messages: &'static Messages| {
        let id = messages.of_kind("storage.k8s.io/v1", "CSINode").unwrap();
        messages.get(id).fields.iter().map(|field| field.name)
    };
    assert_eq!(of(older).collect::<Vec<_>>(), ["metadata", "spec"]);
    assert_eq!(of(all).collect::<Vec<_>>(), ["metadata", "spec", "status"]);
}

/// Returns a field of a kind, by the names of the fields that lead to it.
fn field(kind: &str, path: &[&str]) -> (&'static Message, &'static Field) {
    let messages = Messages::v1_36();
    let (api_version, kind) = kind.rsplit_once('/').unwrap();
    let mut id = messages.of_kind(api_version, kind);
    let mut found = None;
    for name in path {
        let message = messages.get(id.unwrap());
        let field = message.fields.iter().find(|field| field.name == *name);
        let field = field.unwrap();
        id = match field.value {
            Type::Message(id) => Some(id),
            _ => None,
        };
        found = Some((message, field));
    }
    found.unwrap()
}

#[test]
fn fields_have_the_extensions_that_kubernetes_declares() {
    let (_, containers) = field("v1/Pod", &["spec", "containers"]);
    assert!(containers.is_required());
    assert_eq!(containers.merge_key(), Some("name"));
    assert_eq!(containers.list_type(), Some(ListType::Map("name")));
    let (_, ports) = field("v1/Pod", &["spec", "containers", "ports"]);
    assert_eq!(ports.merge_key(), Some("containerPort"));
    let keys = ListType::Map("containerPort,protocol");
    assert_eq!(ports.list_type(), Some(keys));
    let (_, protocol) = field("v1/Pod", &["spec", "containers", "ports", "protocol"]);
    assert_eq!(protocol.openapi_default(), Some("\"TCP\""));
    let (_, volumes) = field("v1/Pod", &["spec", "volumes"]);
    let strategies: Vec<_> = volumes.patch_strategies().collect();
    assert_eq!(strategies, ["merge", "retainKeys"]);
    let (metadata, finalizers) = field("v1/Pod", &["metadata", "finalizers"]);
    assert_eq!(finalizers.list_type(), Some(ListType::Set));
    assert!(!metadata.is_atomic && !finalizers.is_required());
    let (_, selector) = field("v1/Service", &["spec", "selector"]);
    assert_eq!(selector.map_type(), Some(MapType::Atomic));
    let (selector, labels) = field("apps/v1/Deployment", &["spec", "selector", "matchLabels"]);
    assert!(selector.is_atomic);
    assert_eq!(labels.map_type(), None);
    let (_, tolerations) = field("v1/Pod", &["spec", "tolerations"]);
    assert_eq!(tolerations.patch_strategies().count(), 0);
    assert_eq!(tolerations.list_type(), Some(ListType::Atomic));
    assert_eq!(tolerations.merge_key(), None);
}

#[test]
fn every_word_of_the_table_is_known() {
    let fields = Messages::builtin()
        .all()
        .iter()
        .flat_map(|message| &message.fields);
    let mut words = 0;
    for field in fields {
        for word in field.words() {
            words += 1;
            let is_known = match word.split_once('=') {
                None => ["added", "required"].contains(&word),
                Some(("patch", _)) => field
                    .patch_strategies()
                    .all(|strategy| ["merge", "replace", "retainKeys"].contains(&strategy)),
                Some(("key", key)) => field.merge_key() == Some(key),
                Some(("list", _)) => field.list_type().is_some(),
                Some(("map", _)) => field.map_type().is_some(),
                Some(("default", json)) => field.openapi_default() == Some(json),
                Some(_) => false,
            };
            assert!(is_known, "{} {word}", field.name);
        }
    }
    assert!(words > 700, "{words}");
}
