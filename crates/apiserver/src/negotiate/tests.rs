//! Tests the selection of a response's representation, and the parsing of a request's media type.

use http::{HeaderMap, HeaderValue, header};

use super::{
    Encoding, Format, IncludeObject, Representation, content_type, errors_in, negotiate,
    wants_aggregated_discovery,
};
use crate::kinds::{Kind, Kinds, Scope};
use crate::route::{Query, Verb};

fn accepting(accept: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
    headers
}

/// `Accept` header that requests a `PartialObjectMetadataList` as protobuf.
const METADATA: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

fn taken(accept: &str, kind: &Kind) -> Option<Format> {
    negotiate(&accepting(accept), &Query::default(), Verb::List, kind).ok()
}

#[test]
fn the_first_available_alternative_is_selected() {
    let json = |representation| {
        Some(Format {
            encoding: Encoding::Json,
            representation,
        })
    };
    let protobuf = |representation| {
        Some(Format {
            encoding: Encoding::Protobuf,
            representation,
        })
    };
    let table = json(Representation::Table(IncludeObject::Metadata));
    let kinds = Kinds::builtin();
    let kind = kinds.by_resource("apps", "v1", "deployments").unwrap();
    for (accept, expected) in [
        ("", json(Representation::Object)),
        (
            "application/vnd.kubernetes.protobuf, application/json",
            protobuf(Representation::Object),
        ),
        (
            "application/json, application/vnd.kubernetes.protobuf",
            json(Representation::Object),
        ),
        (METADATA, protobuf(Representation::Metadata)),
        (
            "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json",
            json(Representation::Object),
        ),
        (
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            table,
        ),
        (
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            json(Representation::Object),
        ),
        (
            "application/json; g=meta.k8s.io; as=PartialObjectMetadataList; v=v1",
            json(Representation::Metadata),
        ),
        (
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            None,
        ),
        ("application/yaml", None),
    ] {
        assert_eq!(taken(accept, kind), expected, "{accept}");
    }
}

#[test]
fn objects_of_custom_kinds_are_never_protobuf_but_their_metadata_are() {
    let mut kinds = Kinds::builtin();
    kinds.add(Kind::custom(
        "example.com",
        "v1",
        "Widget",
        "widgets",
        Scope::Cluster,
    ));
    let kind = kinds.by_resource("example.com", "v1", "widgets").unwrap();
    let accept = "application/vnd.kubernetes.protobuf,application/json";
    let format = taken(accept, kind).unwrap();
    assert_eq!(format.encoding, Encoding::Json);
    assert_eq!(taken("application/vnd.kubernetes.protobuf", kind), None);
    let format = taken(METADATA, kind).unwrap();
    assert_eq!(format.encoding, Encoding::Protobuf);
    assert_eq!(errors_in(&accepting(accept), kind), Encoding::Json);
    let pods = kinds.by_resource("", "v1", "pods").unwrap();
    assert_eq!(errors_in(&accepting(accept), pods), Encoding::Protobuf);
    assert_eq!(
        errors_in(&accepting("application/yaml"), pods),
        Encoding::Json
    );
}

#[test]
fn an_unsuitable_form_is_rejected_with_kubernetes_message() {
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let unknown = "application/json;as=Foo;g=meta.k8s.io;v=v1";
    let kinds = Kinds::builtin();
    let kind = kinds.by_resource("apps", "v1", "deployments").unwrap();
    for (accept, verb, expected) in [
        (
            one,
            Verb::List,
            "you requested PartialObjectMetadata, but the requested object is a list (*apps.DeploymentList)",
        ),
        (
            list,
            Verb::Get,
            "you requested PartialObjectMetadataList, but the requested object is not a list (*apps.Deployment)",
        ),
        (
            unknown,
            Verb::Get,
            "only the following media types are accepted: application/json",
        ),
    ] {
        let refused = negotiate(&accepting(accept), &Query::default(), verb, kind);
        let status = refused.unwrap_err();
        assert_eq!(
            (status.code(), status.to_string().as_str()),
            (406, expected)
        );
    }
}

#[test]
fn aggregated_discovery_must_precede_plain_json() {
    const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const V2_BETA: &str =
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    for (accept, expected) in [
        (format!("{V2},{V2_BETA},application/json"), Some(true)),
        (format!("{V2_BETA},application/json"), Some(false)),
        (format!("application/json,{V2}"), Some(false)),
        ("text/html".to_owned(), None),
    ] {
        assert_eq!(
            wants_aggregated_discovery(&accepting(&accept)).ok(),
            expected,
            "{accept}"
        );
    }
}

#[test]
fn a_content_type_is_lower_case_without_parameters() {
    let mut headers = HeaderMap::new();
    assert_eq!(content_type(&headers), "");
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("Application/JSON; charset=utf-8"),
    );
    assert_eq!(content_type(&headers), "application/json");
}
