//! Turns a frame's bytes into one [`Object`].
//!
//! Every object is decoded once, however many handlers and informer handles there are, and on its
//! own: one that does not decode, or whose transform fails, becomes a broken handle with the error
//! in it, and the objects around it are not touched.

use std::{
    any::TypeId,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use bytes::Bytes;
use kube_core::Resource;
use serde::de::DeserializeOwned;

use crate::object::{self, DecodeError, Head, Object, ObjectName, ResourceVersion};

/// A change made to every object before anything else sees it.
///
/// # Errors
/// The text becomes part of the object's [`DecodeError`].
#[doc(alias = "TransformFunc")]
pub type Transform<K> = Arc<dyn Fn(&mut K) -> Result<(), String> + Send + Sync>;

/// What one informer does to turn bytes into objects.
pub(crate) struct Decoder<K> {
    transform: Option<Transform<K>>,
    /// `"apiVersion":…,"kind":…,`: the items of a list don't say it, and a dynamic object has
    /// nowhere else to know it from.
    stamp: Option<String>,
}

impl<K> Clone for Decoder<K> {
    fn clone(&self) -> Self {
        Self {
            transform: self.transform.clone(),
            stamp: self.stamp.clone(),
        }
    }
}

/// What became of one object's bytes.
pub(crate) enum Decoded<K> {
    /// A handle, live or broken.
    Object(Object<K>),
    /// Not even name and namespace could be read, so there is nothing to keep it under.
    Unreadable(DecodeError),
}

impl<K> Decoder<K>
where
    K: Resource + DeserializeOwned + 'static,
    K::DynamicType: 'static,
{
    pub(crate) fn new(dyntype: &K::DynamicType, transform: Option<Transform<K>>) -> Self {
        let is_dynamic = TypeId::of::<K::DynamicType>() != TypeId::of::<()>();
        let stamp = is_dynamic.then(|| {
            let (api_version, kind) = (K::api_version(dyntype), K::kind(dyntype));
            let text = |value: &str| serde_json::Value::from(value).to_string();
            format!(
                r#""apiVersion":{},"kind":{}"#,
                text(&api_version),
                text(&kind)
            )
        });
        Self { transform, stamp }
    }

    /// Decodes an item of a list.
    pub(crate) fn item(&self, bytes: &Bytes) -> Decoded<K> {
        let Some(stamp) = &self.stamp else {
            return self.object(bytes);
        };
        let kind: Result<NamesKind, _> = serde_json::from_slice(bytes);
        if !matches!(kind, Ok(NamesKind { kind: None })) {
            return self.object(bytes);
        }
        let at = bytes
            .iter()
            .position(|&byte| byte == b'{')
            .unwrap_or_default()
            + 1;
        let empty = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
        let mut stamped = Vec::with_capacity(bytes.len() + stamp.len() + 1);
        stamped.extend_from_slice(&bytes[..at]);
        stamped.extend_from_slice(stamp.as_bytes());
        stamped.extend_from_slice(if empty { b"" } else { b"," });
        stamped.extend_from_slice(&bytes[at..]);
        self.object(&stamped)
    }

    /// Decodes the object of an event.
    pub(crate) fn object(&self, bytes: &[u8]) -> Decoded<K> {
        let mut object = match serde_json::from_slice::<K>(bytes) {
            Ok(object) => object,
            Err(error) => {
                let (field, reason) = locate::<K>(bytes, &error);
                return broken(bytes, field, reason);
            }
        };
        // Before the transform, which may drop what nobody reads, and is of no account for order.
        let Some((name, revision)) = object::identity(&object) else {
            return broken(bytes, "metadata.name".to_owned(), "no name".to_owned());
        };
        if let Some(transform) = &self.transform {
            let transformed = catch_unwind(AssertUnwindSafe(|| transform(&mut object)));
            if let Err(reason) = transformed.unwrap_or_else(|_| Err("it panicked".to_owned())) {
                return broken(
                    bytes,
                    ".".to_owned(),
                    format!("the transform failed: {reason}"),
                );
            }
        }
        Decoded::Object(Object::identified(name, revision, object))
    }
}

/// Whether an item says of which kind it is.
#[derive(serde::Deserialize)]
struct NamesKind {
    kind: Option<serde::de::IgnoredAny>,
}

/// The revision of a bookmark, or of any other object; `None` if there is none to read.
pub(crate) fn revision(bytes: &[u8]) -> Option<ResourceVersion> {
    let head: Head = serde_json::from_slice(bytes).ok()?;
    let revision = head.revision();
    (!revision.is_unset()).then_some(revision)
}

fn broken<K>(bytes: &[u8], field: String, reason: String) -> Decoded<K> {
    let head: Head = serde_json::from_slice(bytes).unwrap_or_default();
    let name = &head.metadata.name;
    if name.is_empty() {
        return Decoded::Unreadable(DecodeError::new(None, field, reason));
    }
    let name = ObjectName::new(head.metadata.namespace.as_deref(), name);
    let error = DecodeError::new(Some(name.clone()), field, reason);
    Decoded::Object(Object::from_broken(name, &head, error))
}

/// Where an object does not fit its type, in words that quote nothing of it: serde's own messages
/// repeat the offending value, which may be a secret.
fn locate<K: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> (String, String) {
    use serde_json::error::Category;

    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let field = match serde_path_to_error::deserialize::<_, K>(&mut deserializer) {
        Err(located) => located.path().to_string(),
        Ok(_) => ".".to_owned(),
    };
    let what = match error.classify() {
        Category::Data => "a value of another type than expected, or a missing field,",
        Category::Eof => "the JSON ends early",
        Category::Syntax | Category::Io => "no valid JSON",
    };
    let place = format!("{what} (line {}, column {})", error.line(), error.column());
    (field, place)
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn an_item_that_names_its_kind_keeps_it_wherever_it_stands() {
        let widget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
        let decoder = Decoder::<DynamicObject>::new(&widget, None);
        for json in [
            r#"{"apiVersion":"x/v2","kind":"Other","metadata":{"name":"a"}}"#,
            r#"{"metadata":{"name":"a"},"kind":"Other","apiVersion":"x/v2"}"#,
        ] {
            let types = decode(&decoder, json)
                .live()
                .unwrap()
                .types
                .clone()
                .unwrap();
            assert_eq!(
                (types.api_version.as_str(), types.kind.as_str()),
                ("x/v2", "Other")
            );
        }
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
}
