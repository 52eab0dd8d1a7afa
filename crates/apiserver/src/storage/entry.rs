//! Represents one stored object: its serialized JSON, and the values that selectors compare.
//!
//! Guarantees:
//! - an entry is immutable, and readers share it. The JSON is serialized once, when the object is stored;
//! - the stored JSON does not contain `apiVersion` and `kind`, so responses in every API version use the same
//!   entry. Exceptions are a custom object that another version or a changed definition shows in another form, and
//!   a built-in object that is read in another version than that in which its kind is stored;
//! - equal objects have equal bytes, because members have the order of Go.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value, json};

#[cfg(feature = "persistence")]
use crate::conversion;
use crate::go_json::{append, to_text};
use crate::kinds::Kind;
use crate::object::Object;
use crate::resource::Resource;
use crate::schema::Model;
use crate::selector::{Fields, Labels, Selectable};
use crate::status::ApiError;
use crate::typed::{Ordered, ValueType};

use super::raw_members::raw_members;

/// Maximum size of an object's JSON in bytes, equal to that of a request body.
pub(crate) const OBJECT_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Text before the value of the metadata.
const METADATA: &str = "\"metadata\":";

/// Approximate memory of a stored object beyond its JSON and its key, in bytes. Measured with a million pods.
const OVERHEAD_BYTES: usize = 400;

/// An immutable stored object at one revision.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Key of the object: `namespace/name`, or `name` for a cluster-scoped object.
    pub(crate) key: Arc<str>,
    /// The revision in `metadata.resourceVersion`, or 0 if the object has none.
    pub(crate) revision: u64,
    pub(crate) labels: Labels,
    pub(crate) fields: Fields,
    /// The JSON of the object's members without `apiVersion`, `kind` and the enclosing braces.
    members: Box<[u8]>,
    /// Range in `members` of the value of `metadata`.
    metadata: Range<usize>,
    /// The rules of a definition to which the object has been adapted, if any.
    model: Option<Arc<Model>>,
    /// Whether the object has owner references, or is being deleted.
    is_concerned: bool,
}

impl Entry {
    /// Creates the entry of an object at `revision`, or without a revision if `revision` is 0.
    ///
    /// Adapts the object to the rules of the resource's definition, if the resource has one, and converts it to the
    /// version in which its kind is stored.
    pub(crate) fn new(
        resource: &Resource,
        key: Arc<str>,
        object: &Map<String, Value>,
        revision: u64,
    ) -> Entry {
        if resource.model.is_none() && resource.conversion.is_none() {
            return Entry::written(resource, resource.value_type(), key, object, revision);
        }
        let mut object = object.clone();
        let mut value_type = resource.value_type();
        if let Some(model) = &resource.model {
            model.show(model.stored_version(), &mut object);
        } else if let Some(conversion) = &resource.conversion {
            conversion.store(&mut object);
            value_type = conversion.stored_type();
        }
        Entry::written(resource, value_type, key, &object, revision)
    }

    /// Creates the entry of an object whose members are those of `value_type`.
    fn written(
        resource: &Resource,
        value_type: ValueType,
        key: Arc<str>,
        object: &Map<String, Value>,
        revision: u64,
    ) -> Entry {
        let metadata = revised(object.get("metadata"), revision);
        let mut members = Vec::with_capacity(512);
        let mut at = 0..0;
        let mut write = |name: &str, value: Ordered<'_>| {
            if !members.is_empty() {
                members.push(b',');
            }
            append(&mut members, name);
            members.push(b':');
            let start = members.len();
            append(&mut members, &value);
            start..members.len()
        };
        for (name, value) in Ordered::members(object, value_type) {
            match name {
                "apiVersion" | "kind" => {}
                "metadata" => at = write(name, value.with(&metadata)),
                _ => drop(write(name, value)),
            }
        }
        if at.is_empty() {
            at = write("metadata", Ordered::metadata(&metadata));
        }
        Entry {
            key,
            revision,
            labels: Labels::of(&metadata),
            fields: resource.fields_of(object),
            members: members.into(),
            metadata: at,
            model: resource.model.clone(),
            is_concerned: is_concerned(&metadata),
        }
    }

    /// Returns the object as readers of `resource` see it. Returns `None` if they see it as it is stored.
    ///
    /// Both differ if the object was stored in another version of its kind, or before a change of its
    /// definition. The view of a built-in object has the stored form's values for selectors, and can't be viewed
    /// again.
    pub(crate) fn viewed(&self, resource: &Resource) -> Option<Entry> {
        if let Some(conversion) = &resource.conversion {
            let mut object = self.parsed(resource);
            conversion.show(&mut object);
            let (key, shown) = (Arc::clone(&self.key), resource.value_type());
            let view = Entry::written(resource, shown, key, &object, self.revision);
            let fields = self.fields.clone();
            return Some(Entry { fields, ..view });
        }
        let model = resource.model.as_ref()?;
        let is_adapted = |own: &Arc<Model>| Arc::ptr_eq(own, model);
        if self.model.as_ref().is_some_and(is_adapted) {
            return None;
        }
        let mut object = self.parsed(resource);
        model.show(self.stored_version(model), &mut object);
        let (key, shown) = (Arc::clone(&self.key), resource.value_type());
        Some(Entry::written(resource, shown, key, &object, self.revision))
    }

    /// Checks that readers of `resource` can see the object without a webhook that converts it.
    ///
    /// # Errors
    ///
    /// Returns a 500 error if the object is stored in another version and the definition has such a webhook.
    pub(crate) fn check_readable(&self, resource: &Resource) -> Result<(), ApiError> {
        let Some(model) = &resource.model else {
            return Ok(());
        };
        resource.check_conversion(self.stored_version(model), &resource.kind.version)
    }

    /// Returns the version in which the object is stored. An object from a data directory counts as stored in the
    /// version in which `model` writes objects.
    fn stored_version<'a>(&'a self, model: &'a Model) -> &'a str {
        self.model
            .as_ref()
            .map_or(model, |own| own)
            .stored_version()
    }

    /// Returns whether `other`, which was written for `model`, is stored in the same version with the same bytes.
    pub(crate) fn is_same(&self, other: &Entry, model: Option<&Model>) -> bool {
        let is_same = |model| self.stored_version(model) == other.stored_version(model);
        self.members == other.members && model.is_none_or(is_same)
    }

    /// Creates an entry of the changed object `new` with the key of `self`.
    pub(crate) fn changed(&self, resource: &Resource, new: &Object, revision: u64) -> Arc<Entry> {
        let key = Arc::clone(&self.key);
        Arc::new(Entry::new(resource, key, new.members(), revision))
    }

    /// Returns the byte range of `metadata` in the stored JSON, and the stored JSON.
    #[cfg(feature = "persistence")]
    pub(crate) fn stored(&self) -> (Range<usize>, &[u8]) {
        (self.metadata.clone(), &self.members)
    }

    /// Restores an entry from the values that [`Entry::stored`] returned.
    ///
    /// Converts an object that is not in the version in which its kind is stored now. The JSON is written again,
    /// because earlier versions of this library wrote members in another order.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if the bytes are not an object with metadata and a revision.
    #[cfg(feature = "persistence")]
    pub(crate) fn restored(
        resource: &Resource,
        key: &str,
        members: &[u8],
        metadata: Range<usize>,
    ) -> Result<Entry, String> {
        let at = members.get(metadata.clone()).ok_or("it has no metadata")?;
        let meta: Value = serde_json::from_slice(at).map_err(|error| error.to_string())?;
        let revision = meta["resourceVersion"].as_str();
        let revision = revision.and_then(|revision| revision.parse().ok());
        let whole = [b"{", members, b"}"].concat();
        let mut object = serde_json::from_slice(&whole).map_err(|error| error.to_string())?;
        let revision = revision.ok_or("it has no revision")?;
        if resource.conversion.is_some() {
            return Ok(Entry::new(resource, key.into(), &object, revision));
        }
        // An earlier version can have stored fewer members.
        crate::typed::complete(&resource.kind, &mut object);
        let upgraded = conversion::upgraded(&resource.kind, &object);
        let object = upgraded.as_ref().unwrap_or(&object);
        let restored = Entry::written(
            resource,
            resource.value_type(),
            key.into(),
            object,
            revision,
        );
        Ok(Entry {
            model: None,
            ..restored
        })
    }

    pub(crate) fn at_revision(&self, revision: u64) -> Entry {
        let mut members = Vec::with_capacity(self.members.len() + 8);
        members.extend_from_slice(&self.members[..self.metadata.start]);
        members.push(b'{');
        for (at, (name, value)) in raw_members(self.metadata()).into_iter().enumerate() {
            if at > 0 {
                members.push(b',');
            }
            append(&mut members, &*name);
            members.push(b':');
            if name == "resourceVersion" {
                append(&mut members, &revision.to_string());
            } else {
                members.extend_from_slice(value.as_bytes());
            }
        }
        members.push(b'}');
        let end = members.len();
        members.extend_from_slice(&self.members[self.metadata.end..]);
        Entry {
            key: Arc::clone(&self.key),
            revision,
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            members: members.into(),
            metadata: self.metadata.start..end,
            model: self.model.clone(),
            is_concerned: self.is_concerned,
        }
    }

    /// Returns whether garbage collection may concern the object itself: it has owner references, or is being deleted.
    pub(crate) fn is_concerned(&self) -> bool {
        self.is_concerned
    }

    pub(crate) fn is_too_large(&self) -> bool {
        let length = self.members.len();
        length > OBJECT_BYTES_MAX && length - self.escape_bytes() > OBJECT_BYTES_MAX
    }

    /// Returns by how many bytes the object grows because Go escapes characters for HTML, which clients send as they are.
    fn escape_bytes(&self) -> usize {
        let escapes = self.members.windows(6).map(|bytes| match bytes {
            br"\u003c" | br"\u003e" | br"\u0026" => 5,
            br"\u2028" | br"\u2029" => 3,
            _ => 0,
        });
        escapes.sum()
    }

    /// Returns the approximate memory of the entry in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.members.len() + self.key.len() + OVERHEAD_BYTES
    }

    /// Returns whether `status.phase`, which must be a selectable field of the resource, has this value.
    pub(crate) fn is_in_phase(&self, resource: &Resource, phase: &str) -> bool {
        let fields = resource.strategy.fields;
        fields.value_of(&self.fields, "status.phase") == Some(phase)
    }

    pub(crate) fn selectable(&self) -> Selectable<'_> {
        Selectable {
            key: &self.key,
            labels: &self.labels,
            fields: &self.fields,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.selectable().name()
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.selectable().namespace()
    }

    /// Returns the JSON of the object's `metadata`.
    pub(crate) fn metadata(&self) -> &[u8] {
        &self.members[self.metadata.clone()]
    }

    /// Appends the JSON of the object to `out`, with the `apiVersion` and `kind` of `resource`.
    pub(crate) fn write_object(&self, resource: &Resource, out: &mut Vec<u8>) {
        let type_meta = &resource.type_meta;
        out.reserve(type_meta.len() + self.members.len() + 3);
        out.push(b'{');
        let before_metadata = self.metadata.start - METADATA.len();
        let written = if resource.kind.custom && before_metadata > 0 {
            self.write_sorted_head(&resource.kind, before_metadata, out);
            before_metadata
        } else {
            out.extend_from_slice(type_meta.as_bytes());
            out.push(b',');
            0
        };
        out.extend_from_slice(&self.members[written..]);
        out.push(b'}');
    }

    /// Appends `apiVersion`, `kind` and the first `end` bytes of the stored JSON to `out`, in the order of the names.
    ///
    /// The members of a custom object are in this order, so those before `metadata` can be before `kind` too.
    fn write_sorted_head(&self, kind: &Kind, end: usize, out: &mut Vec<u8>) {
        let object = [b"{", &self.members[..end - 1], b"}"].concat();
        let type_meta = [to_text(&kind.api_version()), to_text(&kind.kind)];
        let mut members: BTreeMap<_, _> = raw_members(&object).into_iter().collect();
        members.insert("apiVersion".into(), &type_meta[0]);
        members.insert("kind".into(), &type_meta[1]);
        for (name, value) in members {
            append(out, &*name);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
            out.push(b',');
        }
    }

    /// Appends the JSON of the object to `out`, without `apiVersion` and `kind`.
    pub(crate) fn write_item(&self, out: &mut Vec<u8>) {
        out.reserve(self.members.len() + 2);
        out.push(b'{');
        out.extend_from_slice(&self.members);
        out.push(b'}');
    }

    /// Appends the object's metadata to `out` as the JSON of a `PartialObjectMetadata`.
    pub(crate) fn write_metadata(&self, resource: &Resource, out: &mut Vec<u8>) {
        out.extend_from_slice(
            br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#,
        );
        if resource.kind.custom {
            // The metadata of a custom object are sorted.
            let metadata: Value = serde_json::from_slice(self.metadata())
                .expect("the metadata of an entry was written as JSON");
            append(out, &Ordered::metadata(&metadata));
        } else {
            out.extend_from_slice(self.metadata());
        }
        out.push(b'}');
    }

    /// Appends the `metadata` of this entry to `out`, as the only member of a JSON object.
    pub(crate) fn write_metadata_item(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"metadata":"#);
        out.extend_from_slice(self.metadata());
        out.push(b'}');
    }

    /// Returns the parsed object as readers of `resource` see it, with its `apiVersion` and `kind`.
    pub(crate) fn object(&self, resource: &Resource) -> Map<String, Value> {
        match self.viewed(resource) {
            Some(view) => view.parsed(resource),
            None => self.parsed(resource),
        }
    }

    fn parsed(&self, resource: &Resource) -> Map<String, Value> {
        let mut bytes = Vec::new();
        self.write_object(resource, &mut bytes);
        serde_json::from_slice(&bytes).expect("an entry was written as JSON")
    }
}

fn is_concerned(metadata: &Value) -> bool {
    let is_set = |member: &str| metadata.get(member).is_some_and(|value| !value.is_null());
    is_set("ownerReferences") || is_set("deletionTimestamp")
}

/// Returns `metadata` with `revision` as `resourceVersion`, or without this member if `revision` is 0.
fn revised(metadata: Option<&Value>, revision: u64) -> Value {
    let mut metadata = metadata
        .filter(|value| value.is_object())
        .cloned()
        .unwrap_or(json!({}));
    if let Some(members) = metadata.as_object_mut() {
        if revision == 0 {
            members.remove("resourceVersion");
        } else {
            members.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        }
    }
    metadata
}
