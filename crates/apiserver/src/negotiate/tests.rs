//! Tests the selection of a response's representation, and the parsing of a request's media type.

use http::{HeaderMap, HeaderValue, header};

use super::{
    Content, Encoding, Format, Forms, IncludeObject, Representation, Route,
    aggregated_discovery_in, content_type, document_in, errors_in, negotiate,
};
use crate::kinds::{Kind, Kinds, Scope};
use crate::route::Query;
use crate::status::ApiError;

fn accepting(accept: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
    headers
}

/// `Accept` header that requests a `PartialObjectMetadataList` as protobuf.
const METADATA: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

fn format(accept: &str, content: Content, kind: &Kind) -> Result<Format, ApiError> {
    let selected = negotiate(
        &accepting(accept),
        Forms {
            streams: content != Content::Object,
            tables: true,
        },
        kind,
    )?;
    selected.format(&Query::default(), content, kind)
}

fn taken(accept: &str, kind: &Kind) -> Option<Format> {
    format(accept, Content::List, kind).ok()
}

#[test]
fn the_available_alternative_with_the_highest_quality_is_selected() {
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
        (
            "application/json;q=0.5, application/vnd.kubernetes.protobuf;q=0.9",
            protobuf(Representation::Object),
        ),
        (
            "*/*;q=0.1, application/vnd.kubernetes.protobuf",
            protobuf(Representation::Object),
        ),
        // Recorded from kube-apiserver: Go's sort depends on the order of wildcards.
        (
            "application/json;q=0.1, */*;q=0.9;v=v1, application/vnd.kubernetes.protobuf;q=0.2",
            protobuf(Representation::Object),
        ),
        ("*", None),
        (
            "application/json;stream=watch",
            json(Representation::Object),
        ),
        ("application/json;stream=other", None),
        ("application/json;sv=v1", json(Representation::Object)),
        ("application/json;sv=v2", None),
        ("application/json;v=v1", None),
        ("///,;;q,=", None),
    ] {
        assert_eq!(taken(accept, kind), expected, "{accept}");
    }
}

#[test]
fn yaml_is_available_for_objects_and_tables() {
    let kinds = Kinds::builtin();
    let kind = kinds.by_resource("apps", "v1", "deployments").unwrap();
    for (accept, representation) in [
        ("application/yaml", Some(Representation::Object)),
        (
            "application/yaml;as=Table;g=meta.k8s.io;v=v1",
            Some(Representation::Table(IncludeObject::Metadata)),
        ),
        ("application/yaml;stream=watch", None),
    ] {
        let format = representation.map(|representation| Format {
            encoding: Encoding::Yaml,
            representation,
        });
        assert_eq!(taken(accept, kind), format, "{accept}");
    }
    let any = taken("application/yaml;q=0.5, application/*;q=0.6", kind);
    assert_eq!(any.unwrap().encoding, Encoding::Json);
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
    assert_eq!(errors_in(&accepting(accept)), Encoding::Protobuf);
    let yaml = errors_in(&accepting("application/yaml"));
    assert_eq!(yaml, Encoding::Yaml);
}

#[test]
fn an_unsuitable_form_is_rejected_with_kubernetes_message() {
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let unknown = "application/json;as=Foo;g=meta.k8s.io;v=v1";
    let kinds = Kinds::builtin();
    let kind = kinds.by_resource("apps", "v1", "deployments").unwrap();
    for (accept, content, expected) in [
        (
            one,
            Content::List,
            "you requested PartialObjectMetadata, but the requested object is a list (*apps.DeploymentList)",
        ),
        (
            list,
            Content::Object,
            "you requested PartialObjectMetadataList, but the requested object is not a list (*apps.Deployment)",
        ),
        (
            unknown,
            Content::Object,
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ),
        (
            "application/yaml;stream=watch",
            Content::Object,
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ),
        (
            "text/html",
            Content::Object,
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ),
    ] {
        let refused = format(accept, content, kind);
        let status = refused.unwrap_err();
        assert_eq!(
            (status.code(), status.to_string().as_str()),
            (406, expected)
        );
    }
}

#[test]
fn aggregated_discovery_is_selected_if_any_alternative_requests_it() {
    const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const V2_BETA: &str =
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    for (accept, aggregated, plain) in [
        (
            format!("{V2},{V2_BETA},application/json"),
            Some(Encoding::Json),
            Some(Encoding::Json),
        ),
        (
            format!("{V2_BETA},application/vnd.kubernetes.protobuf"),
            None,
            Some(Encoding::Protobuf),
        ),
        (
            format!("application/json,{V2}"),
            Some(Encoding::Json),
            Some(Encoding::Json),
        ),
        (V2_BETA.to_owned(), None, None),
        ("text/html".to_owned(), None, None),
    ] {
        let headers = accepting(&accept);
        assert_eq!(aggregated_discovery_in(&headers), aggregated, "{accept}");
        let document = document_in(&headers, Route::Handler);
        assert_eq!(document.ok(), plain, "{accept}");
    }
}

#[test]
fn a_long_header_is_sorted_by_quality() {
    let many = "text/html;q=0.9,".repeat(100_000);
    let accept = format!("{many}*/*;q=0.1,application/vnd.kubernetes.protobuf;q=0.2");
    let kinds = Kinds::builtin();
    let pods = kinds.by_resource("", "v1", "pods").unwrap();
    let format = taken(&accept, pods).unwrap();
    assert_eq!(format.encoding, Encoding::Protobuf);
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
