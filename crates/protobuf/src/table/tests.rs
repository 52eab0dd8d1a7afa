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
        "x.A\tobject\n\t1\tb\tstring\talways\tv1.B\tnow\n",
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
