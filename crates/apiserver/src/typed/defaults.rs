//! Sets the defaults of built-in kinds.
//!
//! Guarantees: the defaults are those of the functions `SetDefaults_*` and of the markers `+default` in Kubernetes 1.36,
//! with two exceptions: pod-level requests and limits are not derived from those of the containers, and a taint of a
//! device has no default time.
//!
//! Most defaults belong to a type, wherever it is: a container has the same ones in a pod and in the template of a
//! deployment. [`FIELDS`] has the defaults that depend on nothing else, and [`FUNCTIONS`] the others. An outer type
//! comes before the types of its fields.

mod core;
mod image;
mod workload;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use kube_informer_protobuf::{Container, Field, Form, MessageId, Messages, Presence, Type};
use serde_json::{Map, Value};

use super::value_type::{ValueType, message};
use super::{DEFAULTS_BYTES_MAX, TooManyDefaults};
use crate::kinds::Kind;
use crate::quantity;

pub(crate) use self::core::is_external;

type Members = Map<String, Value>;

/// Sets defaults that depend on other fields.
type Function = fn(&mut Members);

/// The types with defaults, without `k8s.io.`: fields that are set if they have no value, and the values as JSON.
#[rustfmt::skip] // one row per type
const FIELDS: &[(&str, &[(&str, &str)])] = &[
    ("api.admissionregistration.v1.MatchResources", &[("matchPolicy", r#""Equivalent""#), ("namespaceSelector", "{}"), ("objectSelector", "{}")]),
    ("api.admissionregistration.v1.MutatingAdmissionPolicySpec", &[("failurePolicy", r#""Fail""#)]),
    ("api.admissionregistration.v1.MutatingWebhook", &[("failurePolicy", r#""Fail""#), ("matchPolicy", r#""Equivalent""#), ("namespaceSelector", "{}"), ("objectSelector", "{}"), ("timeoutSeconds", "10"), ("reinvocationPolicy", r#""Never""#)]),
    ("api.admissionregistration.v1.Rule", &[("scope", r#""*""#)]),
    ("api.admissionregistration.v1.ServiceReference", &[("port", "443")]),
    ("api.admissionregistration.v1.ValidatingAdmissionPolicySpec", &[("failurePolicy", r#""Fail""#)]),
    ("api.admissionregistration.v1.ValidatingWebhook", &[("failurePolicy", r#""Fail""#), ("matchPolicy", r#""Equivalent""#), ("namespaceSelector", "{}"), ("objectSelector", "{}"), ("timeoutSeconds", "10")]),
    ("api.apps.v1.DaemonSetSpec", &[("revisionHistoryLimit", "10")]),
    ("api.apps.v1.DeploymentSpec", &[("replicas", "1"), ("revisionHistoryLimit", "10"), ("progressDeadlineSeconds", "600")]),
    ("api.apps.v1.ReplicaSetSpec", &[("replicas", "1")]),
    ("api.apps.v1.StatefulSetSpec", &[("podManagementPolicy", r#""OrderedReady""#), ("persistentVolumeClaimRetentionPolicy", "{}"), ("replicas", "1"), ("revisionHistoryLimit", "10")]),
    ("api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy", &[("whenDeleted", r#""Retain""#), ("whenScaled", r#""Retain""#)]),
    ("api.authentication.v1.TokenRequestSpec", &[("expirationSeconds", "3600")]),
    ("api.autoscaling.v1.HorizontalPodAutoscalerSpec", &[("minReplicas", "1")]),
    ("api.autoscaling.v2.HorizontalPodAutoscalerSpec", &[("minReplicas", "1"), ("metrics", r#"[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]"#)]),
    ("api.batch.v1.CronJobSpec", &[("concurrencyPolicy", r#""Allow""#), ("suspend", "false"), ("successfulJobsHistoryLimit", "3"), ("failedJobsHistoryLimit", "1")]),
    ("api.batch.v1.PodFailurePolicyOnPodConditionsPattern", &[("status", r#""True""#)]),
    ("api.core.v1.AzureDiskVolumeSource", &[("cachingMode", r#""ReadWrite""#), ("fsType", r#""ext4""#), ("readOnly", "false"), ("kind", r#""Shared""#)]),
    ("api.core.v1.ConfigMapVolumeSource", &[("defaultMode", "420")]),
    ("api.core.v1.Container", &[("terminationMessagePath", r#""/dev/termination-log""#), ("terminationMessagePolicy", r#""File""#)]),
    ("api.core.v1.ContainerPort", &[("protocol", r#""TCP""#)]),
    ("api.core.v1.DownwardAPIVolumeSource", &[("defaultMode", "420")]),
    ("api.core.v1.EndpointPort", &[("protocol", r#""TCP""#)]),
    ("api.core.v1.EphemeralContainerCommon", &[("terminationMessagePath", r#""/dev/termination-log""#), ("terminationMessagePolicy", r#""File""#)]),
    ("api.core.v1.FileKeySelector", &[("optional", "false")]),
    ("api.core.v1.GRPCAction", &[("service", r#""""#)]),
    ("api.core.v1.HTTPGetAction", &[("path", r#""/""#), ("scheme", r#""HTTP""#)]),
    ("api.core.v1.HostPathVolumeSource", &[("type", r#""""#)]),
    ("api.core.v1.ISCSIPersistentVolumeSource", &[("iscsiInterface", r#""default""#)]),
    ("api.core.v1.ISCSIVolumeSource", &[("iscsiInterface", r#""default""#)]),
    ("api.core.v1.NamespaceStatus", &[("phase", r#""Active""#)]),
    ("api.core.v1.ObjectFieldSelector", &[("apiVersion", r#""v1""#)]),
    ("api.core.v1.PersistentVolumeClaimSpec", &[("volumeMode", r#""Filesystem""#)]),
    ("api.core.v1.PersistentVolumeClaimStatus", &[("phase", r#""Pending""#)]),
    ("api.core.v1.PodSpec", &[("dnsPolicy", r#""ClusterFirst""#), ("restartPolicy", r#""Always""#), ("securityContext", "{}"), ("terminationGracePeriodSeconds", "30"), ("schedulerName", r#""default-scheduler""#)]),
    ("api.core.v1.Probe", &[("timeoutSeconds", "1"), ("periodSeconds", "10"), ("successThreshold", "1"), ("failureThreshold", "3")]),
    ("api.core.v1.ProjectedVolumeSource", &[("defaultMode", "420")]),
    ("api.core.v1.RBDPersistentVolumeSource", &[("pool", r#""rbd""#), ("user", r#""admin""#), ("keyring", r#""/etc/ceph/keyring""#)]),
    ("api.core.v1.RBDVolumeSource", &[("pool", r#""rbd""#), ("user", r#""admin""#), ("keyring", r#""/etc/ceph/keyring""#)]),
    ("api.core.v1.ReplicationControllerSpec", &[("replicas", "1")]),
    ("api.core.v1.ScaleIOPersistentVolumeSource", &[("storageMode", r#""ThinProvisioned""#), ("fsType", r#""xfs""#)]),
    ("api.core.v1.ScaleIOVolumeSource", &[("storageMode", r#""ThinProvisioned""#), ("fsType", r#""xfs""#)]),
    ("api.core.v1.Secret", &[("type", r#""Opaque""#)]),
    ("api.core.v1.SecretVolumeSource", &[("defaultMode", "420")]),
    ("api.core.v1.ServiceAccountTokenProjection", &[("expirationSeconds", "3600")]),
    ("api.discovery.v1.EndpointPort", &[("name", r#""""#), ("protocol", r#""TCP""#)]),
    ("api.flowcontrol.v1.ExemptPriorityLevelConfiguration", &[("nominalConcurrencyShares", "0"), ("lendablePercent", "0")]),
    ("api.flowcontrol.v1.FlowSchemaSpec", &[("matchingPrecedence", "1000")]),
    ("api.flowcontrol.v1.LimitedPriorityLevelConfiguration", &[("nominalConcurrencyShares", "30"), ("lendablePercent", "0")]),
    ("api.flowcontrol.v1.QueuingConfiguration", &[("handSize", "8"), ("queues", "64"), ("queueLengthLimit", "50")]),
    ("api.networking.v1.IngressClassParametersReference", &[("scope", r#""Cluster""#)]),
    ("api.networking.v1.NetworkPolicyPort", &[("protocol", r#""TCP""#)]),
    ("api.rbac.v1.RoleRef", &[("apiGroup", r#""rbac.authorization.k8s.io""#)]),
    ("api.resource.v1.NodeAllocatableResourceMapping", &[("allocationMultiplier", r#""1""#)]),
    ("api.resource.v1.DeviceToleration", &[("operator", r#""Equal""#)]),
    ("api.scheduling.v1.PriorityClass", &[("preemptionPolicy", r#""PreemptLowerPriority""#)]),
    ("api.storage.v1.CSIDriverSpec", &[("attachRequired", "true"), ("podInfoOnMount", "false"), ("storageCapacity", "false"), ("fsGroupPolicy", r#""ReadWriteOnceWithFSType""#), ("volumeLifecycleModes", r#"["Persistent"]"#), ("requiresRepublish", "false"), ("seLinuxMount", "false")]),
    ("api.storage.v1.StorageClass", &[("reclaimPolicy", r#""Delete""#), ("volumeBindingMode", r#""Immediate""#)]),
    ("kube_aggregator.pkg.apis.apiregistration.v1.ServiceReference", &[("port", "443")]),
];

/// The types whose defaults depend on other fields, without `k8s.io.api.`.
#[rustfmt::skip] // one row per type
const FUNCTIONS: &[(&str, Function)] = &[
    ("apps.v1.DaemonSetUpdateStrategy", workload::daemon_set_strategy),
    ("apps.v1.DeploymentStrategy", workload::deployment_strategy),
    ("apps.v1.StatefulSetSpec", workload::claim_templates),
    ("apps.v1.StatefulSetUpdateStrategy", workload::stateful_set_strategy),
    ("autoscaling.v2.HorizontalPodAutoscalerBehavior", workload::scaling_behavior),
    ("batch.v1.Job", workload::job),
    ("core.v1.Container", core::container),
    ("core.v1.EphemeralContainerCommon", core::container),
    ("core.v1.ImageVolumeSource", core::image_volume),
    ("core.v1.LimitRangeItem", core::limit_range_item),
    ("core.v1.Namespace", core::namespace),
    ("core.v1.NodeStatus", core::node_status),
    ("core.v1.PersistentVolume", core::persistent_volume),
    ("core.v1.Pod", core::pod),
    ("core.v1.ReplicationController", workload::replication_controller),
    ("core.v1.Service", core::service),
    ("core.v1.Volume", core::volume),
    ("networking.v1.NetworkPolicySpec", workload::network_policy),
    ("rbac.v1.Subject", workload::subject),
    ("resource.v1.DeviceSubRequest", workload::device_request),
    ("resource.v1.ExactDeviceRequest", workload::device_request),
];

/// The group whose objects have no defaults, although it has types with defaults of other groups.
const WITHOUT_DEFAULTS: &str = "node.k8s.io";

/// Number of bytes that each JSON object counts for, because a [`Function`] can add members to it.
const OBJECT_BYTES: usize = 16;

/// The defaults of one type.
#[derive(Default)]
struct Rule {
    fields: Vec<FieldDefault>,
    function: Option<Function>,
}

/// The default of a field.
struct FieldDefault {
    field: &'static str,
    value: Value,
    /// Size of the member as JSON, without quotes.
    bytes: usize,
}

/// Sets the defaults of an object of a built-in kind.
///
/// # Errors
///
/// Returns an error if the defaults are too large. The object then has only some of its defaults.
pub(crate) fn set_defaults(kind: &Kind, object: &mut Members) -> Result<(), TooManyDefaults> {
    let ValueType::Message(id) = ValueType::of(kind) else {
        return Ok(());
    };
    if kind.group == WITHOUT_DEFAULTS {
        return Ok(());
    }
    let count: usize = object.values().map(objects).sum();
    let of_functions = count.saturating_mul(OBJECT_BYTES);
    let mut left = DEFAULTS_BYTES_MAX
        .checked_sub(of_functions)
        .ok_or(TooManyDefaults)?;
    set(id, object, &mut left)
}

/// Returns the number of JSON objects in a value.
fn objects(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(objects).sum::<usize>(),
        Value::Array(items) => items.iter().map(objects).sum(),
        _ => 0,
    }
}

fn rules() -> &'static BTreeMap<String, Rule> {
    static RULES: OnceLock<BTreeMap<String, Rule>> = OnceLock::new();
    RULES.get_or_init(|| {
        let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
        for (name, fields) in FIELDS {
            let rule = rules.entry(format!("k8s.io.{name}")).or_default();
            for (field, text) in *fields {
                let value = serde_json::from_str(text).expect("the defaults are JSON");
                rule.fields.push(FieldDefault {
                    field,
                    bytes: field.len() + text.len(),
                    value,
                });
            }
        }
        for (name, function) in FUNCTIONS {
            let rule = rules.entry(format!("k8s.io.api.{name}")).or_default();
            rule.function = Some(*function);
        }
        rules
    })
}

fn set(id: MessageId, members: &mut Members, left: &mut usize) -> Result<(), TooManyDefaults> {
    let message = message(id);
    if let Some(rule) = rules().get(message.name) {
        for default in &rule.fields {
            let name = default.field;
            let field = message.fields.iter().find(|field| field.name == name);
            let is_pointer = field
                .is_some_and(|field| matches!(field.presence, Presence::Sent | Presence::Nullable));
            if is_unset(members.get(name), is_pointer) {
                *left = left.checked_sub(default.bytes).ok_or(TooManyDefaults)?;
                members.insert(name.to_owned(), default.value.clone());
            }
        }
        if let Some(function) = rule.function {
            function(members);
        }
    }
    for field in &message.fields {
        let Type::Message(inner) = field.value else {
            continue;
        };
        if field.is_inline() {
            set(inner, members, left)?;
            continue;
        }
        let Some(value) = members.get_mut(field.name) else {
            // A struct that is always there has defaults too.
            if field.presence == Presence::Always && field.container == Container::One {
                let mut value = Members::new();
                set(inner, &mut value, left)?;
                if !value.is_empty() {
                    members.insert(field.name.to_owned(), Value::Object(value));
                }
            }
            continue;
        };
        if is_resource_list(field, inner) {
            round_up(value);
        }
        match (field.container, value) {
            (Container::One, value) => set_value(inner, value, left)?,
            (Container::List, Value::Array(items)) => {
                for item in items {
                    set_value(inner, item, left)?;
                }
            }
            (Container::Map, Value::Object(items)) => {
                for item in items.values_mut() {
                    set_value(inner, item, left)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether a field is a map of quantities with the type `ResourceList`.
fn is_resource_list(field: &Field, inner: MessageId) -> bool {
    field.container == Container::Map
        && message(inner).form == Form::Quantity
        && Messages::v1_36().go_type(field) == "v1.ResourceList"
}

fn set_value(id: MessageId, value: &mut Value, left: &mut usize) -> Result<(), TooManyDefaults> {
    match value {
        Value::Object(members) if message(id).form == Form::Object => set(id, members, left),
        _ => Ok(()),
    }
}

/// Rounds the quantities of a map up to thousandths (`SetDefaults_ResourceList`).
fn round_up(quantities: &mut Value) {
    for quantity in quantities
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        let rounded = quantity.as_str().and_then(quantity::rounded_up);
        if let Some(rounded) = rounded {
            *quantity = Value::String(rounded);
        }
    }
}

/// Returns whether a field has no value in Go: null, or the zero value of a type that is not a pointer.
fn is_unset(value: Option<&Value>, is_pointer: bool) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(_) if is_pointer => false,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(Value::Bool(_) | Value::Object(_)) => false,
    }
}

/// Returns the text of a member, or an empty one.
fn text<'a>(members: &'a Members, name: &str) -> &'a str {
    members
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns whether a pointer, list or map has a value.
fn has(members: &Members, name: &str) -> bool {
    members.get(name).is_some_and(|value| !value.is_null())
}

/// Sets a pointer if it has no value.
fn default_to(members: &mut Members, name: &str, value: Value) {
    if !has(members, name) {
        members.insert(name.to_owned(), value);
    }
}

/// Returns a member that is an object, after it is set to an empty one if it has no value.
fn object<'a>(members: &'a mut Members, name: &str) -> Option<&'a mut Members> {
    default_to(members, name, Value::Object(Members::new()));
    members.get_mut(name)?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_one_of_a_field() {
        let messages = Messages::v1_36();
        let names: Vec<&str> = messages.all().iter().map(|message| message.name).collect();
        for (name, rule) in rules() {
            let at = names.iter().position(|known| known == name);
            let at = at.unwrap_or_else(|| panic!("no message {name}"));
            for FieldDefault { field, .. } in &rule.fields {
                let mut fields = messages.all()[at].fields.iter();
                assert!(fields.any(|known| known.name == *field), "{name}.{field}");
            }
        }
    }
}
