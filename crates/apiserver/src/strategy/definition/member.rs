//! Describes the members of a definition, and compares values with these tables.
//!
//! Guarantees:
//! - the tables list the members in the order of Kubernetes' internal types, with their Go names;
//! - a value of a wrong JSON type counts as absent.
//!
//! The functions are recursive. The depth of an object is limited to 127 levels before this code runs.

use serde_json::{Map, Value};

/// One member of a Go struct.
pub(super) struct Member {
    /// The name in Kubernetes' internal type.
    pub(super) go: &'static str,
    /// The name in JSON.
    pub(super) json: &'static str,
    pub(super) form: Form,
}

/// The Go type of a value.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// `string`
    Text,
    /// `*string`
    TextRef,
    /// `bool`
    Flag,
    /// `*bool`
    FlagRef,
    /// `*float64`
    Number,
    /// `*int64`
    Integer,
    /// `int32`
    Count,
    /// `*JSON`, any value
    Json,
    /// `[]JSON`
    Jsons,
    /// `[]string`
    Texts,
    /// A pointer to a struct.
    Object(&'static [Member]),
    /// A slice of structs.
    Objects(&'static [Member]),
    /// A map of structs.
    Map(&'static [Member]),
    /// `*JSONSchemaPropsOrBool`
    OrBool,
    /// `*JSONSchemaPropsOrArray`
    OrArray,
    /// `JSONSchemaDependencies`
    Dependencies,
}

const fn member(go: &'static str, json: &'static str, form: Form) -> Member {
    Member { go, json, form }
}

/// `JSONSchemaProps`
pub(super) static SCHEMA: [Member; 44] = [
    member("ID", "id", Form::Text),
    member("Schema", "$schema", Form::Text),
    member("Ref", "$ref", Form::TextRef),
    member("Description", "description", Form::Text),
    member("Type", "type", Form::Text),
    member("Nullable", "nullable", Form::Flag),
    member("Format", "format", Form::Text),
    member("Title", "title", Form::Text),
    member("Default", "default", Form::Json),
    member("Maximum", "maximum", Form::Number),
    member("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    member("Minimum", "minimum", Form::Number),
    member("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    member("MaxLength", "maxLength", Form::Integer),
    member("MinLength", "minLength", Form::Integer),
    member("Pattern", "pattern", Form::Text),
    member("MaxItems", "maxItems", Form::Integer),
    member("MinItems", "minItems", Form::Integer),
    member("UniqueItems", "uniqueItems", Form::Flag),
    member("MultipleOf", "multipleOf", Form::Number),
    member("Enum", "enum", Form::Jsons),
    member("MaxProperties", "maxProperties", Form::Integer),
    member("MinProperties", "minProperties", Form::Integer),
    member("Required", "required", Form::Texts),
    member("Items", "items", Form::OrArray),
    member("AllOf", "allOf", Form::Objects(&SCHEMA)),
    member("OneOf", "oneOf", Form::Objects(&SCHEMA)),
    member("AnyOf", "anyOf", Form::Objects(&SCHEMA)),
    member("Not", "not", Form::Object(&SCHEMA)),
    member("Properties", "properties", Form::Map(&SCHEMA)),
    member("AdditionalProperties", "additionalProperties", Form::OrBool),
    member("PatternProperties", "patternProperties", Form::Map(&SCHEMA)),
    member("Dependencies", "dependencies", Form::Dependencies),
    member("AdditionalItems", "additionalItems", Form::OrBool),
    member("Definitions", "definitions", Form::Map(&SCHEMA)),
    member("ExternalDocs", "externalDocs", Form::Object(&DOCS)),
    member("Example", "example", Form::Json),
    member(
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Form::FlagRef,
    ),
    member(
        "XEmbeddedResource",
        "x-kubernetes-embedded-resource",
        Form::Flag,
    ),
    member("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    member("XListMapKeys", "x-kubernetes-list-map-keys", Form::Texts),
    member("XListType", "x-kubernetes-list-type", Form::TextRef),
    member("XMapType", "x-kubernetes-map-type", Form::TextRef),
    member(
        "XValidations",
        "x-kubernetes-validations",
        Form::Objects(&RULE),
    ),
];

/// `ExternalDocumentation`
static DOCS: [Member; 2] = [
    member("Description", "description", Form::Text),
    member("URL", "url", Form::Text),
];

/// `ValidationRule`
static RULE: [Member; 6] = [
    member("Rule", "rule", Form::Text),
    member("Message", "message", Form::Text),
    member("MessageExpression", "messageExpression", Form::Text),
    member("Reason", "reason", Form::TextRef),
    member("FieldPath", "fieldPath", Form::Text),
    member("OptionalOldSelf", "optionalOldSelf", Form::FlagRef),
];

/// `CustomResourceDefinitionVersion`
pub(super) static VERSION: [Member; 9] = [
    member("Name", "name", Form::Text),
    member("Served", "served", Form::Flag),
    member("Storage", "storage", Form::Flag),
    member("Deprecated", "deprecated", Form::Flag),
    member("DeprecationWarning", "deprecationWarning", Form::TextRef),
    member("Schema", "schema", Form::Object(&VALIDATION)),
    member("Subresources", "subresources", Form::Object(&SUBRESOURCES)),
    member(
        "AdditionalPrinterColumns",
        "additionalPrinterColumns",
        Form::Objects(&COLUMN),
    ),
    member(
        "SelectableFields",
        "selectableFields",
        Form::Objects(&SELECTABLE),
    ),
];

/// `CustomResourceValidation`
static VALIDATION: [Member; 1] = [member(
    "OpenAPIV3Schema",
    "openAPIV3Schema",
    Form::Object(&SCHEMA),
)];

/// `CustomResourceSubresources`
static SUBRESOURCES: [Member; 2] = [
    member("Status", "status", Form::Object(&[])),
    member("Scale", "scale", Form::Object(&SCALE)),
];

/// `CustomResourceSubresourceScale`
static SCALE: [Member; 3] = [
    member("SpecReplicasPath", "specReplicasPath", Form::Text),
    member("StatusReplicasPath", "statusReplicasPath", Form::Text),
    member("LabelSelectorPath", "labelSelectorPath", Form::TextRef),
];

/// `CustomResourceColumnDefinition`
static COLUMN: [Member; 6] = [
    member("Name", "name", Form::Text),
    member("Type", "type", Form::Text),
    member("Format", "format", Form::Text),
    member("Description", "description", Form::Text),
    member("Priority", "priority", Form::Count),
    member("JSONPath", "jsonPath", Form::Text),
];

/// `SelectableField`
static SELECTABLE: [Member; 1] = [member("JSONPath", "jsonPath", Form::Text)];

impl Form {
    /// Returns the value if it is present and has the JSON type of this form.
    pub(super) fn present(self, value: Option<&Value>) -> Option<&Value> {
        let has_form = |value: &&Value| match self {
            Form::Text | Form::TextRef => value.is_string(),
            Form::Flag | Form::FlagRef => value.is_boolean(),
            Form::Number => value.is_number(),
            Form::Integer | Form::Count => value.is_i64(),
            Form::Json | Form::OrArray => !value.is_null(),
            Form::Jsons | Form::Texts | Form::Objects(_) => value.is_array(),
            Form::Object(_) | Form::Map(_) | Form::Dependencies => value.is_object(),
            Form::OrBool => value.is_object() || value.is_boolean(),
        };
        value.filter(has_form)
    }

    /// Returns whether a value equals the zero value of its Go type.
    ///
    /// An empty list or map is not zero, because Go distinguishes it from an absent one.
    pub(super) fn is_zero(self, value: Option<&Value>) -> bool {
        let Some(value) = self.present(value) else {
            return true;
        };
        match self {
            Form::Text => *value == "",
            Form::Flag => *value == false,
            Form::Count => *value == 0,
            _ => false,
        }
    }

    /// Returns whether two values are equal, as `apiequality.Semantic.DeepEqual` decides in Kubernetes.
    ///
    /// An empty list or map equals an absent one.
    pub(super) fn equal(self, one: Option<&Value>, other: Option<&Value>) -> bool {
        let (one, other) = (self.present(one), self.present(other));
        match self {
            Form::Text | Form::Flag | Form::Count => {
                (self.is_zero(one) && self.is_zero(other)) || one == other
            }
            Form::Number => one.and_then(Value::as_f64) == other.and_then(Value::as_f64),
            Form::TextRef | Form::FlagRef | Form::Integer | Form::Json => one == other,
            Form::Jsons => items(one) == items(other),
            Form::Texts | Form::Objects(_) => {
                let (one, other) = (items(one), items(other));
                let mut pairs = one.iter().zip(other);
                one.len() == other.len()
                    && pairs.all(|(one, other)| match self {
                        Form::Objects(members) => equal_members(members, one, other),
                        _ => Form::Text.equal(Some(one), Some(other)),
                    })
            }
            Form::Map(_) | Form::Dependencies => self.equal_maps(one, other),
            Form::Object(_) | Form::OrBool | Form::OrArray => match (one, other) {
                (Some(one), Some(other)) => self.equal_present(one, other),
                (one, other) => one.is_none() && other.is_none(),
            },
        }
    }

    fn equal_maps(self, one: Option<&Value>, other: Option<&Value>) -> bool {
        let size = |map: Option<&Value>| map.and_then(Value::as_object).map_or(0, Map::len);
        // A small map is compared with a large one without a visit of the large one.
        if size(one) != size(other) {
            return false;
        }
        let (one, other) = (sorted(one), sorted(other));
        let mut pairs = one.iter().zip(&other);
        pairs.all(|((key, one), (other_key, other))| {
            key == other_key
                && match self {
                    Form::Map(members) => equal_members(members, one, other),
                    _ => {
                        Form::Texts.equal(Some(one), Some(other))
                            && Form::Object(&SCHEMA).equal(Some(one), Some(other))
                    }
                }
        })
    }

    fn equal_present(self, one: &Value, other: &Value) -> bool {
        match self {
            Form::Object(members) => equal_members(members, one, other),
            Form::OrBool => {
                let allows = |value: &Value| *value != false;
                allows(one) == allows(other) && Form::Object(&SCHEMA).equal(Some(one), Some(other))
            }
            _ => {
                let schemas = Form::Objects(&SCHEMA);
                Form::Object(&SCHEMA).equal(Some(one), Some(other))
                    && schemas.equal(Some(one), Some(other))
            }
        }
    }
}

fn equal_members(members: &[Member], one: &Value, other: &Value) -> bool {
    members.iter().all(|member| {
        let (one, other) = (one.get(member.json), other.get(member.json));
        member.form.equal(one, other)
    })
}

/// Returns the items of a list, or nothing for any other value.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    let items = value.and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// Returns the members of a JSON object, sorted by name; none for any other value.
///
/// A build of `serde_json` can keep the order of the request instead.
pub(super) fn sorted(value: Option<&Value>) -> Vec<(&str, &Value)> {
    let members = value.and_then(Value::as_object);
    let members = members.into_iter().flat_map(Map::iter);
    let mut members: Vec<_> = members
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    members
}
