//! Objects as servers send them, and as nobody should.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube_core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};

use super::*;

fn decode<K>(decoder: &Decoder<K>, json: &str) -> Object<K>
where
    K: Resource + DeserializeOwned + 'static,
    K::DynamicType: 'static,
{
    match decoder.item(&Bytes::copy_from_slice(json.as_bytes())) {
        Decoded::Object(object) => object,
        Decoded::Unreadable(error) => panic!("{error}"),
        Decoded::OtherKind(other) => panic!("{other:?}"),
    }
}

const POD: &str = r#"{"metadata":{"name":"a","namespace":"ns","uid":"u1","resourceVersion":"7","labels":{"app":"web"}},"spec":{"containers":[]}}"#;

#[test]
fn typed_metadata_only_and_dynamic_objects_are_read_alike() {
    fn head<K: Resource>(object: &Object<K>) -> String {
        let app = object.labels().get("app").unwrap_or("-").to_owned();
        format!("{object:?} {} {app}", object.uid())
    }
    let widget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let expected = "ns/a@7 u1 web";
    assert_eq!(
        head(&decode(&Decoder::<Pod>::new(&(), None), POD)),
        expected
    );
    assert_eq!(
        head(&decode(
            &Decoder::<PartialObjectMeta<Pod>>::new(&(), None),
            POD
        )),
        expected
    );
    let decoder = Decoder::<DynamicObject>::new(&widget, None);
    let dynamic = decode(&decoder, POD);
    assert_eq!(head(&dynamic), expected);
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
    match decoder.object(json.as_bytes()) {
        Decoded::OtherKind(OtherKind { name, found }) => Some(format!("{found} {name:?}")),
        Decoded::Object(_) | Decoded::Unreadable(_) => None,
    }
}

#[test]
fn an_object_of_another_kind_is_told_apart_wherever_it_says_so() {
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
fn an_item_that_says_behind_its_metadata_that_it_is_of_another_kind_is_told_apart() {
    let pods = Decoder::<Pod>::new(&(), None);
    let item = |json: &str| pods.item(&Bytes::copy_from_slice(json.as_bytes()));
    let other = r#"{"metadata":{"name":"a"},"kind":"Deployment","apiVersion":"apps/v1"}"#;
    assert!(
        matches!(item(other), Decoded::OtherKind(other) if other.found == "apps/v1 Deployment")
    );
    let own = r#"{"metadata":{"name":"a"},"kind":"Pod","apiVersion":"v1","spec":7}"#;
    assert!(matches!(item(own), Decoded::Object(object) if object.broken().is_some()));
}

#[test]
fn metadata_alone_is_of_its_own_kind_or_of_the_whole_object_s() {
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
fn of_a_kind_however_long_an_error_repeats_the_beginning() {
    let kind = "ä".repeat(4000);
    let json = format!(r#"{{"kind":"{kind}","apiVersion":"v1"}}"#);
    let other = other_kind(&Decoder::<Pod>::new(&(), None), &json).unwrap();
    assert_eq!(other.chars().filter(|c| *c == 'ä').count(), 125);
}

#[test]
fn what_does_not_decode_is_broken_by_name_and_field_and_never_quoted() {
    let json = r#"{"metadata":{"name":"a","namespace":"ns","resourceVersion":"7"},"data":{"password":["hunter2"]}}"#;
    let object = decode(&Decoder::<Secret>::new(&(), None), json);
    assert_eq!(format!("{object:?}"), "ns/a@7 (broken)");
    let error = object.get().unwrap_err();
    assert_eq!(error.field(), "data.password");
    assert!(!format!("{error} {error:?}").contains("hunter2"));

    let nameless = Bytes::from_static(br#"{"metadata":{}}"#);
    let decoded = Decoder::<Secret>::new(&(), None).item(&nameless);
    assert!(matches!(decoded, Decoded::Unreadable(error) if error.field() == "metadata.name"));
}

#[test]
fn a_transform_is_seen_by_all_and_its_failure_breaks_one_object() {
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
fn an_empty_item_of_a_dynamic_list_is_unreadable_and_nothing_worse() {
    let widget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let decoder = Decoder::<DynamicObject>::new(&widget, None);
    for empty in ["{}", "{ \n}", r#"{"metadata":{}}"#] {
        let item = decoder.item(&Bytes::copy_from_slice(empty.as_bytes()));
        let Decoded::Unreadable(error) = item else {
            panic!("{empty:?} has no name to be kept under");
        };
        assert_eq!(error.field(), "metadata.name", "of {empty:?}");
    }
}
