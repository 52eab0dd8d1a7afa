//! Turns a frame's bytes into one [`Object`].
//!
//! Every object is decoded once, however many handlers and informer handles there are, and on its
//! own: one that does not decode, or whose transform fails, becomes a broken handle with the error
//! in it, and the objects around it are not touched.

use std::{
    any::TypeId,
    borrow::Cow,
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
    expected: Arc<Expected>,
}

/// The kind that every object must be of.
struct Expected {
    api_version: String,
    kind: String,
    /// Metadata alone is asked for, which has a kind of its own; a server that can't do that sends
    /// the whole object.
    metadata_only: bool,
    /// How an object of the kind begins, in the two orders that API servers write.
    beginnings: [String; 2],
    /// `"apiVersion":…,"kind":…`: the items of a list don't say it, and a dynamic object has nowhere
    /// else to know it from.
    stamp: Option<String>,
}

impl<K> Clone for Decoder<K> {
    fn clone(&self) -> Self {
        Self {
            transform: self.transform.clone(),
            expected: Arc::clone(&self.expected),
        }
    }
}

/// What became of one object's bytes.
pub(crate) enum Decoded<K> {
    /// A handle, live or broken.
    Object(Object<K>),
    /// Not even name and namespace could be read, so there is nothing to keep it under.
    Unreadable(DecodeError),
    /// An object of another kind, which has no place in this store.
    OtherKind(OtherKind),
}

/// An object that says it is of another kind than was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherKind {
    /// Its name, if it has one.
    pub(crate) name: Option<ObjectName>,
    /// What it says it is.
    pub(crate) found: String,
}

impl<K> Decoded<K> {
    fn other(bytes: &[u8], found: String) -> Self {
        let name = name(bytes);
        Self::OtherKind(OtherKind { name, found })
    }
}

impl<K> Decoder<K>
where
    K: Resource + DeserializeOwned + 'static,
    K::DynamicType: 'static,
{
    pub(crate) fn new(dyntype: &K::DynamicType, transform: Option<Transform<K>>) -> Self {
        let (api_version, kind) = (K::api_version(dyntype), K::kind(dyntype));
        let text = |value: &str| serde_json::Value::from(value).to_string();
        let (api_version_json, kind_json) = (text(&api_version), text(&kind));
        let stamp = format!(r#""apiVersion":{api_version_json},"kind":{kind_json}"#);
        let beginnings = [
            format!(r#"{{"kind":{kind_json},"apiVersion":{api_version_json}"#),
            format!("{{{stamp}"),
        ];
        let is_dynamic = TypeId::of::<K::DynamicType>() != TypeId::of::<()>();
        let expected = Expected {
            api_version: api_version.into_owned(),
            kind: kind.into_owned(),
            metadata_only: K::metadata_api(),
            beginnings,
            stamp: is_dynamic.then_some(stamp),
        };
        Self {
            transform,
            expected: Arc::new(expected),
        }
    }

    /// Decodes an item of a list.
    pub(crate) fn item(&self, bytes: &Bytes) -> Decoded<K> {
        // Items of built-in kinds name no kind, and begin like this; looking for one would take a
        // good part of the time that decoding takes.
        if self.expected.stamp.is_none() && bytes.starts_with(br#"{"metadata":"#) {
            return self.unless_other(self.of_kind(bytes), bytes);
        }
        self.object(bytes)
    }

    /// What was decoded without a look at its kind, which may be why it is no good.
    fn unless_other(&self, decoded: Decoded<K>, bytes: &[u8]) -> Decoded<K> {
        match &decoded {
            Decoded::Object(object) if object.broken().is_none() => decoded,
            _ => match self.expected.find(bytes) {
                Named::Other(found) => Decoded::other(bytes, found),
                Named::Expected | Named::Nothing => decoded,
            },
        }
    }

    /// Decodes the object of an event.
    pub(crate) fn object(&self, bytes: &[u8]) -> Decoded<K> {
        match self.expected.find(bytes) {
            Named::Expected => self.of_kind(bytes),
            Named::Nothing => match &self.expected.stamp {
                Some(stamp) => self.of_kind(&stamped(bytes, stamp)),
                None => self.of_kind(bytes),
            },
            Named::Other(found) => Decoded::other(bytes, found),
        }
    }

    fn of_kind(&self, bytes: &[u8]) -> Decoded<K> {
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

/// What an object says of its kind.
enum Named {
    Expected,
    /// It says nothing, or nothing that can be read.
    Nothing,
    Other(String),
}

impl Expected {
    fn find(&self, bytes: &[u8]) -> Named {
        let begins = |beginning: &String| bytes.starts_with(beginning.as_bytes());
        if self.beginnings.iter().any(begins) {
            return Named::Expected;
        }
        let Ok(types) = serde_json::from_slice::<Types<'_>>(bytes) else {
            return Named::Nothing;
        };
        if types.kind.is_none() && types.api_version.is_none() {
            return Named::Nothing;
        }
        let (kind, api_version) = (
            types.kind.unwrap_or_default(),
            types.api_version.unwrap_or_default(),
        );
        let metadata_alone = self.metadata_only
            && kind == "PartialObjectMetadata"
            && api_version.starts_with("meta.k8s.io/");
        if metadata_alone || (kind == self.kind && api_version == self.api_version) {
            return Named::Expected;
        }
        let found = match (&*api_version, &*kind) {
            (_, "") => format!("{api_version} without kind"),
            ("", _) => format!("{kind} without API version"),
            _ => format!("{api_version} {kind}"),
        };
        Named::Other(found.trim_start().chars().take(KIND_CHARS).collect())
    }
}

/// So much of what an object says of its kind is repeated in an error.
const KIND_CHARS: usize = 128;

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Types<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
}

/// The same object with its kind written into it.
fn stamped(bytes: &[u8], stamp: &str) -> Vec<u8> {
    let brace = bytes.iter().position(|&byte| byte == b'{');
    let at = brace.unwrap_or_default() + 1;
    let (before, behind) = bytes.split_at(at.min(bytes.len()));
    let empty = behind.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let mut stamped = Vec::with_capacity(bytes.len() + stamp.len() + 1);
    stamped.extend_from_slice(before);
    stamped.extend_from_slice(stamp.as_bytes());
    stamped.extend_from_slice(if empty { b"" } else { b"," });
    stamped.extend_from_slice(behind);
    stamped
}

/// The name of an object of whatever kind.
fn name(bytes: &[u8]) -> Option<ObjectName> {
    serde_json::from_slice::<Head>(bytes).ok()?.name()
}

/// The revision of a bookmark, or of any other object; `None` if there is none to read.
pub(crate) fn revision(bytes: &[u8]) -> Option<ResourceVersion> {
    let head: Head = serde_json::from_slice(bytes).ok()?;
    let revision = head.revision();
    (!revision.is_unset()).then_some(revision)
}

fn broken<K>(bytes: &[u8], field: String, reason: String) -> Decoded<K> {
    let head: Head = serde_json::from_slice(bytes).unwrap_or_default();
    let Some(name) = head.name() else {
        return Decoded::Unreadable(DecodeError::new(None, field, reason));
    };
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
}
