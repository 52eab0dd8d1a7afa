//! Defines the printer columns of custom kinds, from their `CustomResourceDefinition` if there is one.
//!
//! Guarantees: the columns and cells are those of Kubernetes' `tableconvertor`. A cell whose path selects nothing, or
//! a value of another type, is null.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cell::human_duration;
use super::path::{JsonPath, shown};
use crate::kinds::{Kind, PrinterColumn};

/// Description of the column Name, from the documentation of `metadata.name`.
pub(crate) const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// Description of the column Age, from the documentation of `metadata.creationTimestamp`.
const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// A printer column of a definition, with its parsed path.
pub(crate) struct DefinedColumn {
    column: PrinterColumn,
    /// `None` if the path has a form that selects nothing.
    path: Option<JsonPath>,
}

/// Returns the printer columns of a custom kind after the column Name; none for a built-in kind.
pub(crate) fn of(kind: &Kind) -> Vec<DefinedColumn> {
    let age = PrinterColumn {
        name: "Age".to_owned(),
        cell_type: "date".to_owned(),
        format: String::new(),
        description: AGE_DESCRIPTION.to_owned(),
        priority: 0,
        json_path: ".metadata.creationTimestamp".to_owned(),
    };
    let columns = match &*kind.columns {
        _ if !kind.custom => return Vec::new(),
        [] => vec![age],
        columns => columns.to_vec(),
    };
    let parsed = |column: PrinterColumn| DefinedColumn {
        path: JsonPath::parse(&column.json_path),
        column,
    };
    columns.into_iter().map(parsed).collect()
}

impl DefinedColumn {
    /// Returns the column's entry in the `columnDefinitions` of a table.
    pub(crate) fn definition(&self) -> Value {
        let PrinterColumn {
            name,
            cell_type,
            format,
            description,
            priority,
            json_path,
        } = &self.column;
        let description = match description.as_str() {
            "" => format!("Custom resource definition column (in JSONPath format): {json_path}"),
            text => text.to_owned(),
        };
        json!({
            "name": name,
            "type": cell_type,
            "format": format,
            "description": description,
            "priority": priority,
        })
    }

    /// Returns the cell of an object.
    pub(crate) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let found = self.path.as_ref().and_then(|path| path.first(object));
        found.map_or(Value::Null, |value| self.shown(value, now))
    }

    /// Returns the cell for the value that the column's path selects.
    fn shown(&self, value: &Value, now: Timestamp) -> Value {
        #[expect(clippy::cast_possible_truncation, reason = "Kubernetes truncates too")]
        let integer = || {
            value
                .as_i64()
                .or_else(|| value.as_f64().map(|number| number as i64))
        };
        match self.column.cell_type.as_str() {
            "string" if value.is_null() => json!("<no value>"),
            _ if value.is_null() => Value::Null,
            "string" => json!(shown(value)),
            "integer" => json!(integer()),
            "number" => value.as_f64().map_or(Value::Null, |_| value.clone()),
            "boolean" => json!(value.as_bool()),
            "date" => match value.as_str().map(str::parse::<Timestamp>) {
                None => Value::Null,
                Some(_) if matches!(value.as_str(), Some("" | "null")) => json!("<unknown>"),
                Some(Err(_)) => json!("<invalid>"),
                Some(Ok(time)) => json!(human_duration(now.as_second() - time.as_second())),
            },
            _ => Value::Null,
        }
    }
}
