//! Defines which type a JSON value is decoded into.

use std::borrow::Cow;

use kube_informer_protobuf::{
    Container, Field, Form, Message, MessageId, Messages, Presence, Type,
};

use super::literal::Literal;
use crate::go_time::Layout;
use crate::kinds::Kind;

/// The type of a JSON value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueType {
    /// Any value, which is kept as it is.
    Anything,
    /// An object of a custom kind, of which only `metadata` is decoded.
    Custom,
    Message(MessageId),
    /// The value of a field: a list or a map, if the field contains one.
    Field(&'static Field),
    /// A value in the list or the map of a field.
    Item(&'static Field),
    /// The `apiVersion` or `kind` of a built-in kind.
    TypeMeta,
    /// The value of a member that the object does not have.
    Unknown,
    /// A JSON patch: an array of [`ValueType::Operation`] values.
    Operations,
    Operation,
}

/// What a value is decoded into.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Anything,
    Custom,
    Struct(MessageId),
    List(ValueType),
    Map(ValueType),
    Bool,
    Text,
    Bytes,
    Time(Layout),
    Literal(Literal),
    /// Any value, in which Kubernetes checks nothing.
    Json,
    /// A JSON schema, or the second field of the message.
    Either(MessageId),
    Operation,
}

/// Structure of a value, as far as a strategic merge patch needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Structure {
    /// An object whose members have types, with the name of its own type in Go, such as `PodSpec`.
    Struct(&'static str),
    /// An object whose members Kubernetes does not describe, with the name of its type, such as `RawExtension`.
    Opaque(&'static str),
    Map,
    List,
    Leaf,
}

/// How a strategic merge patch combines its value with the object's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeStrategy {
    /// Merges maps, and replaces lists and scalars.
    Default,
    /// Merges lists by the merge key with this name. `None` means that lists are merged as sets of values.
    MergeList(Option<&'static str>),
    /// The patch's value replaces the object's value.
    Replace,
}

/// Names of the members that a JSON patch operation may have.
const OPERATION: [&str; 4] = ["op", "path", "from", "value"];

impl ValueType {
    /// Returns the type of the objects of a kind. The metadata of a kind that is not in the table is decoded too.
    pub(crate) fn of(kind: &Kind) -> ValueType {
        if kind.custom {
            return ValueType::Custom;
        }
        match ValueType::named(&kind.api_version(), &kind.kind) {
            ValueType::Anything => ValueType::Custom,
            known => known,
        }
    }

    /// Returns the type of the `metadata` of every object.
    pub(crate) fn metadata() -> ValueType {
        let metadata = match ValueType::named("v1", "Pod") {
            ValueType::Message(pod) => member(pod, "metadata").map(|(_, field)| field),
            _ => None,
        };
        metadata.map_or(ValueType::Anything, ValueType::Item)
    }

    /// Returns the type of a built-in kind. Any value is accepted for another kind.
    pub(crate) fn named(api_version: &str, kind: &str) -> ValueType {
        let message = Messages::v1_36().of_kind(api_version, kind);
        message.map_or(ValueType::Anything, ValueType::Message)
    }

    pub(super) fn target(self) -> Target {
        match self {
            ValueType::Anything | ValueType::Unknown => Target::Anything,
            ValueType::Custom => Target::Custom,
            ValueType::Message(id) => of_type(Type::Message(id)),
            ValueType::Item(field) => of_type(field.value),
            ValueType::Field(field) => match field.container {
                Container::One => of_type(field.value),
                Container::List => Target::List(ValueType::Item(field)),
                Container::Map => Target::Map(ValueType::Item(field)),
            },
            ValueType::TypeMeta => Target::Text,
            ValueType::Operations => Target::List(ValueType::Operation),
            ValueType::Operation => Target::Operation,
        }
    }

    /// Returns the type in Go, as error messages of Go show it, such as `[]v1.Container`.
    pub(super) fn go_type(self) -> Cow<'static, str> {
        let messages = Messages::v1_36();
        match self {
            ValueType::Message(id) => messages.go_type_of(Type::Message(id)),
            ValueType::Field(field) => messages.go_type(field),
            ValueType::Item(field) => messages.go_item_type(field),
            ValueType::TypeMeta => "string".into(),
            _ => "interface {}".into(),
        }
    }

    /// Returns whether the type is a list, a map or a pointer in Go, or decodes a null itself.
    ///
    /// A null then removes the value of an earlier duplicate.
    pub(super) fn is_nullable(self) -> bool {
        let is_pointer = match self {
            ValueType::Field(field) => {
                field.container == Container::One
                    && matches!(field.presence, Presence::Sent | Presence::Nullable)
            }
            _ => false,
        };
        is_pointer
            || match self.target() {
                Target::Bool | Target::Text | Target::Struct(_) => false,
                Target::Literal(literal) => !literal.is_number(),
                _ => true,
            }
    }

    /// Returns the structure of the value, as far as a strategic merge patch needs it.
    pub(crate) fn structure(self) -> Structure {
        let named = match self {
            ValueType::Message(id) => Some(id),
            ValueType::Field(field) | ValueType::Item(field) => match field.value {
                Type::Message(id) => Some(id),
                _ => None,
            },
            _ => None,
        };
        let type_name = named.map_or("", |id| message(id).type_name());
        match self.target() {
            Target::Struct(_) => Structure::Struct(type_name),
            Target::Json | Target::Either(_) => Structure::Opaque(type_name),
            Target::List(_) => Structure::List,
            Target::Map(_) => Structure::Map,
            _ => Structure::Leaf,
        }
    }

    /// Returns the type of the items of a list, or `self` if it is no list.
    pub(crate) fn of_items(self) -> ValueType {
        match self.target() {
            Target::List(items) => items,
            _ => self,
        }
    }

    /// Returns how a strategic merge patch merges the value.
    pub(crate) fn merge_strategy(self) -> MergeStrategy {
        let ValueType::Field(field) = self else {
            return MergeStrategy::Default;
        };
        // Clients send `$retainKeys` for this strategy. The server applies it in every patch.
        let strategies = field
            .patch_strategies()
            .filter(|name| *name != "retainKeys");
        match strategies.last() {
            Some("merge") => MergeStrategy::MergeList(field.merge_key()),
            Some(_) => MergeStrategy::Replace,
            None => MergeStrategy::Default,
        }
    }

    /// Returns the type of the value of the member `name`, or `None` if the member is unknown.
    pub(crate) fn member(self, name: &str) -> Option<ValueType> {
        match self.target() {
            Target::Struct(id) if message(id).is_kind && type_meta(name).is_some() => {
                Some(ValueType::TypeMeta)
            }
            Target::Struct(id) => member(id, name).map(|(_, field)| ValueType::Field(field)),
            _ => None,
        }
    }
}

/// Returns whether an operation of a JSON patch has a member.
pub(super) fn is_of_operation(name: &str) -> bool {
    OPERATION.contains(&name)
}

fn of_type(value: Type) -> Target {
    let id = match value {
        Type::Bool => return Target::Bool,
        Type::Bytes => return Target::Bytes,
        Type::Text => return Target::Text,
        Type::Double => return Target::Literal(Literal::Double),
        Type::Int32 => return Target::Literal(Literal::Int32),
        Type::Int64 => return Target::Literal(Literal::Int64),
        Type::Message(id) => id,
    };
    let message = Messages::v1_36().get(id);
    match message.form {
        Form::Object => Target::Struct(id),
        Form::List => message.fields.first().map_or(Target::Anything, |items| {
            Target::List(ValueType::Item(items))
        }),
        Form::Either => Target::Either(id),
        Form::IntOrString => Target::Literal(Literal::IntOrString),
        Form::Json => Target::Json,
        Form::MicroTime => Target::Time(Layout::Micro),
        Form::Quantity => Target::Literal(Literal::Quantity),
        Form::Time => Target::Time(Layout::Rfc3339),
    }
}

/// Returns the definition of a message of Kubernetes 1.36.
pub(super) fn message(id: MessageId) -> &'static Message {
    Messages::v1_36().get(id)
}

/// Returns a field of a struct, or of a struct that is inlined in it.
///
/// Also returns the names of the types of the inlined structs that contain the field, in reverse order.
pub(super) fn member(id: MessageId, name: &str) -> Option<(Vec<&'static str>, &'static Field)> {
    let fields = &message(id).fields;
    let own = fields
        .iter()
        .find(|field| !field.is_inline() && field.name == name);
    if let Some(field) = own {
        return Some((Vec::new(), field));
    }
    let mut inlined = fields.iter().filter_map(|field| match field.value {
        Type::Message(inner) if field.is_inline() => {
            let (mut names, field) = member(inner, name)?;
            names.push(message(inner).type_name());
            Some((names, field))
        }
        _ => None,
    });
    inlined.next()
}

/// Returns the two fields of a message of the form [`Form::Either`]: the schema, and the alternative to it.
///
/// # Panics
///
/// Panics if the message has another form. Each such message has two fields.
pub(super) fn either(id: MessageId) -> (&'static Field, &'static Field) {
    let fields = message(id).fields.as_slice();
    let [first, second] = fields else {
        panic!("the message has {} fields", fields.len());
    };
    match second.value {
        Type::Message(_) if second.container == Container::One => (second, first),
        _ => (first, second),
    }
}

/// Returns the name of a member that every object of a kind has, as Go's decoder shows it.
pub(super) fn type_meta(name: &str) -> Option<&'static str> {
    ["apiVersion", "kind"]
        .into_iter()
        .find(|known| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    fn strategy((api_version, kind): (&str, &str), path: &[&str]) -> MergeStrategy {
        let mut value_type = ValueType::named(api_version, kind);
        let mut found = MergeStrategy::Default;
        for name in path {
            let member = value_type.member(name).unwrap();
            found = member.merge_strategy();
            value_type = member.of_items();
        }
        found
    }

    #[test]
    fn every_patchable_kind_has_fields() {
        let kinds = Kinds::builtin();
        let missing: Vec<_> = kinds
            .iter()
            .filter(|kind| kind.verbs.iter().any(|verb| verb == "patch"))
            .filter(|kind| ValueType::of(kind).member("metadata").is_none())
            .map(crate::kinds::Kind::group_resource)
            .collect();
        assert_eq!(missing, [""; 0]);
        let scale = ValueType::named("autoscaling/v1", "Scale");
        assert!(scale.member("spec").is_some());
        let foreign = ValueType::named("example.com/v1", "Foo");
        assert!(foreign.member("metadata").is_none());
    }

    #[test]
    fn fields_have_the_strategies_that_kubernetes_declares() {
        let pod = ("v1", "Pod");
        let by = |key| MergeStrategy::MergeList(Some(key));
        let ports = ["spec", "containers", "ports"];
        assert_eq!(strategy(pod, &ports[..2]), by("name"));
        assert_eq!(strategy(pod, &ports), by("containerPort"));
        assert_eq!(strategy(pod, &["spec", "volumes"]), by("name"));
        let tolerations = strategy(pod, &["spec", "tolerations"]);
        assert_eq!(tolerations, MergeStrategy::Default);
        let finalizers = strategy(pod, &["metadata", "finalizers"]);
        assert_eq!(finalizers, MergeStrategy::MergeList(None));
        let budget = ("policy/v1", "PodDisruptionBudget");
        let selector = strategy(budget, &["spec", "selector"]);
        assert_eq!(selector, MergeStrategy::Replace);
        let deployment = ("apps/v1", "Deployment");
        let retained = strategy(deployment, &["spec", "strategy"]);
        assert_eq!(retained, MergeStrategy::Default);
    }

    #[test]
    fn types_without_described_members_are_opaque() {
        let revision = ValueType::named("apps/v1", "ControllerRevision");
        let data = revision.member("data").unwrap().structure();
        assert!(
            matches!(data, Structure::Opaque("RawExtension")),
            "{data:?}"
        );
    }

    #[test]
    fn a_nested_kind_has_apiversion_and_kind() {
        let set = ValueType::named("apps/v1", "StatefulSet");
        let spec = set.member("spec").unwrap();
        let claim = spec.member("volumeClaimTemplates").unwrap().of_items();
        assert!(claim.member("apiVersion").is_some());
        let template = spec.member("template").unwrap();
        assert!(template.member("apiVersion").is_none());
    }
}
