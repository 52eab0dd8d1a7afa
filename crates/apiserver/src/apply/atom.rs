//! Defines the types by which values are merged: which lists and objects have one owner, and what identifies an item.

use std::borrow::Cow;

use serde_json::Value;

use crate::schema::Schema;
use crate::typed::ValueType;

/// The type of a value. A copy costs nothing, and no method allocates memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type<'a> {
    /// Any value: objects are maps, and lists have one owner (`__untyped_deduced_` in Kubernetes).
    Deduced,
    /// Any value, which has one owner (`__untyped_atomic_`).
    Untyped,
    /// A type of Kubernetes itself.
    Fixed(&'static Fixed),
    /// A part of a built-in kind.
    Builtin(ValueType),
    /// A node of the schema of a custom kind.
    Structural(Node<'a>),
}

/// A type that does not change.
#[derive(Debug)]
pub(crate) enum Fixed {
    Scalar(Scalar),
    /// A text whose default is empty.
    RequiredText,
    /// A list with one owner.
    Atomic(&'static Fixed),
    /// A list whose items are identified by their values.
    Set(&'static Fixed),
    /// A list whose items are identified by the values of members.
    Keyed(&'static [&'static str], &'static Fixed),
    /// An object whose members have owners.
    Map(&'static Fixed),
    Struct(&'static [(&'static str, Fixed)]),
    /// An object with one owner.
    AtomicStruct(&'static [(&'static str, Fixed)]),
    /// Any value.
    Deduced,
}

/// A node of the schema of a custom kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    pub(super) schema: &'a Schema,
    /// Whether a node above keeps unknown members. In the types of server-side apply, all nodes below then do too.
    pub(super) preserves: bool,
    /// Whether the value has `apiVersion`, `kind` and `metadata`.
    pub(super) has_meta: bool,
}

/// What a type accepts. At least one of the members is set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Atom<'a> {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<List<'a>>,
    pub(super) map: Option<Map<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    Text,
    Boolean,
    /// Any value that is no list, object or null.
    Any,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct List<'a> {
    pub(super) item: Type<'a>,
    pub(super) identity: Identity<'a>,
}

/// What identifies an item of a list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity<'a> {
    /// Nothing: the list has one owner.
    Atomic,
    /// Its value.
    Value,
    /// The values of these members.
    Keys(Keys<'a>),
}

/// Names of the members that identify a list item.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keys<'a> {
    Owned(&'a [String]),
    /// The names, separated by commas.
    Joined(&'static str),
    Fixed(&'static [&'static str]),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Map<'a> {
    /// Whether the object has one owner.
    pub(super) is_atomic: bool,
    /// The type of the members that are no fields, or `None` if there are no other members.
    pub(super) member: Option<Type<'a>>,
    pub(super) fields: Fields<'a>,
}

/// The members that a type has by name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fields<'a> {
    None,
    Fixed(&'static [(&'static str, Fixed)]),
    Builtin(ValueType),
    Structural(Node<'a>),
}

/// Which parts of an atom apply to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The value does not select a part, as null: the first of map, scalar and list applies.
    All,
    Scalar,
    List,
    Map,
}

/// The part of an atom by which a value is treated.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handled<'a> {
    Scalar(Scalar),
    List(List<'a>),
    Map(Map<'a>),
}

// === impl Type ===

impl<'a> Type<'a> {
    pub(super) fn atom(self) -> Atom<'a> {
        match self {
            Type::Deduced => Atom::of_any(Type::Deduced, false),
            Type::Untyped => Atom::of_any(Type::Untyped, true),
            Type::Fixed(fixed) => fixed.atom(),
            Type::Builtin(value_type) => value_type.atom(),
            Type::Structural(node) => node.atom(),
        }
    }
}

// === impl Atom ===

impl<'a> Atom<'a> {
    fn of_any(member: Type<'a>, is_atomic: bool) -> Atom<'a> {
        Atom {
            scalar: Some(Scalar::Any),
            list: Some(List {
                item: Type::Untyped,
                identity: Identity::Atomic,
            }),
            map: Some(Map {
                is_atomic,
                member: Some(member),
                fields: Fields::None,
            }),
        }
    }

    /// Returns the part that a value selects.
    pub(super) fn part(&self, value: Option<&Value>) -> Part {
        let (has_scalar, has_list, has_map) = (
            self.scalar.is_some(),
            self.list.is_some(),
            self.map.is_some(),
        );
        if u8::from(has_scalar) + u8::from(has_list) + u8::from(has_map) == 1 {
            return Part::All;
        }
        match value {
            Some(Value::Array(_)) if has_list => Part::List,
            Some(Value::Object(_)) if has_map => Part::Map,
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if has_scalar => {
                Part::Scalar
            }
            _ => Part::All,
        }
    }

    /// Returns the type of a part.
    pub(super) fn handled(&self, part: Part) -> Handled<'a> {
        match (part, self.map, self.scalar, self.list) {
            (Part::Map | Part::All, Some(map), _, _) => Handled::Map(map),
            (Part::Scalar | Part::All, _, Some(scalar), _) => Handled::Scalar(scalar),
            (_, _, _, Some(list)) => Handled::List(list),
            // A type without parts does not exist.
            _ => Handled::Scalar(Scalar::Any),
        }
    }
}

// === impl Map ===

impl<'a> Map<'a> {
    /// Returns the type of a field, or `None` if the type has no field of this name.
    pub(super) fn field(&self, name: &str) -> Option<Type<'a>> {
        match self.fields {
            Fields::None => None,
            Fields::Fixed(fields) => fixed_field(fields, name).map(Type::Fixed),
            Fields::Builtin(value_type) => value_type.member(name).map(Type::Builtin),
            Fields::Structural(node) => node.field(name),
        }
    }

    /// Returns the type of a member.
    pub(super) fn member(&self, name: &str) -> Option<Type<'a>> {
        self.field(name).or(self.member)
    }

    /// Returns the default of a field.
    pub(super) fn default(&self, name: &str) -> Option<Cow<'a, Value>> {
        match self.fields {
            Fields::None => None,
            Fields::Fixed(fields) => fixed_field(fields, name)?.default().map(Cow::Borrowed),
            Fields::Builtin(value_type) => value_type.key_default(name).map(Cow::Owned),
            Fields::Structural(node) => node.default_of(name).map(Cow::Borrowed),
        }
    }

    /// Returns whether the type says nothing about the members. As in Kubernetes, this includes a schema of members
    /// that accepts any scalar, such as a text with a format.
    pub(super) fn is_deduced(&self) -> bool {
        let is_any = match self.member {
            Some(Type::Deduced) => true,
            Some(Type::Structural(node)) => node.atom().scalar == Some(Scalar::Any),
            _ => false,
        };
        is_any && matches!(self.fields, Fields::None)
    }
}

fn fixed_field(fields: &'static [(&'static str, Fixed)], name: &str) -> Option<&'static Fixed> {
    let mut fields = fields.iter();
    let found = fields.find(|(field, _)| *field == name);
    found.map(|(_, fixed)| fixed)
}

// === impl Keys ===

impl<'a> Keys<'a> {
    pub(super) fn iter(self) -> impl Iterator<Item = &'a str> {
        let (owned, joined, fixed) = match self {
            Keys::Owned(names) => (names, None, [].as_slice()),
            Keys::Joined(names) => ([].as_slice(), Some(names), [].as_slice()),
            Keys::Fixed(names) => ([].as_slice(), None, names),
        };
        let joined = joined.into_iter().flat_map(|names| names.split(','));
        let owned = owned.iter().map(String::as_str);
        owned.chain(joined).chain(fixed.iter().copied())
    }
}
