//! The custom resource definitions that this program writes, and what a server must serve for each of them.
//!
//! The number in a definition determines its versions and its schema.
//!
//! Guarantees: [`objects`] returns an error unless a kind is served in the versions of its definition, with
//! the defaults of its schema and without unknown fields.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use kube_client::Client;
use serde_json::{Map, Value, json};

use crate::{
    object::{CUSTOM, DEFINITION, GROUP, KINDS, Key, Seen},
    request::{Answer, get},
};

/// All versions of the custom kinds. The first one is always served.
const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];

/// Number of fields in a schema that no object has.
///
/// With a larger definition, the server needs more time between the creation of a definition and the condition
/// `Established`, so more kills happen in between.
const UNUSED_FIELDS: usize = 100;

/// The versions and the schema of a definition.
#[derive(Clone, Copy)]
struct Form {
    serves_v2: bool,
    /// Whether objects are stored in `v2` instead of `v1`. Also possible if `v2` is not served.
    stores_v2: bool,
    /// Whether the definition has `v3`, which is served.
    has_v3: bool,
    /// The field of `spec` that has a default.
    field: &'static str,
}

impl Form {
    /// Returns the form that a number determines.
    fn of(value: u64) -> Self {
        let bit = |nth: u32| value >> nth & 1 == 1;
        Self {
            serves_v2: bit(0),
            stores_v2: bit(1),
            has_v3: bit(2),
            field: if bit(3) { "size" } else { "color" },
        }
    }

    fn serves(self, version: &str) -> bool {
        match version {
            "v2" => self.serves_v2,
            "v3" => self.has_v3,
            _ => true,
        }
    }

    fn storage(self) -> &'static str {
        if self.stores_v2 { "v2" } else { "v1" }
    }

    fn schema(self) -> Value {
        let unused =
            (0..UNUSED_FIELDS).map(|nth| (format!("unused{nth}"), json!({"type": "string"})));
        let mut fields: Map<String, Value> = unused.collect();
        let default = json!({"type": "string", "default": "default"});
        fields.insert(self.field.to_owned(), default);
        let spec = json!({"type": "object", "properties": fields});
        json!({"type": "object", "properties": {"spec": spec}})
    }
}

/// Returns the definition of a custom kind, with the number `value` and a text of at most `bytes` bytes.
pub(crate) fn definition(kind: usize, value: u64, bytes: usize) -> Value {
    let form = Form::of(value);
    let mut definition = Key::of_definition(kind).object(value, bytes);
    let present = VERSIONS.iter().filter(|name| **name != "v3" || form.has_v3);
    let versions = present.map(|name| {
        json!({
            "name": name,
            "served": form.serves(name),
            "storage": *name == form.storage(),
            "schema": {"openAPIV3Schema": form.schema()},
        })
    });
    let versions: Vec<Value> = versions.collect();
    let plural = KINDS[kind].resource.split('.').next();
    definition["spec"] = json!({
        "group": GROUP,
        "scope": if KINDS[kind].is_namespaced() { "Namespaced" } else { "Cluster" },
        "names": {"plural": plural, "kind": KINDS[kind].name},
        "versions": versions,
    });
    definition
}

/// Returns whether a condition of a definition is true.
pub(crate) fn is_true(definition: &Value, condition: &str) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == condition && one["status"] == "True")
}

/// Checks that the server has completed the work that follows a write of a definition.
///
/// # Errors
/// Returns an error if the definition is not established or not deleted completely, or if its status does not
/// agree with its `spec`.
pub(crate) fn check(definition: &Value) -> Result<()> {
    let (metadata, status) = (&definition["metadata"], &definition["status"]);
    let seen = Seen::read(DEFINITION, definition)?;
    let stored = status["storedVersions"].as_array();
    let storage = Form::of(seen.value).storage();
    ensure!(
        is_true(definition, "NamesAccepted")
            && is_true(definition, "Established")
            && metadata["deletionTimestamp"].is_null()
            && status["acceptedNames"]["kind"] == definition["spec"]["names"]["kind"]
            && stored.is_some_and(|stored| stored.iter().any(|version| version == storage)),
        "{} is incomplete: deletionTimestamp is {}, status is {status}",
        seen.key,
        metadata["deletionTimestamp"],
    );
    Ok(())
}

/// Returns the objects of a custom kind, after a comparison of all versions.
///
/// `value` is the number in the kind's definition. No client may change the definition or write an object of the
/// kind during the call.
///
/// # Errors
/// Returns an error if the kind is not served in exactly the versions of the definition, if the objects of two
/// versions differ, or if an object does not have the form that the schema requires.
pub(crate) async fn objects(
    client: &Client,
    kind: usize,
    value: u64,
) -> Result<Answer<(Vec<Seen>, u64)>> {
    let form = Form::of(value);
    let mut first = None;
    for version in VERSIONS {
        let uri = KINDS[kind].collection.replace("v1", version);
        let list = match get(client, &uri).await? {
            Answer::Lost => return Ok(Answer::Lost),
            Answer::NotFound if !form.serves(version) => continue,
            Answer::NotFound => bail!("{uri} is not served"),
            Answer::Found(_) if !form.serves(version) => bail!("{uri} is served"),
            Answer::Found(list) => list,
        };
        let items = list["items"].as_array().context("a list without items")?;
        let spec = json!({form.field: "default"});
        for item in items {
            ensure!(
                item["spec"] == spec,
                "an object of {uri} has the spec {}, not {spec}",
                item["spec"]
            );
        }
        let objects = Seen::list(kind, &list)?;
        let expected = first.get_or_insert_with(|| objects.clone());
        ensure!(
            expected.0 == objects.0,
            "{uri} differs: {objects:?}, {expected:?}"
        );
    }
    Ok(first.map_or(Answer::NotFound, Answer::Found))
}

/// Checks all stored definitions with [`check`], and that discovery has exactly their kinds.
///
/// # Errors
/// Returns an error if a check fails, or if the server does not respond.
pub(crate) async fn check_all(client: &Client) -> Result<()> {
    let Answer::Found(stored) = get(client, KINDS[DEFINITION].collection).await? else {
        bail!("the server does not respond");
    };
    let mut items = stored["items"].as_array().into_iter().flatten();
    items.try_for_each(check)?;
    let (stored, _) = Seen::list(DEFINITION, &stored)?;
    for version in VERSIONS {
        let list = match get(client, &format!("/apis/{GROUP}/{version}")).await? {
            Answer::Lost => bail!("the server does not respond"),
            Answer::NotFound => Value::Null,
            Answer::Found(list) => list,
        };
        let resources = list["resources"].as_array().into_iter().flatten();
        let kinds = resources.filter_map(|resource| resource["kind"].as_str());
        let kinds: BTreeSet<&str> = kinds.collect();
        let defined = CUSTOM.filter(|kind| {
            let key = Key::of_definition(*kind);
            let mut definitions = stored.iter().filter(|seen| seen.key == key);
            definitions.any(|seen| Form::of(seen.value).serves(version))
        });
        let defined: BTreeSet<&str> = defined.map(|kind| KINDS[kind].name).collect();
        ensure!(
            kinds == defined,
            "the kinds of {version} are {kinds:?}, but {defined:?} are defined"
        );
    }
    Ok(())
}
