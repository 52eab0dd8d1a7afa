//! Reads an object's identity ([`Identity`]) without a JSON parser.
//!
//! The identity is the name, namespace, UID, resource version, labels, annotations and managed fields.
//!
//! The JSON must have the layout that API servers write: it has no white space between tokens, and no escapes
//! in the field names, name, namespace, UID, resource version and labels. For any other layout, the result is
//! `None`, and the caller must use a parser.
//!
//! The module does not validate the values of the annotations, of the managed fields, and of the metadata
//! outside the identity. It reads only the quotes and brackets of these values, to find where they end. The
//! values are validated later, when the object is decoded.

use std::borrow::Cow;

use super::super::{Identity, IdentityMetadata, Pairs};
use crate::json::CompactReader;

/// Reads an object's identity from the value of `metadata`, which begins at byte `at`.
///
/// Returns `None` if the text does not have the layout that API servers write.
pub(super) fn identity(json: &[u8], at: usize) -> Option<Identity<'_>> {
    let mut metadata = IdentityMetadata::default();
    let mut seen = Seen::default();
    CompactReader::new(json.get(at..)?).members(|key, rest| {
        match key {
            "name" => metadata.name = seen.first(0, rest.text()?)?.into(),
            "namespace" => metadata.namespace = Some(seen.first(1, rest.text()?)?.into()),
            "uid" => metadata.uid = seen.first(2, rest.text()?)?.into(),
            "resourceVersion" => metadata.resource_version = seen.first(3, rest.text()?)?.into(),
            "labels" => metadata.labels = seen.first(4, labels(rest)?)?,
            "annotations" => metadata.annotations = Some(seen.first(5, rest.nested()?)?),
            "managedFields" => metadata.managed_fields = Some(seen.first(6, rest.nested()?)?),
            _ => rest.value().map(drop)?,
        }
        Some(())
    })?;
    Some(Identity { metadata })
}

/// Initial capacity of the vector for an object's labels; most objects have fewer.
const LABELS: usize = 16;

/// One flag for each field that [`identity`] reads, to detect duplicate fields.
#[derive(Default)]
struct Seen([bool; 7]);

impl Seen {
    /// Records that field `member` was read; returns `None` if it was read before.
    fn first<T>(&mut self, member: usize, value: T) -> Option<T> {
        let again = std::mem::replace(self.0.get_mut(member)?, true);
        (!again).then_some(value)
    }
}

fn labels<'a>(reader: &mut CompactReader<'a>) -> Option<Pairs<'a>> {
    let mut pairs = Vec::with_capacity(LABELS);
    reader.members(|key, value| {
        pairs.push((Cow::Borrowed(key), Cow::Borrowed(value.text()?)));
        Some(())
    })?;
    Some(Pairs(pairs))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(json: &[u8], at: usize) -> Option<Identity<'_>> {
        super::super::identity_at(json, at, false)
    }

    /// Generates the JSON text of an object's metadata. Some values have a wrong type for their field.
    fn metadata() -> impl Strategy<Value = String> {
        let keys =
            "(name|namespace|uid|resourceVersion|labels|annotations|managedFields|x|na\\\\u006de)";
        let texts = "\"([a-z{}:,]{0,9}|é|\\\\\"|\\\\u0041)\"";
        let flat = "\\{(\"[ab]\":\"[xy]{0,70}\"(,\"[ab]\":(\"[xy]\"|1))?)?\\}";
        let nested =
            "(\\{\"a\":\\[\\{\"b\":\"\\}\"\\},1,null\\]\\}|\\[\\]|\\[\\{\"f:a\":\\{\\}\\}\\])";
        let values = format!("({texts}|{texts}|{flat}|{flat}|{nested}|null|true|-1\\.5e3)");
        let members = format!("\"{keys}\":{values}");
        let text = format!("\\{{({members}(,{members}){{0,8}})?\\}} ?(,\"spec\":\\{{)?");
        proptest::string::string_regex(&text).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn an_identity_read_in_place_equals_that_of_a_parser(json in metadata()) {
            if let Some(identity) = identity(json.as_bytes(), 0) {
                prop_assert_eq!(format!("{identity:?}"), format!("{:?}", parsed(json.as_bytes(), 0).unwrap()));
            }
        }

        #[test]
        fn damaged_metadata_are_read_as_by_a_parser_or_left_to_it(
            json in metadata(), at in 0..300_usize, byte in any::<u8>()
        ) {
            let mut json = json.into_bytes();
            if let Some(place) = json.get_mut(at) {
                *place = byte;
            }
            if let (Some(identity), Some(parsed)) = (identity(&json, 0), parsed(&json, 0)) {
                prop_assert_eq!(format!("{identity:?}"), format!("{parsed:?}"));
            }
        }
    }

    #[test]
    fn metadata_of_api_servers_are_read_in_place() {
        let json = r#"{"kind":"Pod","metadata":{"name":"a","generateName":"a-","namespace":"b","uid":"c","resourceVersion":"7","generation":1,"labels":{"app":"é","x":""},"annotations":{"n":"\"{"},"ownerReferences":[{"uid":"no"}],"managedFields":[{"fieldsV1":{"f:a":{}}}]},"spec":{}}"#;
        let at = json.find(r#"{"name"#).unwrap();
        let identity = identity(json.as_bytes(), at).unwrap();
        assert_eq!(
            format!("{identity:?}"),
            format!("{:?}", parsed(json.as_bytes(), at).unwrap())
        );
        assert_eq!(
            (
                &*identity.metadata.name,
                identity.metadata.namespace.as_deref()
            ),
            ("a", Some("b"))
        );
        let managed_fields = identity.prunable()[1].1.unwrap();
        assert_eq!(managed_fields, br#"[{"fieldsV1":{"f:a":{}}}]"#);
    }

    #[test]
    fn unusual_metadata_are_left_to_a_parser() {
        for json in [
            "",
            "[]",
            r#" {"name":"a"}"#,
            r#"{"name": "a"}"#,
            r#"{"name":"a","name":"a"}"#,
            r#"{"name":"\u0061"}"#,
            r#"{"name":null}"#,
            "{\"name\":\"a\tb\"}",
            r#"{"name":"a","labels":null}"#,
            r#"{"name":"a","labels":{"a":1}}"#,
            r#"{"name":"a","managedFields":null}"#,
            r#"{"name":"a","annotations":"no"}"#,
            r#"{"name":"a","x":}"#,
            r#"{"name":"a",}"#,
            r#"{"name":"a""#,
        ] {
            assert!(identity(json.as_bytes(), 0).is_none(), "{json}");
        }
    }
}
