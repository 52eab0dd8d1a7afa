//! Computes what applies, updates and patches must make of an object's fields and of their owners.
//!
//! The computation covers fields with text values in the maps [`MAPS`], whose keys contain no dots. It uses no code of
//! the server, and reads `metadata.managedFields` itself.
//!
//! Guarantees: [`Ownership::read`] returns an error for an entry that is incomplete, has an unknown member or is not
//! in the order of Kubernetes.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The maps whose members are compared, as the paths of their fields start.
pub(crate) const MAPS: [&str; 4] = [
    ".metadata.annotations",
    ".metadata.labels",
    ".data",
    ".status.allocatable",
];

/// Fields with their values, by path, such as `.data.k`.
pub(crate) type Fields = BTreeMap<String, String>;

/// What identifies the owner of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    /// Empty for writes of the object itself.
    pub(crate) subresource: String,
}

/// The operation in an entry of `metadata.managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// The fields of an object, and their owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ownership {
    pub(crate) fields: Fields,
    owners: BTreeMap<Manager, Owned>,
}

/// The fields of one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Owned {
    /// Paths of fields, and of maps that the owner has created.
    paths: BTreeSet<String>,
    /// Time of the last change, or `None` for the time of a write whose response is not known yet.
    time: Option<Timestamp>,
}

impl Manager {
    /// Returns the text by which Kubernetes sorts owners in a message.
    fn text(&self) -> String {
        let mut members = vec![("manager", &*self.name)];
        match self.operation {
            Operation::Apply => members.push(("operation", "Apply")),
            Operation::Update => members.extend([("operation", "Update"), ("apiVersion", "v1")]),
        }
        if !self.subresource.is_empty() {
            members.push(("subresource", &self.subresource));
        }
        let members = members.iter();
        let members: Vec<String> = members
            .map(|(name, value)| format!("{name:?}:{value:?}"))
            .collect();
        format!("{{{}}}", members.join(","))
    }

    /// Returns the name of the manager in a message about a conflict.
    fn shown(&self) -> String {
        let part = match &*self.subresource {
            "" => String::new(),
            subresource => format!(" with subresource {subresource:?}"),
        };
        let version = match self.operation {
            Operation::Apply => "",
            Operation::Update => " using v1",
        };
        format!("{:?}{part}{version}", self.name)
    }
}

impl Ord for Manager {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text().cmp(&other.text())
    }
}

impl PartialOrd for Manager {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ownership {
    /// Reads the fields and the owners of an object.
    ///
    /// # Errors
    /// Returns an error if a field in [`MAPS`] has no text value, or if `metadata.managedFields` is invalid.
    pub(crate) fn read(object: &Value) -> Result<Self> {
        let mut fields = Fields::new();
        for map in MAPS {
            let members = object.pointer(&map.replace('.', "/"));
            for (key, value) in members.and_then(Value::as_object).into_iter().flatten() {
                let value = value.as_str().context("a field without a text")?;
                fields.insert(format!("{map}.{key}"), value.to_owned());
            }
        }
        let mut owners = BTreeMap::new();
        let mut order = Vec::new();
        let entries = object["metadata"]["managedFields"].as_array();
        for entry in entries.into_iter().flatten() {
            let (manager, owned) =
                read_entry(entry).with_context(|| format!("the entry {entry} is invalid"))?;
            let is_update = matches!(manager.operation, Operation::Update);
            order.push((is_update, owned.time, manager.name.clone()));
            let other = owners.insert(manager, owned);
            ensure!(other.is_none(), "the entry {entry} occurs twice");
        }
        ensure!(order.is_sorted(), "the managers are in the order {order:?}");
        Ok(Self { fields, owners })
    }

    /// Returns what an apply of `config` must make of the object.
    ///
    /// # Errors
    /// Returns the message of the 409 error if other managers own fields that the apply changes, unless `force` is set.
    pub(crate) fn apply(
        &self,
        manager: &Manager,
        config: &Fields,
        force: bool,
    ) -> Result<Self, String> {
        let changed = self.changed_by(config);
        let conflicts = self.conflicts(manager, &changed);
        if !force && !conflicts.is_empty() {
            return Err(message(&conflicts));
        }
        let mut next = self.clone();
        let before = next.owners.remove(manager).unwrap_or_default();
        next.take(&changed);
        next.fields.extend(config.clone());
        for path in &before.paths {
            if !config.contains_key(path) && !next.is_owned(path) {
                next.fields.remove(path);
            }
        }
        // As in Kubernetes, the time is that of the last change of a field, not of the owners.
        let is_same = next.fields == self.fields;
        let owned = Owned {
            paths: config.keys().cloned().collect(),
            time: before.time.filter(|_| is_same),
        };
        next.owners.insert(manager.clone(), owned);
        Ok(next)
    }

    /// Returns what a create, update or patch must make of the object, whose new fields are `fields`.
    pub(crate) fn update(&self, manager: &Manager, fields: &Fields) -> Self {
        let mut changed = self.changed_by(fields);
        let is_in = |fields: &Fields, map: &str| fields.keys().any(|path| map_of(path) == map);
        let created = MAPS.iter();
        let created = created.filter(|map| is_in(fields, map) && !is_in(&self.fields, map));
        changed.extend(created.map(|map| (*map).to_owned()));
        let mut next = self.clone();
        let before = next.owners.get(manager).cloned().unwrap_or_default();
        next.take(&changed);
        let mut paths = before.paths;
        paths.extend(changed);
        let owned = Owned { paths, time: None };
        next.owners.insert(manager.clone(), owned);
        let removed = self
            .fields
            .keys()
            .filter(|path| !fields.contains_key(*path));
        next.take(&removed.cloned().collect());
        next.fields.clone_from(fields);
        next
    }

    /// Returns the managers of applies, with the fields of each.
    pub(crate) fn appliers(&self) -> impl Iterator<Item = (&Manager, Fields)> {
        let owners = self.owners.iter();
        let appliers = owners.filter(|(manager, _)| matches!(manager.operation, Operation::Apply));
        appliers.map(|(manager, owned)| {
            let fields = self.fields.iter();
            let fields = fields.filter(|(path, _)| owned.paths.contains(*path));
            let fields = fields.map(|(path, value)| (path.clone(), value.clone()));
            (manager, fields.collect())
        })
    }

    /// Returns whether `found` is this result of a write that the server has executed between two times.
    pub(crate) fn is(&self, found: &Self, [from, until]: [Timestamp; 2]) -> bool {
        let mut expected = self.clone();
        for (manager, owned) in &mut expected.owners {
            if owned.time.is_none() {
                let time = found.owners.get(manager).and_then(|owned| owned.time);
                owned.time = time.filter(|time| is_between(*time, [from, until]));
                if owned.time.is_none() {
                    return false;
                }
            }
        }
        expected == *found
    }

    /// Returns the paths of the fields whose values differ from those in `fields`, or which the object does not have.
    fn changed_by(&self, fields: &Fields) -> BTreeSet<String> {
        let differing = fields.iter();
        let differing = differing.filter(|(path, value)| self.fields.get(*path) != Some(*value));
        differing.map(|(path, _)| path.clone()).collect()
    }

    fn conflicts(
        &self,
        manager: &Manager,
        changed: &BTreeSet<String>,
    ) -> Vec<(&Manager, Vec<String>)> {
        let others = self.owners.iter().filter(|(other, _)| *other != manager);
        let conflicts = others.map(|(other, owned)| {
            let paths = owned.paths.intersection(changed).cloned();
            (other, paths.collect::<Vec<String>>())
        });
        conflicts.filter(|(_, paths)| !paths.is_empty()).collect()
    }

    /// Removes paths from all owners.
    fn take(&mut self, paths: &BTreeSet<String>) {
        self.owners.retain(|_, owned| {
            owned.paths.retain(|path| !paths.contains(path));
            !owned.paths.is_empty()
        });
    }

    fn is_owned(&self, path: &str) -> bool {
        self.owners.values().any(|owned| owned.paths.contains(path))
    }
}

/// Returns whether a time in whole seconds is that of a write between two times.
pub(crate) fn is_between(time: Timestamp, [from, until]: [Timestamp; 2]) -> bool {
    (from.as_second()..=until.as_second()).contains(&time.as_second())
}

/// Sets fields of an object, and creates the maps that it does not have.
pub(crate) fn set(object: &mut Value, fields: &Fields) {
    for (path, value) in fields {
        *member(object, path) = json!(value);
    }
}

/// Returns the member of an object at a path, after creating it if it does not exist.
pub(crate) fn member<'a>(object: &'a mut Value, path: &str) -> &'a mut Value {
    let steps = path.split('.').skip(1);
    steps.fold(object, |object, step| &mut object[step])
}

/// Returns the map that has the field of a path.
fn map_of(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(map, _)| map)
}

fn message(conflicts: &[(&Manager, Vec<String>)]) -> String {
    let count: usize = conflicts.iter().map(|(_, paths)| paths.len()).sum();
    if let ([(manager, paths)], 1) = (conflicts, count) {
        let (manager, path) = (manager.shown(), paths.concat());
        return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
    }
    let lines = conflicts.iter().map(|(manager, paths)| {
        let manager = manager.shown();
        format!("conflicts with {manager}:\n- {}", paths.join("\n- "))
    });
    let lines: Vec<String> = lines.collect();
    format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
}

fn read_entry(entry: &Value) -> Result<(Manager, Owned)> {
    let mut members = entry.as_object().context("no object")?.clone();
    let mut text = |name: &str| match members.remove(name) {
        Some(Value::String(text)) => Ok(text),
        other => bail!("{name} is {other:?}"),
    };
    let operation = match &*text("operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        other => bail!("the operation {other} does not exist"),
    };
    ensure!(
        text("apiVersion")? == "v1" && text("fieldsType")? == "FieldsV1",
        "a wrong version"
    );
    let time = text("time")?;
    let manager = Manager {
        name: text("manager")?,
        operation,
        subresource: text("subresource").unwrap_or_default(),
    };
    let mut paths = BTreeSet::new();
    let fields = members.remove("fieldsV1").context("no fieldsV1")?;
    read_paths(String::new(), fields.as_object(), &mut paths)?;
    ensure!(members.is_empty(), "the members {members:?} are unknown");
    let time = Some(time.parse()?);
    Ok((manager, Owned { paths, time }))
}

/// Collects the paths in a value of `fieldsV1`, which is at `path`.
fn read_paths(
    path: String,
    fields: Option<&Map<String, Value>>,
    paths: &mut BTreeSet<String>,
) -> Result<()> {
    let fields = fields.context("fields that are no object")?;
    if fields.is_empty() {
        ensure!(!path.is_empty(), "no fields");
        paths.insert(path);
        return Ok(());
    }
    for (step, inner) in fields {
        if step == "." {
            paths.insert(path.clone());
            continue;
        }
        let name = step.strip_prefix("f:").context("an unknown step")?;
        read_paths(format!("{path}.{name}"), inner.as_object(), paths)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(name: &str, operation: Operation) -> Manager {
        Manager {
            name: name.to_owned(),
            operation,
            subresource: String::new(),
        }
    }

    fn data(fields: &[(&str, &str)]) -> Fields {
        let fields = fields.iter();
        let fields = fields.map(|(key, value)| (format!(".data.{key}"), (*value).to_owned()));
        fields.collect()
    }

    fn paths(ownership: &Ownership, manager: &Manager) -> Vec<String> {
        let owned = ownership.owners.get(manager);
        let paths = owned.into_iter().flat_map(|owned| &owned.paths);
        paths.cloned().collect()
    }

    #[test]
    fn an_apply_changes_fields_of_others_only_by_force_and_removes_its_own() {
        let [x, y] = ["x", "y"].map(|name| manager(name, Operation::Apply));
        let created = Ownership::default();
        let created = created.apply(&x, &data(&[("a", "1"), ("b", "1")]), false);
        let created = created.unwrap();
        let config = data(&[("a", "2"), ("b", "1")]);
        assert_eq!(
            created.apply(&y, &config, false).unwrap_err(),
            "Apply failed with 1 conflict: conflict with \"x\": .data.a"
        );
        let forced = created.apply(&y, &config, true).unwrap();
        assert_eq!(paths(&forced, &x), [".data.b"]);
        assert_eq!(paths(&forced, &y), [".data.a", ".data.b"]);
        let shared = forced.apply(&y, &data(&[("c", "1")]), false).unwrap();
        assert_eq!(shared.fields, data(&[("b", "1"), ("c", "1")]));
        assert_eq!(paths(&shared, &x), [".data.b"]);
    }

    #[test]
    fn an_update_takes_the_fields_that_it_changes() {
        let x = manager("x", Operation::Apply);
        let editor = manager("e", Operation::Update);
        let created = Ownership::default().update(&editor, &data(&[("a", "1")]));
        assert_eq!(paths(&created, &editor), [".data", ".data.a"]);
        let applied = created.apply(&x, &data(&[("a", "1"), ("b", "1")]), false);
        let edited = applied.unwrap().update(&editor, &data(&[("b", "2")]));
        assert_eq!(paths(&edited, &editor), [".data", ".data.b"]);
        assert!(paths(&edited, &x).is_empty());
        let status = Manager {
            subresource: "status".to_owned(),
            ..x.clone()
        };
        let both = edited.apply(&status, &data(&[("b", "2"), ("c", "1")]), false);
        assert_eq!(
            both.unwrap().apply(&x, &data(&[("b", "3"), ("c", "2")]), false),
            Err(
                "Apply failed with 3 conflicts: conflicts with \"e\" using v1:\n- .data.b\nconflicts with \"x\" with subresource \"status\":\n- .data.b\n- .data.c"
                    .to_owned()
            )
        );
    }

    #[test]
    fn only_the_time_of_the_writer_is_open_and_within_limits() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let object = |time: &str, value: &str| {
            let fields = json!({"f:data": {"f:a": {}}});
            json!({"data": {"a": value}, "metadata": {"managedFields": [{
                "manager": "x", "operation": "Apply", "apiVersion": "v1",
                "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields,
            }]}})
        };
        let read = |time: &str, value: &str| Ownership::read(&object(time, value)).unwrap();
        let before = read("1970-01-01T00:00:05Z", "1");
        let x = manager("x", Operation::Apply);
        let repeated = before.apply(&x, &before.fields, false).unwrap();
        assert_eq!(repeated, before, "an apply of equal content keeps the time");
        let result = before.apply(&x, &data(&[("a", "2")]), false).unwrap();
        let is_result = |time: &str, value: &str| result.is(&read(time, value), [at(7), at(8)]);
        assert!(is_result("1970-01-01T00:00:07Z", "2"));
        assert!(is_result("1970-01-01T00:00:08Z", "2"));
        assert!(!is_result("1970-01-01T00:00:07Z", "1"));
        assert!(!is_result("1970-01-01T00:00:06Z", "2"));
        assert!(!is_result("1970-01-01T00:00:09Z", "2"));
        for (member, value) in [
            ("fieldsV1", json!({})),
            ("other", json!("x")),
            ("time", json!("")),
        ] {
            let mut invalid = object("1970-01-01T00:00:07Z", "1");
            invalid["metadata"]["managedFields"][0][member] = value;
            assert!(Ownership::read(&invalid).is_err(), "{invalid}");
        }
    }
}
