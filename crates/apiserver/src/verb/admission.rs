//! Changes new and updated objects as the admission plugins of Kubernetes do that need no configuration.
//!
//! A new pod receives the tolerations of `DefaultTolerationSeconds` and the priority of its class (`Priority`), and a
//! new node the taint of `TaintNodesByCondition`.
//! Direct calls are not admitted.

use serde_json::{Map, Value, json};

use crate::object::Object;
use crate::resource::Resource;
use crate::shared::{Shared, State};
use crate::status::ApiError;
use crate::strategy::SYSTEM_CLASSES;

/// Time in seconds for which a pod tolerates that its node fails.
const TOLERATION_SECONDS: u32 = 300;

/// Key of the taint of a node that is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Key of the taint of a node that does not report.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The priority of a pod.
struct Priority {
    class: String,
    value: i64,
    preemption: Option<String>,
}

/// Changes a new object, or rejects it.
///
/// # Errors
///
/// Returns a 403 error if a pod has a priority class that does not exist, or another priority than its class.
pub(super) fn admit(
    shared: &Shared,
    state: &State,
    resource: &Resource,
    object: &mut Object,
) -> Result<(), ApiError> {
    let kind = &resource.kind;
    if kind.is_builtin("pods") {
        let mut spec = object.part("spec");
        if let Some(members) = spec.as_object_mut() {
            tolerate_failures(members);
            let set = set_priority(shared, state, members);
            set.map_err(|why| ApiError::forbidden(kind, object.name_or_prefix(), &why))?;
        }
        object.set("spec", Some(spec));
    } else if kind.is_builtin("nodes") {
        let mut spec = object.part("spec");
        add_taint(&mut spec);
        object.set("spec", Some(spec));
    }
    Ok(())
}

/// Changes an updated object: a pod keeps its priority, and tolerates the failure of its node.
pub(super) fn admit_update(resource: &Resource, old: &Object, new: &mut Object) {
    if !resource.kind.is_builtin("pods") {
        return;
    }
    let mut spec = new.part("spec");
    let old = old.get("spec").and_then(Value::as_object);
    if let (Some(members), Some(old)) = (spec.as_object_mut(), old) {
        // A pod of a direct call was not admitted, and an update without a change must not change it.
        if [NOT_READY, UNREACHABLE]
            .iter()
            .all(|key| tolerates(old, key))
        {
            tolerate_failures(members);
        }
        for name in ["priority", "preemptionPolicy"] {
            let of_old = old.get(name).filter(|value| !value.is_null());
            if let (None | Some(Value::Null), Some(value)) = (members.get(name), of_old) {
                members.insert(name.to_owned(), value.clone());
            }
        }
    }
    new.set("spec", Some(spec));
}

fn list<'a>(members: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Vec<Value>> {
    let list = members.entry(name).or_insert(Value::Null);
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut()
}

/// Adds the tolerations of failing nodes that a pod does not have.
fn tolerate_failures(spec: &mut Map<String, Value>) {
    for key in [NOT_READY, UNREACHABLE] {
        if tolerates(spec, key) {
            continue;
        }
        if let Some(tolerations) = list(spec, "tolerations") {
            tolerations.push(json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// Returns whether a pod tolerates that it is evicted because of a taint.
fn tolerates(spec: &Map<String, Value>, key: &str) -> bool {
    let is_any = |value: &Value, wanted: &str| {
        let text = value.as_str();
        text.is_none_or(|text| text.is_empty() || text == wanted)
    };
    let tolerations = spec.get("tolerations").and_then(Value::as_array);
    let mut tolerations = tolerations.into_iter().flatten();
    tolerations.any(|one| is_any(&one["key"], key) && is_any(&one["effect"], "NoExecute"))
}

fn add_taint(spec: &mut Value) {
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    if let Some(taints) = spec.as_object_mut().and_then(|spec| list(spec, "taints")) {
        let is_known = |known: &Value| known["key"] == NOT_READY && known["effect"] == "NoSchedule";
        if !taints.iter().any(is_known) {
            taints.push(taint);
        }
    }
}

fn set_priority(
    shared: &Shared,
    state: &State,
    spec: &mut Map<String, Value>,
) -> Result<(), String> {
    const FROM_CLASS: &str =
        "must not be provided in pod spec; priority admission controller computed";
    let class = spec.get("priorityClassName").and_then(Value::as_str);
    let priority = priority(shared, state, class.unwrap_or_default())?;
    if let Some(sent) = spec.get("priority").and_then(Value::as_i64)
        && sent != priority.value
    {
        let value = priority.value;
        return Err(format!(
            "the integer value of priority ({sent}) {FROM_CLASS} {value} from the given PriorityClass name"
        ));
    }
    if !priority.class.is_empty() {
        spec.insert("priorityClassName".to_owned(), json!(priority.class));
    }
    spec.insert("priority".to_owned(), json!(priority.value));
    let Some(preemption) = priority.preemption else {
        return Ok(());
    };
    if let Some(sent) = spec.get("preemptionPolicy").and_then(Value::as_str)
        && sent != preemption
    {
        return Err(format!(
            "the string value of PreemptionPolicy ({sent}) {FROM_CLASS} {preemption} from the given PriorityClass name"
        ));
    }
    spec.insert("preemptionPolicy".to_owned(), json!(preemption));
    Ok(())
}

/// Returns the priority of a class. Without a name, returns that of the global default.
fn priority(shared: &Shared, state: &State, class: &str) -> Result<Priority, String> {
    let lower = || Some("PreemptLowerPriority".to_owned());
    let classes = shared.builtin.priority_classes.as_ref();
    if class.is_empty() {
        let all = classes.into_iter().flat_map(|classes| {
            let entries = state.newest_below(classes.collection, "");
            // The classes of the system are no defaults, and parsing them for each pod takes time.
            let of_users = entries
                .filter(|entry| SYSTEM_CLASSES.iter().all(|(name, _)| *name != entry.name()));
            of_users.map(|entry| entry.object(classes))
        });
        let defaults = all.filter(|class| class.get("globalDefault") == Some(&json!(true)));
        let default = defaults
            .map(|class| of_class(&class))
            .min_by_key(|class| class.value);
        return Ok(default.unwrap_or_else(|| Priority {
            class: String::new(),
            value: 0,
            preemption: lower(),
        }));
    }
    let stored = classes.and_then(|classes| {
        let entry = state.newest(classes.collection, class)?;
        Some(of_class(&entry.object(classes)))
    });
    let system = SYSTEM_CLASSES.iter().find(|(name, _)| *name == class);
    let system = system.map(|(name, value)| Priority {
        class: (*name).to_owned(),
        value: *value,
        preemption: lower(),
    });
    stored
        .or(system)
        .ok_or_else(|| format!("no PriorityClass with name {class} was found"))
}

fn of_class(class: &Map<String, Value>) -> Priority {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let name = class
        .get("metadata")
        .and_then(|metadata| metadata.get("name"));
    Priority {
        class: text(name).unwrap_or_default(),
        value: class.get("value").and_then(Value::as_i64).unwrap_or(0),
        preemption: text(class.get("preemptionPolicy")),
    }
}
