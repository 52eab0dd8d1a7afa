//! The definitions of the protobuf messages of Kubernetes' built-in kinds, and their form in JSON.
//!
//! `cargo xtask kinds` generates the table of messages from the proto files and struct tags of one Kubernetes
//! version. This module parses the table. It does not decode messages.
//!
//! Guarantees:
//! - the table is parsed only when [`Messages::builtin`] or [`Messages::v1_36`] is called for the first time;
//! - the table contains every message that a field refers to, and the fields are ordered by number. The order in
//!   which Go writes them to JSON is available too.

mod field;

use std::{borrow::Cow, collections::BTreeMap, sync::OnceLock};

pub use field::{Container, Field, ListType, MapType, Presence, Type};

/// The messages of Kubernetes 1.36 with the fields that 1.37 adds.
///
/// The first lines of the file explain its format.
const TABLE: &str = include_str!("table/v1_36.tsv");

const READS_BACK: &str = "`cargo xtask kinds` writes messages that read back";

/// The definitions of the messages of all built-in kinds, and of the messages that are nested in them.
#[derive(Debug)]
pub struct Messages {
    all: Vec<Message>,
    /// Maps `apiVersion/Kind` to an index in `all`.
    kinds: BTreeMap<&'static str, MessageId>,
    delete_options: MessageId,
}

/// Index of a message in a [`Messages`] value. Only valid for the value that returned this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageId(u16);

/// The definition of one protobuf message: its fields, and its form in JSON.
#[derive(Debug)]
#[non_exhaustive]
pub struct Message {
    /// Name of the message with its package, such as `k8s.io.api.core.v1.Pod`.
    pub name: &'static str,
    /// The form of the message in JSON.
    pub form: Form,
    /// Whether the message is a kind. The JSON of a kind also has the members `apiVersion` and `kind`.
    pub is_kind: bool,
    /// Whether server-side apply replaces a value of the message as a whole.
    pub is_atomic: bool,
    /// The fields in strictly ascending order of number.
    ///
    /// Empty unless `form` is `Object`, `List` or `Either`.
    pub fields: Vec<Field>,
    /// Indices in `fields`, in the order of the fields of the Go struct.
    in_go_order: Vec<u8>,
    /// Index in `fields` for each field number; `u8::MAX` if no field has the number.
    by_number: Vec<u8>,
    /// Index in `fields` for each tag. `u8::MAX` for a tag without a field, and for the tags of inline fields
    /// and of lists of numbers or booleans.
    by_tag: Vec<u8>,
}

/// The JSON value that represents a protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A JSON object whose members are the fields of the message.
    Object,
    /// A JSON array: the value of the message's only field, which is a list. Never null.
    List,
    /// The JSON value of the message's second field, or of the first field if the second field is null. An
    /// example is `JSONSchemaPropsOrBool`.
    Either,
    /// A JSON number or string.
    IntOrString,
    /// The JSON text that the message contains as bytes.
    Json,
    /// A string with a time in RFC 3339 format, with microseconds.
    MicroTime,
    /// A string with a Kubernetes quantity, which is a number with an optional unit, such as `100m`.
    Quantity,
    /// A string with a time in RFC 3339 format, in whole seconds.
    Time,
}

// === impl Messages ===

impl Messages {
    /// Returns the message definitions of Kubernetes 1.36, with the fields that 1.37 adds.
    ///
    /// The first call parses a table of about 150 kilobytes.
    ///
    /// # Panics
    ///
    /// Never panics, because the table is part of the crate and a test parses the whole table.
    pub fn builtin() -> &'static Messages {
        static MESSAGES: OnceLock<Messages> = OnceLock::new();
        MESSAGES.get_or_init(|| Messages::parse(TABLE, true).expect(READS_BACK))
    }

    /// Returns the message definitions of Kubernetes 1.36, without the fields that 1.37 adds to them.
    ///
    /// The messages that only 1.37 has are included, so a message has the same [`MessageId`] as in
    /// [`Messages::builtin`]. The first call parses the table, even if [`Messages::builtin`] has parsed it.
    ///
    /// # Panics
    ///
    /// Never panics, like [`Messages::builtin`].
    pub fn v1_36() -> &'static Messages {
        static MESSAGES: OnceLock<Messages> = OnceLock::new();
        MESSAGES.get_or_init(|| Messages::parse(TABLE, false).expect(READS_BACK))
    }

    /// Returns the index of a kind's message, or `None` if the kind is not a built-in kind.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<MessageId> {
        let known = self.kinds.get(format!("{api_version}/{kind}").as_str());
        known.copied()
    }

    /// Returns all message definitions, ordered by name.
    pub fn all(&self) -> &[Message] {
        &self.all
    }

    /// Returns an iterator over all built-in kinds, as `apiVersion/Kind`, and the indices
    /// of their messages.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, MessageId)> {
        self.kinds.iter().map(|(kind, id)| (*kind, *id))
    }

    /// Returns the index of the message `DeleteOptions`. Requests of every group and
    /// version use this kind.
    pub fn delete_options(&self) -> MessageId {
        self.delete_options
    }

    /// Returns the definition of the message with this index.
    #[inline]
    pub fn get(&self, MessageId(at): MessageId) -> &Message {
        &self.all[usize::from(at)]
    }

    /// Returns the type of a field in Go, as error messages of Go show it, such as `[]v1.Container`.
    pub fn go_type(&self, field: &Field) -> Cow<'static, str> {
        if let Some(own) = field.own_go_type() {
            return Cow::Borrowed(own);
        }
        let value = self.go_type_of(field.value);
        match field.container {
            Container::One => value,
            Container::List => format!("[]{value}").into(),
            Container::Map => format!("map[string]{value}").into(),
        }
    }

    /// Returns the type in Go of each value in a list or a map.
    pub fn go_item_type(&self, field: &Field) -> Cow<'static, str> {
        let own = field.own_go_type().and_then(|own| match field.container {
            Container::One => None,
            Container::List => own.strip_prefix("[]"),
            Container::Map => Some(own.strip_prefix("map[")?.split_once(']')?.1),
        });
        own.map_or_else(|| self.go_type_of(field.value), Cow::Borrowed)
    }

    /// Returns the type in Go of a value with this type.
    pub fn go_type_of(&self, value: Type) -> Cow<'static, str> {
        match value {
            Type::Bool => "bool".into(),
            Type::Bytes => "[]uint8".into(),
            Type::Double => "float64".into(),
            Type::Int32 => "int32".into(),
            Type::Int64 => "int64".into(),
            Type::Text => "string".into(),
            Type::Message(id) => self.get(id).go_type().into(),
        }
    }

    /// Parses a table of messages. Returns `None` if the table is malformed or does not
    /// contain `DeleteOptions`.
    ///
    /// If `has_added` is false, skips the fields that the table marks as `added`. These are
    /// the fields that the next Kubernetes version adds to the messages.
    fn parse(table: &'static str, has_added: bool) -> Option<Messages> {
        let is_row =
            |line: &&str| !line.starts_with('#') && (has_added || !line.ends_with("\tadded"));
        let rows = || table.lines().filter(is_row);
        let heads = rows().filter(|row| !row.starts_with('\t'));
        let ids_by_name: BTreeMap<&str, MessageId> = heads
            .zip(0..=u16::MAX)
            .map(|(row, at)| (row.split('\t').next().unwrap_or(row), MessageId(at)))
            .collect();
        let mut all: Vec<Message> = Vec::with_capacity(ids_by_name.len());
        let mut kinds = BTreeMap::new();
        for row in rows() {
            if let Some(field) = row.strip_prefix('\t') {
                let field = Field::from_row(field, &ids_by_name)?;
                all.last_mut()?.fields.push(field);
            } else {
                let mut columns = row.split('\t');
                let name = columns.next()?;
                let form = Form::from_cell(columns.next()?)?;
                let mut columns = columns.peekable();
                let is_atomic = columns.next_if_eq(&"atomic").is_some();
                let described = kinds.len();
                let id = MessageId(u16::try_from(all.len()).ok()?);
                kinds.extend(columns.map(|kind| (kind, id)));
                all.push(Message {
                    name,
                    form,
                    is_kind: kinds.len() > described,
                    is_atomic,
                    fields: Vec::new(),
                    in_go_order: Vec::new(),
                    by_number: Vec::new(),
                    by_tag: Vec::new(),
                });
            }
        }
        for message in &mut all {
            message.index()?;
        }
        let delete_options =
            ids_by_name.get("k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions")?;
        Some(Messages {
            delete_options: *delete_options,
            all,
            kinds,
        })
    }
}

// === impl MessageId ===

impl MessageId {
    /// Returns the position of the message in [`Messages::all`].
    #[inline]
    pub fn index(self) -> usize {
        self.0.into()
    }
}

// === impl Message ===

impl Message {
    /// Orders the fields by number, and fills the indices of the fields.
    ///
    /// `fields` must have the order of the Go struct. Returns `None` if two fields have the same number, or if there
    /// are too many fields.
    fn index(&mut self) -> Option<()> {
        let declared: Vec<u32> = self.fields.iter().map(|field| field.number).collect();
        self.fields.sort_by_key(|field| field.number);
        let mut required_before = 0;
        for (at, field) in (0..u8::MAX).zip(&mut self.fields) {
            field.required_before = required_before;
            if field.is_written_if_missing() {
                required_before = at + 1;
            }
            set(&mut self.by_number, field.number, at)?;
            if field.is_plain() {
                set(&mut self.by_tag, field.tag, at)?;
            }
        }
        self.in_go_order = declared
            .iter()
            .map(|number| self.by_number.get(usize::try_from(*number).ok()?).copied())
            .collect::<Option<_>>()?;
        Some(())
    }

    /// Returns the fields in the order of the Go struct, which is the order of their members in JSON.
    pub fn fields_in_go_order(&self) -> impl Iterator<Item = &Field> {
        let fields = self.in_go_order.iter();
        fields.filter_map(|at| self.fields.get(usize::from(*at)))
    }

    /// Returns the type in Go, as error messages of Go show it, such as `v1.Pod`.
    pub fn go_type(&self) -> &'static str {
        let mut ends = self.name.rmatch_indices('.').map(|(at, _)| at + 1);
        let package = ends.nth(1).unwrap_or(0);
        &self.name[package..]
    }

    /// Returns the name of the message in OpenAPI documents, such as `io.k8s.api.core.v1.Pod`.
    pub fn openapi_name(&self) -> String {
        let name = self.name.replace('_', "-");
        match name.strip_prefix("k8s.io.") {
            Some(rest) => format!("io.k8s.{rest}"),
            None => name,
        }
    }

    /// Returns the name of the type in Go without its package, such as `Pod`.
    pub fn type_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// Returns the index in `fields` of the field with this number, or `None` if there is no such field.
    #[inline]
    pub fn position(&self, number: u32) -> Option<usize> {
        let at = *self.by_number.get(usize::try_from(number).ok()?)?;
        (at != u8::MAX).then_some(at.into())
    }

    /// Returns the index in `fields` of the plain field with this tag, if any.
    ///
    /// All fields are plain, except inline fields, and lists of numbers or booleans, which protobuf can pack.
    /// The decoder has a fast path for plain fields.
    #[inline]
    pub(crate) fn plain_position(&self, tag: u32) -> Option<usize> {
        let at = *self.by_tag.get(usize::try_from(tag).ok()?)?;
        (at != u8::MAX).then_some(at.into())
    }
}

/// Sets `indexes[key]` to `at`. Fills the new entries before `key` with `u8::MAX`.
///
/// Returns `None` if `key` does not exceed the keys of all earlier calls, or does not fit into a `usize`.
fn set(indexes: &mut Vec<u8>, key: u32, at: u8) -> Option<()> {
    let key = usize::try_from(key).ok()?;
    if key < indexes.len() {
        return None;
    }
    indexes.resize(key, u8::MAX);
    indexes.push(at);
    Some(())
}

// === impl Form ===

impl Form {
    fn from_cell(cell: &str) -> Option<Form> {
        Some(match cell {
            "object" => Form::Object,
            "list" => Form::List,
            "either" => Form::Either,
            "intOrString" => Form::IntOrString,
            "json" => Form::Json,
            "microTime" => Form::MicroTime,
            "quantity" => Form::Quantity,
            "time" => Form::Time,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
