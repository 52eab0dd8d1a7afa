//! Reads what identifies an object where it stands as API servers write it: without white space, and what
//! is read without escapes.
//!
//! Of what it passes over it sees structure alone, which takes less than half of the time of a parser:
//! managed fields are a quarter of a pod. Whether that is JSON shows when somebody asks for the object.

use std::borrow::Cow;

use memchr::memchr2;

use crate::{
    object::{Identity, IdentityMetadata, Pairs},
    transport::value_end,
};

/// The identity of an object whose metadata begin there; `None` if anything in them is unusual, so that a
/// parser has to say what it is.
pub(super) fn identity(json: &[u8], at: usize) -> Option<Identity<'_>> {
    let mut rest = Rest(json.get(at..)?);
    let mut metadata = IdentityMetadata::default();
    let mut seen = Seen::default();
    rest.members(|key, rest| {
        match key {
            "name" => metadata.name = seen.first(0, rest.text()?)?.into(),
            "namespace" => metadata.namespace = Some(seen.first(1, rest.text()?)?.into()),
            "uid" => metadata.uid = seen.first(2, rest.text()?)?.into(),
            "resourceVersion" => metadata.resource_version = seen.first(3, rest.text()?)?.into(),
            "labels" => metadata.labels = seen.first(4, rest.labels()?)?,
            "annotations" => metadata.annotations = Some(seen.first(5, rest.nested()?)?),
            "managedFields" => metadata.managed_fields = Some(seen.first(6, rest.nested()?)?),
            _ => rest.value().map(drop)?,
        }
        Some(())
    })?;
    Some(Identity { metadata })
}

/// Few objects have more; else there is another allocation.
const LABELS: usize = 16;

/// Which members have come.
#[derive(Default)]
struct Seen([bool; 7]);

impl Seen {
    /// The value of a member that has not come before: which of two counts is not decided here.
    fn first<T>(&mut self, member: usize, value: T) -> Option<T> {
        let again = std::mem::replace(self.0.get_mut(member)?, true);
        (!again).then_some(value)
    }
}

/// What has not been read. Every method takes what it reads off it, or `None` if that is unusual.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// An object, whose values are left to be read after their keys.
    fn members(&mut self, mut read: impl FnMut(&'a str, &mut Self) -> Option<()>) -> Option<()> {
        self.byte(b'{')?;
        if self.byte(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.text()?;
            self.byte(b':')?;
            read(key, self)?;
            if self.byte(b',').is_none() {
                return self.byte(b'}');
            }
        }
    }

    fn labels(&mut self) -> Option<Pairs<'a>> {
        let mut pairs = Vec::with_capacity(LABELS);
        self.members(|key, rest| {
            pairs.push((Cow::Borrowed(key), Cow::Borrowed(rest.text()?)));
            Some(())
        })?;
        Some(Pairs(pairs))
    }

    /// A text without escapes.
    fn text(&mut self) -> Option<&'a str> {
        self.byte(b'"')?;
        let end = memchr2(b'"', b'\\', self.0)?;
        let (text, rest) = self.0.split_at(end);
        // JSON has control characters as escapes only.
        if rest[0] == b'\\' || text.iter().any(|&byte| byte < b' ') {
            return None;
        }
        self.0 = &rest[1..];
        std::str::from_utf8(text).ok()
    }

    /// An object or array, as it stands there.
    fn nested(&mut self) -> Option<&'a [u8]> {
        let value = self.value()?;
        matches!(value[0], b'{' | b'[').then_some(value)
    }

    /// Any value, as it stands there.
    fn value(&mut self) -> Option<&'a [u8]> {
        let end = value_end(self.0).filter(|&end| end > 0)?;
        let (value, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(value)
    }

    fn byte(&mut self, expected: u8) -> Option<()> {
        let (&byte, rest) = self.0.split_first()?;
        (byte == expected).then(|| self.0 = rest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(json: &str) -> Option<Identity<'_>> {
        Identity::begins_at(json.as_bytes(), 0)
    }

    /// Metadata as they may be written, and some as they may not.
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
        fn what_it_reads_a_parser_reads_as_well(json in metadata()) {
            if let Some(identity) = identity(json.as_bytes(), 0) {
                prop_assert_eq!(format!("{identity:?}"), format!("{:?}", parsed(&json).unwrap()));
            }
        }

        #[test]
        fn damaged_texts_are_read_as_by_a_parser_or_passed_over(
            json in metadata(), at in 0..300_usize, byte in any::<u8>()
        ) {
            let mut json = json.into_bytes();
            if let Some(place) = json.get_mut(at) {
                *place = byte;
            }
            if let (Some(identity), Some(parsed)) = (identity(&json, 0), Identity::begins_at(&json, 0)) {
                prop_assert_eq!(format!("{identity:?}"), format!("{parsed:?}"));
            }
        }
    }

    #[test]
    fn what_api_servers_write_is_usual() {
        let json = r#"{"kind":"Pod","metadata":{"name":"a","generateName":"a-","namespace":"b","uid":"c","resourceVersion":"7","generation":1,"labels":{"app":"é","x":""},"annotations":{"n":"\"{"},"ownerReferences":[{"uid":"no"}],"managedFields":[{"fieldsV1":{"f:a":{}}}]},"spec":{}}"#;
        let at = json.find(r#"{"name"#).unwrap();
        let identity = identity(json.as_bytes(), at).unwrap();
        assert_eq!(
            format!("{identity:?}"),
            format!("{:?}", Identity::begins_at(json.as_bytes(), at).unwrap())
        );
        assert_eq!(identity.name().unwrap().as_str(), "b/a");
        let managed_fields = identity.prunable()[1].1.unwrap();
        assert_eq!(managed_fields, br#"[{"fieldsV1":{"f:a":{}}}]"#);
    }

    #[test]
    fn what_is_unusual_is_left_to_a_parser() {
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
