//! Defines the strategy of persistent volumes and of claims.
//!
//! The server sets `status.lastPhaseTransitionTime` of a new volume to the time of its creation.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes. Not checked: the sources of
//! volumes, except that there is exactly one, and node affinity.

use serde_json::{Value, json};

use super::container::parsed;
use super::field::{Field, IMMUTABLE};
use super::internal::shown_difference;
use super::labels::check_selector;
use super::report::{Path, Report};
use super::unchanged::is_unchanged;
use super::{Hooks, claim_source};
use crate::name_syntax::{NameRule, label_faults};
use crate::object::Object;
use crate::quantity::Quantity;
use crate::quote::Quoted;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_status,
    ..Hooks::checked_by(check_volume)
};
pub(super) const CLAIM: Hooks = Hooks {
    prepare_create: Some(claim_source::create),
    prepare_update: claim_source::update,
    ..Hooks::checked_by(check_claim)
};

const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// The members of a volume's spec that are sources, in the order in which Kubernetes checks them.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Annotation with the storage class of a claim, which is older than the field.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

fn prepare_status(status: &mut Value, _volume: &Object, now: &str) {
    status["lastPhaseTransitionTime"] = json!(now);
}

fn check_volume(volume: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(volume, "spec");
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        modes.required(report);
    }
    check_access_modes(&modes, report);
    check_capacity(&spec.at("capacity"), report);
    let policy = spec.at("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        policy.check_one_of(report, &["Delete", "Recycle", "Retain"]);
    }
    check_source(&spec, report);
    check_names(&spec, report);
    let class = spec.at("volumeAttributesClassName");
    if class.exists() {
        if class.is_empty() {
            report.required(&class.path, "an empty string is disallowed");
        }
        if !spec.at("csi").exists() {
            let why = "has to be specified when using volumeAttributesClassName";
            report.required(&spec.at("csi").path, why);
        }
    }
    if let Some(old) = old {
        check_volume_update(&spec, &Field::of(old, "spec"), report);
    }
}

fn check_access_modes(modes: &Field<'_, '_>, report: &mut Report) {
    for mode in modes.items() {
        if !ACCESS_MODES.contains(&mode.text()) {
            report.unsupported(&modes.path, mode.shown(), &ACCESS_MODES);
        }
    }
    let is_exclusive = modes.items().any(|mode| mode.is("ReadWriteOncePod"));
    let others = ACCESS_MODES
        .iter()
        .filter(|mode| **mode != "ReadWriteOncePod");
    let mut others = others.filter(|other| modes.items().any(|mode| mode.is(other)));
    if is_exclusive && others.next().is_some() {
        let why = "may not use ReadWriteOncePod with other access modes";
        modes.forbidden(report, why);
    }
}

fn check_capacity(capacity: &Field<'_, '_>, report: &mut Report) {
    if capacity.is_empty() {
        capacity.required(report);
    }
    if !capacity.at("storage").exists() || capacity.entries().count() > 1 {
        report.unsupported(&capacity.path, capacity.shown(), &["storage"]);
    }
    for (_, quantity) in capacity.entries() {
        check_positive(&quantity, report);
    }
}

/// Checks that a quantity is positive, and returns whether it is.
fn check_positive(quantity: &Field<'_, '_>, report: &mut Report) -> bool {
    let is_positive = parsed(quantity).is_none_or(|quantity| quantity.sign() > 0);
    if !is_positive {
        quantity.invalid(report, "must be greater than zero");
    }
    is_positive
}

fn check_source(spec: &Field<'_, '_>, report: &mut Report) {
    let mut sources = SOURCES.iter().filter(|name| spec.at(name).exists());
    if sources.next().is_none() {
        report.required(&spec.path, "must specify a volume type");
    }
    for another in sources {
        let why = "may not specify more than 1 volume type";
        spec.at(another).forbidden(report, why);
    }
    let path = spec.at("hostPath");
    let path = path.at("path");
    if spec.at("hostPath").exists() && path.is_empty() {
        path.required(report);
    }
}

/// Checks the names of classes and the volume mode.
fn check_names(spec: &Field<'_, '_>, report: &mut Report) {
    let faults = |name: &str| NameRule::Subdomain.faults(name);
    let class = spec.at("storageClassName");
    if !class.is_empty() {
        class.check_text(report, faults);
    }
    let mode = spec.at("volumeMode");
    if mode.exists() {
        mode.check_one_of(report, &VOLUME_MODES);
    }
}

fn check_volume_update(spec: &Field<'_, '_>, old: &Field<'_, '_>, report: &mut Report) {
    check_source_change(spec, old.value, report);
    check_mode(spec, old, report);
    let class = "volumeAttributesClassName";
    if old.at(class).exists() && !spec.at(class).exists() {
        let why = "update from non-nil value to nil is forbidden";
        spec.at(class).forbidden(report, why);
    }
}

/// Checks that the source of a volume does not change. One secret of a driver can be set once.
fn check_source_change(spec: &Field<'_, '_>, old: &Value, report: &mut Report) {
    let is_same = |new: &Value| {
        let mut names = SOURCES.iter();
        names.all(|name| is_unchanged(&new[*name], &old[*name]))
    };
    if is_same(spec.value) {
        return;
    }
    let mut compared = spec.value.clone();
    let secret = "controllerExpandSecretRef";
    let had_none = old["csi"].is_object() && old["csi"][secret].is_null();
    let driver = compared.get_mut("csi").and_then(Value::as_object_mut);
    if let Some(driver) = driver.filter(|_| had_none) {
        driver.remove(secret);
    }
    if !is_same(&compared) {
        let path = spec.path.child("persistentvolumesource");
        let difference = shown_difference("PersistentVolumeSource", old, &compared);
        let why =
            format_args!("spec.persistentvolumesource is immutable after creation\n{difference}");
        report.forbidden(&path, why);
    }
}

/// Checks that the volume mode does not change. The path is wrong, as in Kubernetes.
fn check_mode(spec: &Field<'_, '_>, old: &Field<'_, '_>, report: &mut Report) {
    let mode = spec.at("volumeMode");
    if mode.value != old.at("volumeMode").value {
        report.invalid(&Path::root("volumeMode"), mode.shown(), IMMUTABLE);
    }
}

fn check_claim(claim: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(claim, "spec");
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        report.required(&modes.path, "at least 1 access mode is required");
    }
    check_selector(&spec.at("selector"), report);
    check_access_modes(&modes, report);
    let resources = spec.at("resources");
    let storage = Field {
        path: resources.path.key("storage"),
        value: &resources.value["requests"]["storage"],
    };
    if storage.exists() {
        check_positive(&storage, report);
    } else {
        storage.required(report);
    }
    check_names(&spec, report);
    for name in ["dataSource", "dataSourceRef"] {
        check_data_source(&spec.at(name), report);
    }
    let class = spec.at("volumeAttributesClassName");
    if !class.is_empty() {
        class.check_text(report, |name| NameRule::Subdomain.faults(name));
    }
    if let Some(old) = old {
        check_claim_update((claim, old), report);
    }
}

fn check_data_source(source: &Field<'_, '_>, report: &mut Report) {
    if !source.exists() {
        return;
    }
    let (kind, group) = (source.at("kind"), source.at("apiGroup"));
    for field in [&source.at("name"), &kind] {
        if field.is_empty() {
            field.required(report);
        }
    }
    if group.is_empty() && !kind.is("PersistentVolumeClaim") {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        report.invalid(&source.path, kind.shown(), why);
    }
    if !group.is_empty() {
        group.check_text(report, |group| NameRule::Subdomain.faults(group));
    }
    let namespace = source.at("namespace");
    if !namespace.is_empty() {
        namespace.check_text(report, label_faults);
    }
}

fn check_claim_update((claim, old): (&Object, &Object), report: &mut Report) {
    let (spec, old_spec) = (Field::of(claim, "spec"), Field::of(old, "spec"));
    let class_of = |claim: &'_ Object| {
        let annotations = claim.meta("annotations");
        annotations.and_then(|all| Some(all.get(CLASS)?.as_str()?.to_owned()))
    };
    let (class, old_class) = (class_of(claim), class_of(old));
    let sets_class = old_spec.value["storageClassName"].is_null() && {
        let set = spec.value["storageClassName"].as_str();
        set.is_some_and(|set| old_class.as_deref().is_none_or(|old| set == old))
    };
    let is_moved = sets_class && class.is_none();
    if class.as_deref().unwrap_or_default() != old_class.as_deref().unwrap_or_default() && !is_moved
    {
        let metadata = Path::root("metadata");
        let annotations = metadata.child("annotations");
        let shown = Quoted(class.as_deref().unwrap_or_default());
        report.invalid(&annotations.child(CLASS), shown, IMMUTABLE);
    }
    let is_bound = Field::of(claim, "status").at("phase").is("Bound");
    check_claim_spec(&spec, old_spec.value, (is_bound, sets_class), report);
    check_size(&spec, (&old_spec, old), report);
    check_mode(&spec, &old_spec, report);
    let class = spec.at("volumeAttributesClassName");
    let current = Field::of(old, "status");
    let is_applied = current.at("currentVolumeAttributesClassName").exists();
    if is_applied && class.is_empty() {
        let what = if class.exists() {
            "empty string"
        } else {
            "nil"
        };
        let why = format!(
            "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        );
        class.forbidden(report, why);
    }
}

/// Checks the changes of a claim. The name of the volume can be set if it was not, and a bound claim can request more.
/// `sets_class` is whether the storage class is set in a permitted way.
fn check_claim_spec(
    spec: &Field<'_, '_>,
    old: &Value,
    (is_bound, sets_class): (bool, bool),
    report: &mut Report,
) {
    if spec.value == old {
        return;
    }
    let (mut new, mut old) = (spec.value.clone(), old.clone());
    // An object of an earlier version has only one source.
    claim_source::normalize(&mut old);
    if old["volumeName"].is_null() || old["volumeName"] == "" {
        copy(&new, &mut old, "volumeName");
    }
    if sets_class {
        copy(&old, &mut new, "storageClassName");
    }
    if is_bound {
        copy(&old, &mut new, "volumeAttributesClassName");
        let requests = new.pointer_mut("/resources/requests");
        if let Some(requests) = requests {
            copy(&old["resources"]["requests"], requests, "storage");
        }
    }
    if !is_unchanged(&new, &old) {
        let difference = shown_difference("PersistentVolumeClaimSpec", &old, &new);
        let why = format_args!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{difference}"
        );
        report.forbidden(&spec.path, why);
    }
}

/// Gives `to` the member of `from`, or none.
fn copy(from: &Value, to: &mut Value, name: &str) {
    if let Some(members) = to.as_object_mut() {
        match from.get(name) {
            Some(value) => drop(members.insert(name.to_owned(), value.clone())),
            None => drop(members.remove(name)),
        }
    }
}

/// Checks that a request does not become less than the capacity.
fn check_size(
    spec: &Field<'_, '_>,
    (old_spec, old): (&Field<'_, '_>, &Object),
    report: &mut Report,
) {
    let size = |value: &Value| {
        let text = value.as_str().unwrap_or("0");
        Quantity::parse(text).ok()
    };
    let of = |spec: &Field<'_, '_>| size(&spec.value["resources"]["requests"]["storage"]);
    let capacity = Field::of(old, "status");
    let capacity = size(&capacity.value["capacity"]["storage"]);
    if let (Some(new), Some(old), Some(capacity)) = (of(spec), of(old_spec), capacity)
        && new.compare(old).is_lt()
        && new.compare(capacity).is_le()
    {
        let (resources, requests) = (spec.at("resources"), "requests");
        let requests = resources.at(requests);
        let why = "field can not be less than status.capacity";
        requests.at("storage").forbidden(report, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Part;

    /// Returns the messages about an update.
    fn errors(hooks: Hooks, old: &Value, new: &Value) -> Vec<String> {
        let [old, new] = [old, new].map(|value| Object::stored(value.as_object().unwrap().clone()));
        let errors = hooks.errors(Some(&old), &new, Part::Main);
        let texts = errors.iter();
        texts
            .map(|error| format!("{}: {}", error.field, error.body))
            .collect()
    }

    fn claim(changes: &Value) -> Value {
        let mut claim = json!({
            "metadata": {"name": "a"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
        });
        merge(&mut claim, changes);
        claim
    }

    fn volume(source: &Value) -> Value {
        json!({
            "metadata": {"name": "a"},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "csi": source},
        })
    }

    fn merge(object: &mut Value, changes: &Value) {
        match (object, changes) {
            (Value::Object(members), Value::Object(changes)) => {
                for (name, change) in changes {
                    merge(members.entry(name).or_insert(Value::Null), change);
                }
            }
            (object, changes) => *object = changes.clone(),
        }
    }

    #[test]
    fn a_storage_class_can_be_set_once_and_moves_from_the_annotation() {
        let with_annotation = json!({"metadata": {"annotations": {CLASS: "c"}}});
        let with_class = |class: &str| json!({"spec": {"storageClassName": class}});
        let none = json!({});
        for (old, new, expected) in [
            (&none, &with_class("c"), 0),
            (&with_annotation, &with_class("c"), 0),
            (&with_annotation, &with_class("d"), 2),
            (&with_annotation, &none, 1),
            (&with_class("c"), &with_class("d"), 1),
            (&with_class("c"), &none, 1),
        ] {
            let found = errors(CLAIM, &claim(old), &claim(new));
            assert_eq!(found.len(), expected, "{old} {new}: {found:?}");
        }
    }

    #[test]
    fn only_a_bound_claim_can_grow() {
        let with = |size: &str, phase: &str| {
            claim(&json!({
                "spec": {"resources": {"requests": {"storage": size}}},
                "status": {"phase": phase, "capacity": {"storage": "1Gi"}},
            }))
        };
        for (size, phase, expected) in [
            ("3Gi", "Bound", None),
            ("1500Mi", "Bound", None),
            (
                "1Gi",
                "Bound",
                Some(
                    "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity",
                ),
            ),
            ("2048Mi", "Pending", None),
            (
                "3Gi",
                "Pending",
                Some(
                    "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n@@ -6,7 +6,7 @@\n  \"Resources\": {\n   \"Limits\": null,\n   \"Requests\": {\n-   \"storage\": \"2Gi\"\n+   \"storage\": \"3Gi\"\n   }\n  },\n  \"VolumeName\": \"\",\n",
                ),
            ),
        ] {
            let found = errors(CLAIM, &with("2Gi", phase), &with(size, phase));
            assert_eq!(found, Vec::from_iter(expected), "{size} {phase}");
        }
        let wrong = claim(&json!({"spec": {"resources": "x"}, "status": {"phase": "Bound"}}));
        let found = errors(CLAIM, &wrong, &with("2Gi", "Bound"));
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn the_secret_for_expansions_can_be_set_once() {
        let with = |secret: &Value| {
            volume(
                &json!({"driver": "d", "volumeHandle": "h", "controllerExpandSecretRef": secret}),
            )
        };
        let (none, one) = (
            with(&Value::Null),
            with(&json!({"name": "a", "namespace": "b"})),
        );
        assert_eq!(errors(HOOKS, &none, &one), [""; 0]);
        let found = errors(HOOKS, &one, &none);
        let [found] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!(
            found.contains("-  \"ControllerExpandSecretRef\": {\n-   \"Name\": \"a\""),
            "{found}"
        );
    }
}
