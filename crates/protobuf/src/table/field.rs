//! The definition of one field of a message.

use std::collections::BTreeMap;

use super::MessageId;

/// The definition of one field of a protobuf [`Message`](super::Message).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Field {
    pub(super) number: u32,
    /// The field number and, in the lowest three bits, the wire type of values that are not packed.
    pub(crate) tag: u32,
    /// Whether Go omits the field from JSON if its value is the integer 0, false or empty.
    ///
    /// The usual encoding of each of these values is a single 0 byte.
    pub(crate) is_omitted_if_0: bool,
    /// Whether Go omits the field from JSON if its value is 0.0 (floating-point number) or null (nested
    /// message).
    ///
    /// False for all other types, for which [`is_omitted_if_0`](Self::is_omitted_if_0) is set instead.
    pub(crate) is_omitted_if_null: bool,
    /// 1 plus the index of the nearest preceding field for which
    /// [`is_written_if_missing`](Self::is_written_if_missing) returns true; 0 if there is no such field.
    pub(crate) required_before: u8,
    /// Name of the field in JSON.
    pub name: &'static str,
    /// Whether the field contains one value, a list or a map.
    pub container: Container,
    /// Type of the value. For a list or a map, the type of each of its values.
    pub value: Type,
    /// The condition under which the field appears in JSON.
    pub presence: Presence,
    /// The rest of the field's row in the table: the type in Go if `container` and `value` do not determine it, and
    /// the words for [`Field::word`].
    rest: &'static str,
}

/// Whether a field contains one value, a list of values, or a map of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// One value.
    One,
    /// A list.
    List,
    /// A map with string keys.
    Map,
}

/// Type of a field's value. For a list or a map, the type of each of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A boolean.
    Bool,
    /// Bytes, which are a base64 string in JSON.
    Bytes,
    /// A floating-point number with 64 bits.
    Double,
    /// A signed integer with 32 bits.
    Int32,
    /// A signed integer with 64 bits.
    Int64,
    /// A UTF-8 string.
    Text,
    /// A nested message.
    Message(MessageId),
}

/// The condition under which Go writes a field as a member of the message's JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always written to JSON, with Go's zero value if the protobuf bytes do not contain the field.
    Always,
    /// The members of the field's message are written instead of the field, as with `json:",inline"` in Go.
    Inline,
    /// Not written if the value is empty, zero or null, as with `omitempty` in Go.
    Nonzero,
    /// Always written to JSON, as null if the protobuf bytes do not contain the field.
    Nullable,
    /// Written if the bytes contain the field.
    Sent,
}

/// How server-side apply merges a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The list is replaced as a whole.
    Atomic,
    /// The items are scalars, each of which has its owners.
    Set,
    /// The items are objects. The members with these names, separated by commas, identify an item.
    Map(&'static str),
}

/// How server-side apply merges a map or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// The value is replaced as a whole.
    Atomic,
    /// Each member has its owners.
    Granular,
}

// === impl Field ===

impl Field {
    /// Returns the field number, which identifies the field in the bytes of a message.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns whether Go writes the field to JSON even if the bytes do not contain the field.
    ///
    /// Also true for an inline field, because Go may write members of its message.
    #[inline]
    pub(crate) fn is_written_if_missing(&self) -> bool {
        match self.presence {
            Presence::Always | Presence::Inline | Presence::Nullable => true,
            Presence::Nonzero | Presence::Sent => false,
        }
    }

    /// Returns whether JSON contains the members of the field's message in place of the field, as with
    /// `json:",inline"` in Go.
    pub fn is_inline(&self) -> bool {
        self.presence == Presence::Inline
    }

    /// Returns whether the field is plain, as [`Message::plain_position`](super::Message::plain_position) defines it.
    pub(super) fn is_plain(&self) -> bool {
        let is_delimited = self.tag & 7 == 2;
        (self.container == Container::One || is_delimited) && !self.is_inline()
    }

    /// Returns whether an object without the field is invalid.
    pub fn is_required(&self) -> bool {
        self.words().any(|word| word == "required")
    }

    /// Returns the strategies by which a strategic merge patch changes the field: `merge`, `replace` and `retainKeys`.
    pub fn patch_strategies(&self) -> impl Iterator<Item = &'static str> {
        self.word("patch")
            .into_iter()
            .flat_map(|all| all.split(','))
    }

    /// Returns the name of the member by which a strategic merge patch finds an item of the list.
    pub fn merge_key(&self) -> Option<&'static str> {
        self.word("key")
    }

    /// Returns how server-side apply merges the list, if the type of the field declares it.
    pub fn list_type(&self) -> Option<ListType> {
        let word = self.word("list")?;
        Some(match word {
            "atomic" => ListType::Atomic,
            "set" => ListType::Set,
            keyed => ListType::Map(keyed.strip_prefix("map:")?),
        })
    }

    /// Returns how server-side apply merges the map or object, if the field declares it.
    pub fn map_type(&self) -> Option<MapType> {
        match self.word("map")? {
            "atomic" => Some(MapType::Atomic),
            "granular" => Some(MapType::Granular),
            _ => None,
        }
    }

    /// Returns the default of the field in OpenAPI documents, as JSON, if it is not Go's zero value.
    ///
    /// A scalar with [`Presence::Always`] and without such a default has Go's zero value as its default.
    pub fn openapi_default(&self) -> Option<&'static str> {
        self.word("default")
    }

    /// Returns the value of a word in the table, such as `merge` for the word `patch=merge`.
    fn word(&self, name: &str) -> Option<&'static str> {
        self.words()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> {
        let words = self.rest.split_once('\t').map_or("", |(_, words)| words);
        words.split(' ').filter(|word| !word.is_empty())
    }

    /// Returns the type of the field in Go, if `container` and `value` do not determine it.
    pub(super) fn own_go_type(&self) -> Option<&'static str> {
        let own = self.rest.split('\t').next();
        own.filter(|own| !own.is_empty())
    }

    /// Parses the row of a field: `number, name, type, presence`, the type in Go if the type does not determine it,
    /// and words. Returns `None` if the row is malformed or its type is unknown.
    pub(super) fn from_row(
        row: &'static str,
        ids_by_name: &BTreeMap<&str, MessageId>,
    ) -> Option<Field> {
        let mut columns = row.split('\t');
        let number: u32 = columns.next()?.parse().ok()?;
        let name = columns.next()?;
        let cell = columns.next()?;
        let presence = match columns.next()? {
            "always" => Presence::Always,
            "inline" => Presence::Inline,
            "nonzero" => Presence::Nonzero,
            "nullable" => Presence::Nullable,
            "sent" => Presence::Sent,
            _ => return None,
        };
        let (container, inner) = if let Some(item) = cell.strip_prefix("[]") {
            (Container::List, item)
        } else if let Some(member) = cell.strip_prefix("{}") {
            (Container::Map, member)
        } else {
            (Container::One, cell)
        };
        let value = Type::from_cell(inner, ids_by_name)?;
        let wire_type = match value {
            Type::Bool | Type::Int32 | Type::Int64 if container != Container::Map => 0,
            Type::Double if container != Container::Map => 1,
            _ => 2,
        };
        let can_be_omitted = presence == Presence::Nonzero && container == Container::One;
        let is_null_in_another_form = matches!(value, Type::Message(_) | Type::Double);
        let rest = row.splitn(5, '\t').nth(4).unwrap_or_default();
        (rest.matches('\t').count() < 2).then_some(Field {
            number,
            tag: number << 3 | wire_type,
            is_omitted_if_0: can_be_omitted && !is_null_in_another_form,
            is_omitted_if_null: can_be_omitted && is_null_in_another_form,
            required_before: 0,
            name,
            container,
            value,
            presence,
            rest,
        })
    }
}

// === impl Type ===

impl Type {
    fn from_cell(cell: &str, ids_by_name: &BTreeMap<&str, MessageId>) -> Option<Type> {
        Some(match cell {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "int32" => Type::Int32,
            "int64" => Type::Int64,
            "string" => Type::Text,
            name => Type::Message(*ids_by_name.get(name)?),
        })
    }
}
