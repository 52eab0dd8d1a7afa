//! Checks the value validations of a structural schema: `allOf`, `anyOf`, `oneOf`, `not` and `pattern`.
//!
//! Guarantees: the errors are those of `validateValueValidation` and `validateNestedValueValidation` in
//! Kubernetes, in another order. The caller sorts them.

use super::schema::{Items, OrBool, Schema};
use super::structure::is_type_only;
use crate::go_regex::Pattern;
use crate::strategy::report::{Path, Report};

/// The part of a schema that may contain types although it is a value validation.
///
/// The types integer and string are permitted in one `anyOf`, which describes a number or a string.
#[derive(Clone, Copy, Default)]
pub(super) struct Exempt {
    /// The `anyOf` of the schema.
    any_of: bool,
    /// The `anyOf` in the first schema of `allOf`.
    first_of_all: bool,
}

impl Exempt {
    pub(super) fn of(schema: Schema<'_>) -> Exempt {
        Exempt {
            any_of: is_int_or_string(schema),
            first_of_all: schema.schemas("allOf").next().is_some_and(is_int_or_string),
        }
    }
}

/// Returns whether the `anyOf` of a schema consists of the types integer and string.
fn is_int_or_string(schema: Schema<'_>) -> bool {
    let [integer, string] = schema.list("anyOf") else {
        return false;
    };
    is_type_only(Schema(integer), "integer") && is_type_only(Schema(string), "string")
}

/// Adds the errors of a schema's value validations.
pub(super) fn check_value(
    schema: Schema<'_>,
    exempt: Exempt,
    path: &Path<'_>,
    report: &mut Report,
) {
    for member in ["anyOf", "allOf", "oneOf"] {
        if member == "anyOf" && exempt.any_of {
            continue;
        }
        let list = path.child(member);
        for (at, nested) in schema.schemas(member).enumerate() {
            let exempt = Exempt {
                any_of: member == "allOf" && at == 0 && exempt.first_of_all,
                first_of_all: false,
            };
            check(nested, exempt, &list.index(at), report);
        }
    }
    if let Some(not) = schema.schema("not") {
        check(not, Exempt::default(), &path.child("not"), report);
    }
    let pattern = schema.text("pattern");
    if !pattern.is_empty()
        && let Some(why) = Pattern::syntax_error(pattern)
    {
        let why = format_args!("must be a valid regular expression, but isn't: {why}");
        report.invalid(&path.child("pattern"), super::Quoted(pattern), why);
    }
}

/// Adds the errors of a schema inside `allOf`, `anyOf`, `oneOf` or `not`.
fn check(schema: Schema<'_>, exempt: Exempt, path: &Path<'_>, report: &mut Report) {
    check_value(schema, exempt, path, report);
    if let Some(item) = schema.items().and_then(Items::schema) {
        check(item, Exempt::default(), &path.child("items"), report);
    }
    let properties = path.child("properties");
    for (name, property) in schema.map("properties") {
        check(property, Exempt::default(), &properties.key(name), report);
    }
    for (member, is_set, empty) in forbidden(schema) {
        if is_set {
            let why = format_args!("must be {empty} to be structural");
            report.forbidden(&path.child(member), why);
        }
    }
    if schema.property("metadata").is_some() {
        let why = "must not be specified in a nested context";
        report.forbidden(&properties.key("metadata"), why);
    }
}

/// Returns the members that a schema inside a value validation must not have.
///
/// Each one comes with whether the schema has it, and with the word for its absence.
fn forbidden(schema: Schema<'_>) -> [(&'static str, bool, &'static str); 13] {
    let additional = schema.or_bool("additionalProperties");
    let has_additional = additional.is_some_and(|it| !matches!(it, OrBool::Bool(false)));
    let text = |member| (member, !schema.text(member).is_empty(), "empty");
    let flag = |member| (member, schema.flag(member), "false");
    let list = |member| (member, !schema.list(member).is_empty(), "empty");
    let optional = |member| {
        let is_set = schema.optional_text(member).is_some();
        (member, is_set, "undefined")
    };
    [
        text("type"),
        ("additionalProperties", has_additional, "undefined"),
        ("default", schema.get("default").is_some(), "undefined"),
        text("title"),
        text("description"),
        flag("nullable"),
        flag("x-kubernetes-preserve-unknown-fields"),
        flag("x-kubernetes-embedded-resource"),
        flag("x-kubernetes-int-or-string"),
        list("x-kubernetes-list-map-keys"),
        optional("x-kubernetes-list-type"),
        optional("x-kubernetes-map-type"),
        list("x-kubernetes-validations"),
    ]
}
