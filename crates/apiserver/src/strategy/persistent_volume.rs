//! Defines the strategy of persistent volumes and of claims.
//!
//! The server sets `status.lastPhaseTransitionTime` of a new volume to the time of its creation.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes, without the difference of the
//! old and the new object in the message about a field that can't change. Not checked: the sources of volumes, except that
//! there is exactly one, and node affinity.

use serde_json::{Map, Value, json};

use super::Hooks;
use super::container::parsed;
use super::field::{Field, IMMUTABLE};
use super::labels::check_selector;
use super::report::{Path, Report};
use crate::name_syntax::{NameRule, label_faults};
use crate::object::Object;
use crate::quantity::Quantity;
use crate::quote::Quoted;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_status,
    ..Hooks::checked_by(check_volume)
};
pub(super) const CLAIM: Hooks = Hooks::checked_by(check_claim);

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
    let source = |spec: &Field<'_, '_>, name: &str| spec.at(name).value.clone();
    let is_changed = SOURCES.iter().any(|name| {
        let (mut new, old) = (source(spec, name), source(old, name));
        // The secret can be set once.
        let secret = "controllerExpandSecretRef";
        if let (Some(new), true) = (new.as_object_mut(), old[secret].is_null()) {
            new.remove(secret);
        }
        new != old
    });
    if is_changed {
        let path = spec.path.child("persistentvolumesource");
        let why = "spec.persistentvolumesource is immutable after creation";
        report.forbidden(&path, why);
    }
    check_mode(spec, old, report);
    let class = "volumeAttributesClassName";
    if old.at(class).exists() && !spec.at(class).exists() {
        let why = "update from non-nil value to nil is forbidden";
        spec.at(class).forbidden(report, why);
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
    let annotation = |claim: &Object| {
        let annotations = claim.meta("annotations");
        let class = annotations.and_then(|all| all.get(CLASS)?.as_str());
        class.unwrap_or_default().to_owned()
    };
    let (class, old_class) = (annotation(claim), annotation(old));
    if class != old_class {
        let metadata = Path::root("metadata");
        let annotations = metadata.child("annotations");
        let shown = Quoted(&class);
        report.invalid(&annotations.child(CLASS), shown, IMMUTABLE);
    }
    let is_bound = Field::of(claim, "status").at("phase").is("Bound");
    if !is_equal_claim(spec.value, old_spec.value, is_bound) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        report.forbidden(&spec.path, why);
    }
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

/// Returns whether two specs differ only in what can change: the name of the volume and the class, if they were not set,
/// and what a bound claim requests.
fn is_equal_claim(new: &Value, old: &Value, is_bound: bool) -> bool {
    let empty = Map::new();
    let [new, old] = [new, old].map(|spec| spec.as_object().unwrap_or(&empty));
    let mut names = new.keys().chain(old.keys());
    names.all(|name| {
        let [new, old] = [new, old].map(|spec| spec.get(name).unwrap_or(&Value::Null));
        let is_unset = old.is_null() || old == "";
        match name.as_str() {
            _ if new == old => true,
            "volumeName" => is_unset,
            "storageClassName" => old.is_null(),
            "volumeAttributesClassName" => is_bound,
            "resources" => is_bound && without_storage(new) == without_storage(old),
            _ => false,
        }
    })
}

fn without_storage(resources: &Value) -> Value {
    let mut rest = resources.clone();
    if let Some(requests) = rest["requests"].as_object_mut() {
        requests.remove("storage");
    }
    rest
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
