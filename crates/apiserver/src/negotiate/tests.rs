//! Tests the selection of a response's representation, and the parsing of a request's media type.

use http::{HeaderMap, HeaderValue, header};

use super::{IncludeObject, Representation, content_type, negotiate, wants_aggregated_discovery};
use crate::kinds::Kinds;
use crate::route::{Query, Verb};

fn accepting(accept: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
    headers
}

#[test]
fn the_first_available_alternative_is_selected() {
    let table = Some(Representation::Table(IncludeObject::Metadata));
    for (accept, expected) in [
        ("", Some(Representation::Object)),
        (
            "application/vnd.kubernetes.protobuf, application/json",
            Some(Representation::Object),
        ),
        (
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            table,
        ),
        (
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            Some(Representation::Object),
        ),
        (
            "application/json; g=meta.k8s.io; as=PartialObjectMetadataList; v=v1",
            Some(Representation::Metadata),
        ),
        (
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            None,
        ),
        ("application/yaml", None),
    ] {
        let kinds = Kinds::builtin();
        let kind = kinds.by_resource("apps", "v1", "deployments").unwrap();
        let taken = negotiate(&accepting(accept), &Query::default(), Verb::List, kind);
        assert_eq!(taken.ok(), expected, "{accept}");
    }
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
