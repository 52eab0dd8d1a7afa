//! Tests of the table of protobuf messages that `cargo xtask kinds` writes.
//!
//! The input consists of two proto files and the Go structs of their messages, all written for these tests.

use super::*;

const PROTO: &str = r#"
syntax = "proto2";

package k8s.io.api.x;

// A pod.
message Pod {
  // Standard.
  optional .k8s.io.m.Meta metadata = 1;

  repeated Container containers = 3;
  map<string, bytes> data = 2;
  optional Source source = 4;
  optional int32 priority = 5;
}

message Container {
  optional string name = 1;
  map<string, .k8s.io.m.Time> times = 2;
}

message Source {
  optional Extra extra = 1;
}

message Extra {
  repeated string items = 1;
}

message Unreached {
  optional string name = 1;
}
"#;

const GO: &str = r#"
import (
	metav1 "k8s.io/m"
)

type Pod struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.Meta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	Data map[string][]byte `json:"data,omitempty" protobuf:"bytes,2,rep,name=data"`
	Containers []Container `json:"containers" protobuf:"bytes,3,rep,name=containers"`
	Source `json:",inline" protobuf:"bytes,4,opt,name=source"`
	Priority *int32 `json:"priority" protobuf:"varint,5,opt,name=priority"`
}

type Container struct {
	Name *ContainerName `json:"$name" protobuf:"bytes,1,opt,name=name"`
	Times map[TimeName]metav1.Time `json:"times" protobuf:"bytes,2,rep,name=times"`
}

type Source struct {
	Extra *Extra `protobuf:"bytes,1,opt,name=extra"`
}

type Extra []string
"#;

const META: &str = r#"
package k8s.io.m;

message Meta {
  optional Time at = 1;
  optional Time stop = 2;
}

message Time {
  optional int64 seconds = 1;
}
"#;

const META_GO: &str = r#"
type Meta struct {
	At Time `json:"at,omitempty,omitzero" protobuf:"bytes,1,opt,name=at"`
	Stop *Time `json:"stop,omitempty" protobuf:"bytes,2,opt,name=stop"`
}

type Time struct {
	Seconds int64 `json:"seconds,omitempty" protobuf:"varint,1,opt,name=seconds"`
}
"#;

/// The OpenAPI document of the same types.
const DOCUMENT: &str = r##"{"definitions": {
    "io.k8s.api.x.Pod": {"type": "object", "required": ["containers"],
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": "#/definitions/io.k8s.m.Meta"},
            "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
            "containers": {"type": "array", "items": {"$ref": "#/definitions/io.k8s.api.x.Container"},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["$name"],
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "$name"},
            "extra": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "priority": {"type": "integer", "format": "int32"}}},
    "io.k8s.api.x.Container": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "$name": {"type": "string", "default": "main"},
        "times": {"type": "object", "additionalProperties": {"$ref": "#/definitions/io.k8s.m.Time"}}}},
    "io.k8s.m.Meta": {"type": "object", "properties": {
        "at": {"$ref": "#/definitions/io.k8s.m.Time"},
        "stop": {"$ref": "#/definitions/io.k8s.m.Time"}}},
    "io.k8s.m.Time": {"type": "object", "properties": {"seconds": {"type": "integer", "format": "int64"}}}
}}"##;

fn made(files: [(&str, &str); 2]) -> Result<String> {
    merged(files, files)
}

fn library(files: [(&str, &str); 2]) -> Result<Library> {
    let mut library = Library::default();
    for (text, go) in files {
        let file = proto::parse(text)?;
        library.packages.insert(file.package, Package::of_text(go));
        library.messages.extend(file.messages);
    }
    Ok(library)
}

fn merged(files: [(&str, &str); 2], later: [(&str, &str); 2]) -> Result<String> {
    described(files, later, DOCUMENT)
}

fn described(files: [(&str, &str); 2], later: [(&str, &str); 2], document: &str) -> Result<String> {
    let document = Document::parse(document)?;
    let served = document.kinds(&BTreeSet::from(["v1/Pod".to_owned()]))?;
    let mut kinds = kinds_of(&served);
    for (root, _) in ROOTS {
        kinds.remove(&message_name(root));
    }
    let mut messages = library(files)?.messages(&mut library(later)?, &kinds)?;
    described::add(&mut messages, &document, served.keys().copied())?;
    Ok(text(["v1", "v2"], &messages, &kinds))
}

fn error(proto: &str, go: &str) -> String {
    format!("{:#}", made([(proto, go), (META, META_GO)]).unwrap_err())
}

#[test]
fn reachable_messages_have_numbers_types_presence_go_types_and_words() {
    let table = made([(PROTO, GO), (META, META_GO)]).unwrap();
    let rows: Vec<_> = super::super::rows(&table).collect();
    assert_eq!(
        rows,
        [
            "k8s.io.api.x.Container\tobject\tatomic",
            "\t1\t$name\tstring\tnullable\tx.ContainerName\tdefault=\"main\"",
            "\t2\ttimes\t{}k8s.io.m.Time\talways\tmap[x.TimeName]m.Time",
            "k8s.io.api.x.Extra\tlist",
            "\t1\titems\t[]string\talways",
            "k8s.io.api.x.Pod\tobject\tv1/Pod",
            "\t1\tmetadata\tk8s.io.m.Meta\talways",
            "\t2\tdata\t{}bytes\tnonzero",
            "\t3\tcontainers\t[]k8s.io.api.x.Container\talways\t\trequired patch=merge key=$name list=map:$name",
            "\t4\tsource\tk8s.io.api.x.Source\tinline",
            "\t5\tpriority\tint32\tnullable",
            "k8s.io.api.x.Source\tobject",
            "\t1\textra\tk8s.io.api.x.Extra\tnullable\t\tlist=set",
            "k8s.io.m.Meta\tobject",
            "\t1\tat\tk8s.io.m.Time\tnonzero",
            "\t2\tstop\tk8s.io.m.Time\tsent",
            "k8s.io.m.Time\tobject",
            "\t1\tseconds\tint64\tnonzero",
        ]
    );
}

#[test]
fn fields_and_messages_of_the_later_version_are_added() {
    let proto = PROTO.replace(
        "optional int32 priority = 5;",
        "optional int32 priority = 5;\n  optional Added added = 7;\n  optional string zone = 6;",
    );
    let proto = format!("{proto}message Added {{\n  optional string name = 1;\n}}\n");
    let go = GO.replace(
        "\tPriority *int32",
        "\tZone string `json:\"zone\" protobuf:\"bytes,6,opt,name=zone\"`\n\
         \tAdded *Added `json:\"added,omitempty\" protobuf:\"bytes,7,opt,name=added\"`\n\
         \tPriority *int32",
    );
    // Since 1.37, the tag of an embedded struct is empty.
    let go = go.replace(",inline", "");
    let added = "type Added struct {\n\tName string `json:\"name\" protobuf:\"bytes,1,opt,name=name\"`\n}\n";
    let go = format!("{go}{added}");
    let table = merged(
        [(PROTO, GO), (META, META_GO)],
        [(&proto, &go), (META, META_GO)],
    );
    let table = table.unwrap();
    let before = made([(PROTO, GO), (META, META_GO)]).unwrap();
    let new = super::super::rows(&table).filter(|row| !before.lines().any(|known| known == *row));
    assert_eq!(
        new.collect::<Vec<_>>(),
        [
            "k8s.io.api.x.Added\tobject",
            "\t1\tname\tstring\talways",
            "\t6\tzone\tstring\talways\t\tadded",
            "\t7\tadded\tk8s.io.api.x.Added\tsent\t\tadded",
        ]
    );
}

#[test]
fn a_field_that_only_one_source_has_is_an_error() {
    let without = GO.replace(
        "\tPriority *int32 `json:\"priority\" protobuf:\"varint,5,opt,name=priority\"`\n",
        "",
    );
    assert_eq!(
        error(PROTO, &without),
        "k8s.io.api.x.Pod: the proto file has the fields {1, 2, 3, 4, 5}, the struct [1, 2, 3, 4]"
    );
    let untagged = GO.replace(" protobuf:\"varint,5,opt,name=priority\"", "");
    assert!(error(PROTO, &untagged).ends_with("a field without a number"));
    assert!(error(PROTO, "").ends_with("no struct Pod"));
}

#[test]
fn an_unknown_type_with_marshal_json_is_an_error() {
    let method = "func (c Container) MarshalJSON() ([]byte, error) {\n}\n";
    assert_eq!(
        error(PROTO, &format!("{GO}{method}")),
        "k8s.io.api.x.Container: a method MarshalJSON, and no form in this table"
    );
}

#[test]
fn an_openapi_document_that_does_not_fit_is_an_error() {
    let files = [(PROTO, GO), (META, META_GO)];
    for (from, to, expected) in [
        (
            "\"format\": \"int32\"",
            "\"format\": \"int64\"",
            "io.k8s.api.x.Pod.priority: the OpenAPI type is integer:int64, and the type of the message integer:int32",
        ),
        (
            "\"stop\":",
            "\"end\":",
            "io.k8s.m.Meta.end is no field of the message",
        ),
        (
            "\"stop\": {\"$ref\": \"#/definitions/io.k8s.m.Time\"}",
            "\"at\": {\"$ref\": \"#/definitions/io.k8s.m.Time\"}",
            "io.k8s.m.Meta does not have {\"stop\"}",
        ),
        (
            "\"main\"",
            "\"a b\"",
            "io.k8s.api.x.Container.$name: a word with a space: [\"default=\\\"a b\\\"\"]",
        ),
    ] {
        let document = DOCUMENT.replace(from, to);
        assert_ne!(document, DOCUMENT);
        let error = described(files, files, &document).unwrap_err();
        assert_eq!(format!("{error:#}"), expected);
    }
}

#[test]
fn unsupported_proto_is_an_error() {
    for (from, to) in [
        ("optional int32 priority", "optional sint32 priority"),
        ("optional int32 priority", "oneof int32 priority"),
        ("map<string, bytes>", "map<int32, bytes>"),
        (
            "optional Source source = 4;",
            "optional Source source = 4 [x];",
        ),
        ("optional Source source", "optional Sauce source"),
        ("package k8s.io.api.x;", ""),
    ] {
        let broken = PROTO.replace(from, to);
        assert_ne!(broken, PROTO);
        assert!(!error(&broken, GO).is_empty(), "{to:?}");
    }
}

#[test]
fn message_names_differ_from_definitions_in_the_domain_and_hyphens() {
    assert_eq!(
        message_name("io.k8s.kube-aggregator.pkg.v1.APIService"),
        "k8s.io.kube_aggregator.pkg.v1.APIService"
    );
    assert_eq!(
        definition_name("k8s.io.kube_aggregator.pkg.v1.APIService"),
        "io.k8s.kube-aggregator.pkg.v1.APIService"
    );
}
