//! Defines the types of `metadata`, which objects of all kinds have.

use serde_json::Value;

use super::atom::{Atom, Fields, Fixed, Identity, Keys, List, Map, Scalar, Type};

const TEXT: Fixed = Fixed::Scalar(Scalar::Text);
const NUMBER: Fixed = Fixed::Scalar(Scalar::Numeric);
const TIME: Fixed = Fixed::Scalar(Scalar::Any);

/// `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
pub(super) static OBJECT_META: Fixed = Fixed::Struct(&[
    ("annotations", Fixed::Map(&TEXT)),
    ("creationTimestamp", TIME),
    ("deletionGracePeriodSeconds", NUMBER),
    ("deletionTimestamp", TIME),
    ("finalizers", Fixed::Set(&TEXT)),
    ("generateName", TEXT),
    ("generation", NUMBER),
    ("labels", Fixed::Map(&TEXT)),
    ("managedFields", Fixed::Atomic(&MANAGED_FIELDS_ENTRY)),
    ("name", TEXT),
    ("namespace", TEXT),
    ("ownerReferences", Fixed::Keyed(&["uid"], &OWNER_REFERENCE)),
    ("resourceVersion", TEXT),
    ("selfLink", TEXT),
    ("uid", TEXT),
]);

/// The type of `apiVersion` and `kind`.
pub(super) static TYPE_META: Fixed = TEXT;

static OWNER_REFERENCE: Fixed = Fixed::AtomicStruct(&[
    ("apiVersion", Fixed::RequiredText),
    ("blockOwnerDeletion", Fixed::Scalar(Scalar::Boolean)),
    ("controller", Fixed::Scalar(Scalar::Boolean)),
    ("kind", Fixed::RequiredText),
    ("name", Fixed::RequiredText),
    ("uid", Fixed::RequiredText),
]);

static MANAGED_FIELDS_ENTRY: Fixed = Fixed::Struct(&[
    ("apiVersion", TEXT),
    ("fieldsType", TEXT),
    ("fieldsV1", Fixed::Deduced),
    ("manager", TEXT),
    ("operation", TEXT),
    ("subresource", TEXT),
    ("time", TIME),
]);

static EMPTY_TEXT: Value = Value::String(String::new());

impl Fixed {
    pub(super) fn default(&self) -> Option<&'static Value> {
        matches!(self, Fixed::RequiredText).then_some(&EMPTY_TEXT)
    }

    pub(super) fn atom(&'static self) -> Atom<'static> {
        let list = |item, identity| Atom {
            list: Some(List {
                item: Type::Fixed(item),
                identity,
            }),
            ..Atom::default()
        };
        let map = |is_atomic, member, fields| Atom {
            map: Some(Map {
                is_atomic,
                member,
                fields,
            }),
            ..Atom::default()
        };
        match self {
            Fixed::Scalar(scalar) => Atom {
                scalar: Some(*scalar),
                ..Atom::default()
            },
            Fixed::RequiredText => TYPE_META.atom(),
            Fixed::Atomic(item) => list(item, Identity::Atomic),
            Fixed::Set(item) => list(item, Identity::Value),
            Fixed::Keyed(keys, item) => list(item, Identity::Keys(Keys::Fixed(keys))),
            Fixed::Map(member) => map(false, Some(Type::Fixed(member)), Fields::None),
            Fixed::Struct(fields) => map(false, None, Fields::Fixed(fields)),
            Fixed::AtomicStruct(fields) => map(true, None, Fields::Fixed(fields)),
            Fixed::Deduced => map(false, Some(Type::Deduced), Fields::None),
        }
    }
}
