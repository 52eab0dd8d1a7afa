//! Which alternative of an `Accept` header is taken.

use http::{HeaderMap, HeaderValue, header};

use super::{IncludeObject, Representation, content_type, negotiate, wants_aggregated_discovery};
use crate::route::{Query, Verb};

fn accepting(accept: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
    headers
}

#[test]
fn the_first_alternative_that_can_be_had_is_taken() {
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
        let taken = negotiate(&accepting(accept), &Query::default(), Verb::List);
        assert_eq!(taken.ok(), expected, "{accept}");
    }
}

#[test]
fn aggregated_discovery_must_stand_before_plain_json() {
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
fn a_content_type_loses_its_parameters_and_its_case() {
    let mut headers = HeaderMap::new();
    assert_eq!(content_type(&headers), "");
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("Application/JSON; charset=utf-8"),
    );
    assert_eq!(content_type(&headers), "application/json");
}
