//! Tests the detection of content types.
//!
//! Also tests that [`Encoded::cut_found`] and [`Encoded::cut`] remove the same fields from an object's JSON.

use k8s_openapi::api::core::v1::Pod;

use super::*;

#[test]
fn only_unsupported_encodings_of_the_api_are_not_json() {
    for json in [
        "application/json",
        "application/json;stream=watch",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "text/plain; charset=utf-8",
        "",
    ] {
        assert_eq!(
            Encoding::of_content_type(json),
            Ok(Encoding::Json),
            "{json}"
        );
    }
    let protobuf = Encoding::of_content_type("Application/vnd.kubernetes.protobuf;stream=watch");
    assert_eq!(protobuf, Ok(Encoding::Protobuf));
    let error = Encoding::of_content_type("application/cbor");
    assert_eq!(
        error.unwrap_err().to_string(),
        "the server responded with application/cbor instead of application/json"
    );
}

#[test]
fn pruning_with_a_known_identity_equals_a_search() {
    let paths = |paths: &[&str]| {
        let mut pruning = Pruning::default();
        let paths = paths.iter().map(|path| path.parse().unwrap());
        pruning.prune::<Pod>(paths).unwrap();
        pruning
    };
    let prunings = [
        &["metadata.managedFields"][..],
        &["metadata.managedFields", "metadata.annotations"],
        &["metadata.annotations['a.b/c']", "metadata.managedFields"],
        &["metadata.annotations['none']"],
    ];
    let mut cuts = 0;
    for metadata in [
        r#""name":"a""#,
        r#""managedFields":[{"a":"}"}],"name":"a""#,
        r#""name":"a","managedFields":[],"annotations":{"a.b/c":"d"}"#,
        r#""annotations":{"x":"y","a.b/c":"d"},"name":"a","managedFields":[1,{"b":[]}]"#,
        r#" "annotations" : { "a.b/c" : "d" , "x" : "y" } , "managedFields" : [ ] , "name" : "a" "#,
        r#""name":"a","annotations":null,"managedFields":null"#,
    ] {
        let json = format!(r#"{{"metadata":{{{metadata}}},"spec":{{"managedFields":1}}}}"#);
        let encoded = Codec::Json.object(json.as_bytes());
        let at = encoded.begins_with_metadata().unwrap();
        let identity = encoded.identity_at(at, false).unwrap();
        for pruning in prunings.map(paths) {
            let found = encoded.cut_found(&pruning, &identity).unwrap();
            let text = std::str::from_utf8(&found).unwrap();
            // `null` metadata fields are not located.
            if !json.contains("null") {
                assert_eq!(text, String::from_utf8_lossy(&encoded.cut(&pruning)));
            }
            serde_json::from_str::<serde_json::Value>(text).unwrap();
            cuts += usize::from(text.len() < json.len());
        }
    }
    assert_eq!(cuts, 12);

    let escaped = br#"{"metadata":{"name":"a","managed\u0046ields":[7]}}"#;
    let encoded = Codec::Json.object(escaped);
    let at = encoded.begins_with_metadata().unwrap();
    let identity = encoded.identity_at(at, false).unwrap();
    let found = encoded.cut_found(&paths(&["metadata.managedFields"]), &identity);
    assert!(found.is_none(), "the metadata is found by a search");
}
