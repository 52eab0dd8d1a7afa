//! Tests of server-side apply.

mod limits;
mod lists;
mod oracle;
mod owners;
mod schemas;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::schema::Schema;

/// A custom kind whose versions have these schemas, and whose objects are the same in each version.
struct Custom {
    versions: Vec<(String, Option<Schema>)>,
}

impl Custom {
    fn new(schemas: &Value) -> Custom {
        let versions = schemas.as_object().unwrap().iter();
        let versions = versions.map(|(version, schema)| {
            let schema = (!schema.is_null()).then(|| Schema::read(schema).unwrap());
            (format!("example.com/{version}"), schema)
        });
        Custom {
            versions: versions.collect(),
        }
    }
}

impl Versions for Custom {
    fn type_of(&self, api_version: &str) -> Option<Type<'_>> {
        let mut versions = self.versions.iter();
        let found = versions.find(|(version, _)| version == api_version)?;
        Some(Type::custom(found.1.as_ref()))
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<Value>, String> {
        if self.type_of(api_version).is_none() {
            return Err(format!(
                "request to convert CR to an invalid group/version: {api_version}"
            ));
        }
        let mut object = object.clone();
        object["apiVersion"] = json!(api_version);
        Ok(Some(object))
    }
}

/// An object of a custom kind, which a test writes.
struct Stored {
    kind: Custom,
    object: Value,
    /// Time of the next write in seconds.
    now: i64,
    subresource: &'static str,
    ignored: Set,
}

impl Stored {
    /// A kind with a schema for `spec`, and no object.
    fn of_spec(spec: &Value) -> Stored {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        Stored::of_schemas(&json!({ "v1": schema }))
    }

    fn of_schemas(schemas: &Value) -> Stored {
        Stored {
            kind: Custom::new(schemas),
            object: thing(&json!({})),
            now: 1,
            subresource: "",
            ignored: Set::default(),
        }
    }

    fn field_manager<'a>(&'a self, empty: &'a Value) -> FieldManager<'a> {
        FieldManager {
            versions: &self.kind,
            api_version: "example.com/v1",
            kind: "Thing",
            subresource: self.subresource,
            ignored: &self.ignored,
            empty,
        }
    }

    /// Stores an object with a new time.
    fn store(&mut self, mut object: Value) -> Value {
        object["metadata"]["uid"] = json!("u");
        self.object = object.clone();
        self.now += 1;
        object
    }

    fn write<'a>(&self, manager: &'a str) -> Write<'a> {
        let now = Timestamp::from_second(self.now).unwrap();
        Write { manager, now }
    }

    /// Updates the object with members such as `spec`.
    fn update(&mut self, manager: &str, members: &Value) -> Value {
        let mut new = self.object.clone();
        new.as_object_mut()
            .unwrap()
            .extend(thing(members).as_object().unwrap().clone());
        if let Some(entries) = self.object["metadata"].get("managedFields") {
            new["metadata"]["managedFields"] = entries.clone();
        }
        self.replace(manager, new)
    }

    /// Replaces the object.
    fn replace(&mut self, manager: &str, new: Value) -> Value {
        let empty = thing_without_name();
        let write = self.write(manager);
        let stored = self.field_manager(&empty).update(&self.object, new, write);
        self.store(stored)
    }

    /// Applies members such as `spec`.
    fn apply(&mut self, manager: &str, members: &Value) -> Result<Value, String> {
        self.apply_with(manager, members, Force::No)
    }

    fn force(&mut self, manager: &str, members: &Value) -> Value {
        self.apply_with(manager, members, Force::Yes).unwrap()
    }

    fn apply_with(
        &mut self,
        manager: &str,
        members: &Value,
        force: Force,
    ) -> Result<Value, String> {
        let empty = thing_without_name();
        let (applied, write) = (thing(members), self.write(manager));
        let fields = self.field_manager(&empty);
        match fields.apply(&self.object, &applied, write, force) {
            Ok(object) => Ok(self.store(object)),
            Err(ApplyError::BadRequest(why)) => Err(format!("400 {why}")),
            Err(ApplyError::Internal(why)) => Err(format!("500 {why}")),
            Err(ApplyError::Conflict(conflicts)) => Err(conflicts.message()),
        }
    }

    /// Returns the fields of a manager, or null if it has none.
    fn fields(&self, manager: &str) -> Value {
        let entries = self.object["metadata"]["managedFields"].as_array();
        let mut entries = entries.into_iter().flatten();
        let entry = entries.find(|entry| entry["manager"] == manager);
        entry.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
    }

    fn times(&self) -> Vec<String> {
        let entries = self.object["metadata"]["managedFields"].as_array().unwrap();
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let times = entries.iter();
        let times =
            times.map(|entry| format!("{} {}", text(entry, "manager"), text(entry, "time")));
        times.collect()
    }
}

fn thing_without_name() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing"})
}

/// An object with a name and other members.
fn thing(members: &Value) -> Value {
    let mut object = thing_without_name();
    object["metadata"] = json!({"name": "a", "namespace": "default"});
    object
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    object
}
