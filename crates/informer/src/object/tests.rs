//! Tests of [`Deleted`], and of the error for an object without a name.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;

use super::*;

fn object(name: &str, revision: &str) -> Object<ConfigMap> {
    let name: ObjectName = name.parse().unwrap();
    Object::new(ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.name().to_owned()),
            namespace: name.namespace().map(str::to_owned),
            resource_version: Some(revision.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
    .unwrap()
}

fn missed(last_known: Option<Object<ConfigMap>>) -> Deleted<ConfigMap> {
    Deleted::FinalStateUnknown {
        name: ObjectName::namespaced("shop", "web"),
        last_known,
    }
}

#[test]
fn a_deletion_names_its_object_with_or_without_a_state() {
    let cases = [
        (Deleted::Known(object("shop/web", "7")), Some("7"), false),
        (missed(Some(object("shop/web", "5"))), Some("5"), true),
        (missed(None), None, true),
    ];
    for (deleted, revision, was_missed) in cases {
        assert_eq!(deleted.object_name().as_str(), "shop/web");
        assert_eq!(deleted.is_final_state_unknown(), was_missed);
        let known = deleted.object().map(|object| object.revision().to_string());
        assert_eq!(known.as_deref(), revision);
        let copy = deleted.clone();
        assert_eq!(format!("{copy:?}"), format!("{deleted:?}"));
    }
}

#[test]
fn an_object_without_a_name_is_returned_in_the_error() {
    let nameless = ConfigMap::default();
    let error = Object::new(nameless.clone()).unwrap_err();
    assert_eq!(*error.0, nameless);
    assert_eq!(
        error.to_string(),
        "an object without metadata.name has no key"
    );
}
