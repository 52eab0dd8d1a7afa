//! Tests that the decoder handles valid and invalid JSON objects from a server.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube_core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};

use super::*;
use crate::{
    codec::Codec,
    limits::{DEPTH, MESSAGE_BYTES},
};

fn decode<K>(decoder: &Decoder<K>, json: &str) -> Object<K>
where
    K: Resource + DeserializeOwned + 'static,
    K::DynamicType: 'static,
{
    match decoder.item(Codec::Json.object(json.as_bytes()), None) {
        Decoded::Object(object) | Decoded::Known(object) => object,
        Decoded::Unreadable(error) => panic!("{error}"),
        Decoded::OtherKind(other) => panic!("{other:?}"),
    }
}

const POD: &str = r#"{"metadata":{"name":"a","namespace":"ns","uid":"u1","resourceVersion":"7","labels":{"app":"web"}},"spec":{"containers":[]}}"#;

#[test]
fn typed_metadata_only_and_dynamic_objects_have_the_same_identity() {
    fn identity<K: Resource>(object: &Object<K>) -> String {
        let app = object.labels().get("app").unwrap_or("-").to_owned();
        format!("{object:?} {} {app}", object.uid())
    }
    let widget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let expected = "ns/a@7 u1 web";
    assert_eq!(
        identity(&decode(&Decoder::<Pod>::new(&(), None), POD)),
        expected
    );
    assert_eq!(
        identity(&decode(
            &Decoder::<PartialObjectMeta<Pod>>::new(&(), None),
            POD
        )),
        expected
    );
    let decoder = Decoder::<DynamicObject>::new(&widget, None);
    let dynamic = decode(&decoder, POD);
    assert_eq!(identity(&dynamic), expected);
    let types = dynamic.live().unwrap().types.clone().unwrap();
    assert_eq!(
        (types.api_version.as_str(), types.kind.as_str()),
        ("example.com/v1", "Widget")
    );
}

fn other_kind<K>(decoder: &Decoder<K>, json: &str) -> Option<String>
where
    K: Resource + DeserializeOwned + 'static,
    K::DynamicType: 'static,
{
    match decoder.object(Codec::Json.object(json.as_bytes()), None) {
        Decoded::OtherKind(OtherKind { name, found }) => Some(format!("{found} {name:?}")),
        Decoded::Object(_) | Decoded::Known(_) | Decoded::Unreadable(_) => None,
    }
}

#[test]
fn an_object_of_another_kind_is_detected_wherever_it_states_it() {
    let widget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let widgets = Decoder::<DynamicObject>::new(&widget, None);
    let pods = Decoder::<Pod>::new(&(), None);
    for json in [
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}"#,
        r#"{"metadata":{"name":"a"},"kind":"Deployment","apiVersion":"apps/v1"}"#,
    ] {
        let expected = Some("apps/v1 Deployment Some(a)".to_owned());
        assert_eq!(other_kind(&widgets, json), expected);
        assert_eq!(other_kind(&pods, json), expected);
    }
    let another_version = r#"{"kind":"Widget","apiVersion":"example.com/v2"}"#;
    let expected = Some("example.com/v2 Widget None".to_owned());
    assert_eq!(other_kind(&widgets, another_version), expected);
    for own in [
        r#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"}}"#,
        r#"{ "apiVersion":"example.com/v1","metadata":{"name":"a"},"kind":"Widget"}"#,
        r#"{"metadata":{"name":"a"}}"#,
    ] {
        assert_eq!(format!("{:?}", decode(&widgets, own)), "a@");
    }
}

#[test]
fn half_a_kind_is_another_kind() {
    let widget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let widgets = Decoder::<DynamicObject>::new(&widget, None);
    let pods = Decoder::<Pod>::new(&(), None);
    for (half, found) in [
        (r#""kind":"Pod""#, "Pod without API version"),
        (r#""kind":"Widget""#, "Widget without API version"),
        (r#""apiVersion":"v1","kind":null"#, "v1 without kind"),
        (r#""apiVersion":"apps/v1""#, "apps/v1 without kind"),
        (r#""kind":"","apiVersion":"""#, "without kind"),
    ] {
        let json = format!(r#"{{"metadata":{{"name":"a"}},{half}}}"#);
        let expected = Some(format!("{found} Some(a)"));
        assert_eq!(other_kind(&widgets, &json), expected);
        assert_eq!(other_kind(&pods, &json), expected);
    }
}

#[test]
fn an_item_that_states_another_kind_after_its_metadata_is_detected() {
    let pods = Decoder::<Pod>::new(&(), None);
    let item = |json: &str| pods.item(Codec::Json.object(json.as_bytes()), None);
    let other = r#"{"metadata":{"name":"a"},"kind":"Deployment","apiVersion":"apps/v1"}"#;
    assert!(
        matches!(item(other), Decoded::OtherKind(other) if other.found == "apps/v1 Deployment")
    );
    let own = r#"{"metadata":{"name":"a"},"kind":"Pod","apiVersion":"v1","spec":7}"#;
    assert!(matches!(item(own), Decoded::Object(object) if object.broken().is_some()));
}

#[test]
fn metadata_has_its_own_kind_or_that_of_the_whole_object() {
    let names = Decoder::<PartialObjectMeta<Pod>>::new(&(), None);
    for kind in [
        r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#,
        r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1""#,
        r#""kind":"Pod","apiVersion":"v1""#,
    ] {
        let json = format!(r#"{{{kind},"metadata":{{"name":"a"}}}}"#);
        assert_eq!(other_kind(&names, &json), None, "{kind}");
    }
    let table = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}"#;
    assert!(other_kind(&names, table).is_some());
    let alone = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"}"#;
    assert!(other_kind(&Decoder::<Pod>::new(&(), None), alone).is_some());
    let namesake = r#"{"kind":"PartialObjectMetadata","apiVersion":"example.com/v1"}"#;
    assert!(other_kind(&names, namesake).is_some());
}

#[test]
fn an_error_truncates_a_long_kind() {
    let kind = "ä".repeat(4000);
    let json = format!(r#"{{"kind":"{kind}","apiVersion":"v1"}}"#);
    let other = other_kind(&Decoder::<Pod>::new(&(), None), &json).unwrap();
    assert_eq!(other.chars().filter(|c| *c == 'ä').count(), 62);
}

#[test]
fn a_decode_error_has_name_and_field_and_quotes_no_value() {
    let json = r#"{"metadata":{"name":"a","namespace":"ns","resourceVersion":"7"},"data":{"password":["hunter2"]}}"#;
    let object = decode(&Decoder::<Secret>::new(&(), None), json);
    assert_eq!(format!("{object:?}"), "ns/a@7 (broken)");
    let error = object.get().unwrap_err();
    assert_eq!(error.field(), "data.password");
    assert!(!format!("{error} {error:?}").contains("hunter2"));

    let nameless = br#"{"metadata":{}}"#;
    let decoded = Decoder::<Secret>::new(&(), None).item(Codec::Json.object(nameless), None);
    assert!(matches!(decoded, Decoded::Unreadable(error) if error.field() == "metadata.name"));
}

#[test]
fn a_failed_transform_breaks_one_object_only() {
    let decoder = Decoder::<Pod>::new(
        &(),
        Some(Arc::new(|pod: &mut Pod| {
            pod.spec = None;
            let web = pod.metadata.labels.is_some();
            web.then_some(()).ok_or_else(|| "no labels".to_owned())
        })),
    );
    assert!(decode(&decoder, POD).live().unwrap().spec.is_none());
    let error = decode(&decoder, r#"{"metadata":{"name":"b"}}"#)
        .get()
        .unwrap_err();
    let text = "b can't be decoded: the transform failed: no labels at .";
    assert_eq!(error.to_string(), text);
}

#[test]
fn an_empty_item_of_a_dynamic_list_is_unreadable() {
    let widget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let decoder = Decoder::<DynamicObject>::new(&widget, None);
    for empty in ["{}", "{ \n}", r#"{"metadata":{}}"#] {
        let item = decoder.item(Codec::Json.object(empty.as_bytes()), None);
        let Decoded::Unreadable(error) = item else {
            panic!("{empty:?} has no name to be kept under");
        };
        assert_eq!(error.field(), "metadata.name", "of {empty:?}");
    }
}

/// Returns a JSON value of `depth` arrays, each inside the previous one.
fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

#[test]
fn an_object_nested_too_deep_is_broken_if_its_type_reads_that_field() {
    let widget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let widgets = Decoder::<DynamicObject>::new(&widget, None);
    let json = |depth| format!(r#"{{"metadata":{{"name":"a"}},"spec":{}}}"#, nested(depth));
    // The object that contains `spec` is one more level.
    assert!(decode(&widgets, &json(DEPTH - 1)).broken().is_none());
    for depth in [DEPTH, 100_000] {
        let object = decode(&widgets, &json(depth));
        let error = object.broken().unwrap().to_string();
        let expected = "a can't be decoded: nested too deep (line 1, column ";
        assert!(error.starts_with(expected), "{error}");
    }
    let pods = Decoder::<Pod>::new(&(), None);
    let unread = format!(r#"{{"metadata":{{"name":"a"}},"no":{}}}"#, nested(100_000));
    assert!(decode(&pods, &unread).broken().is_none());
    let labels = format!(r#"{{"metadata":{{"name":"a","labels":{}}}}}"#, nested(1000));
    assert_eq!(format!("{:?}", decode(&pods, &labels)), "a@ (broken)");
}

#[test]
fn an_object_with_an_invalid_name_or_revision_is_unreadable() {
    let pods = Decoder::<Pod>::new(&(), None);
    let unreadable = |namespace: &str, name: &str, revision: &str, spec: &str| {
        let metadata = serde_json::json!({
            "name": name, "namespace": namespace, "resourceVersion": revision,
        });
        let json = format!(r#"{{"metadata":{metadata},"spec":{spec}}}"#);
        match pods.object(Codec::Json.object(json.as_bytes()), None) {
            Decoded::Unreadable(error) => error.to_string(),
            _ => String::new(),
        }
    };
    let (name, revision) = ("n".repeat(NAME_BYTES), "r".repeat(REVISION_BYTES));
    for spec in ["null", "5"] {
        assert_eq!(unreadable(&name, &name, &revision, spec), "");
        let at_name = "an object without a readable name can't be decoded: longer than 1024 bytes, or with control characters, at metadata.name";
        assert_eq!(unreadable("", &(name.clone() + "n"), "", spec), at_name);
        assert_eq!(unreadable(&(name.clone() + "n"), "a", "", spec), at_name);
        for name in ["a\nb", "a\u{1b}[31m", "\u{9b}"] {
            assert_eq!(unreadable("", name, "", spec), at_name);
        }
        assert_eq!(unreadable("ns", "ä", "", spec), "");
        let longer = revision.clone() + "r";
        let expected = "a can't be decoded: longer than 256 bytes, or with control characters, at metadata.resourceVersion";
        for revision in [&*longer, "7\nERROR all is lost", "\u{1b}[31m7"] {
            assert_eq!(unreadable("", "a", revision, spec), expected);
            let bookmark = serde_json::json!({"metadata": {"resourceVersion": revision}});
            assert_eq!(
                super::revision(Codec::Json.object(bookmark.to_string().as_bytes())),
                None
            );
        }
    }
}

#[test]
fn field_paths_and_transform_errors_are_one_truncated_line() {
    let key = "k\\n".repeat(4000);
    let json = format!(r#"{{"metadata":{{"name":"a"}},"data":{{"{key}":5}}}}"#);
    let object = decode(&Decoder::<Secret>::new(&(), None), &json);
    let error = object.broken().unwrap();
    assert!(error.field().starts_with("data.k k k "), "{error}");
    assert!(error.field().len() < MESSAGE_BYTES + 4);
    let fails: Transform<Pod> = Arc::new(|_| Err("no\n".repeat(4000)));
    let object = decode(&Decoder::new(&(), Some(fails)), POD);
    let error = object.broken().unwrap().to_string();
    assert!(error.contains("the transform failed: no no "), "{error}");
    assert!(error.len() < MESSAGE_BYTES + 100);
}

#[test]
fn an_object_with_too_many_arrays_and_maps_is_broken() {
    let pod = |containers: usize, text: &str| {
        let containers = vec!["{}"; containers].join(",");
        format!(
            r#"{{"metadata":{{"name":"a","annotations":{{"text":"{text}"}}}},"spec":{{"containers":[{containers}]}}}}"#
        )
    };
    let decoder = Decoder::<Pod>::new(&(), None);
    // Besides the containers, the pod has five maps and arrays: the object, its metadata, annotations and
    // spec, and the list of containers. So this number of containers exceeds the limit by one.
    let (many, text) = (pod(PARTS - 4, ""), pod(1, &"{".repeat(PARTS)));
    let Decoded::Object(many) = decoder.object(Codec::Json.object(many.as_bytes()), None) else {
        panic!("it has a name");
    };
    assert_eq!(
        many.broken().map(ToString::to_string).as_deref(),
        Some("a can't be decoded: more than 500000 arrays and maps at .")
    );
    let Decoded::Object(text) = decoder.object(Codec::Json.object(text.as_bytes()), None) else {
        panic!("it has a name");
    };
    assert!(text.broken().is_none(), "a text has no parts");
    assert_eq!(
        Codec::Json.object(pod(PARTS - 5, "").as_bytes()).parts(),
        PARTS,
        "the maximum number is accepted"
    );
}
