//! Builds and recognizes the ReplicaSet of a Deployment's pod template.

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube_client::api::ObjectMeta;
use kube_core::Resource;

/// Key of the label that distinguishes the ReplicaSets of a Deployment, as in Kubernetes.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Characters of a template hash, as in Kubernetes (`SafeEncodeString` in `util/rand`).
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Maximum length of a name, in bytes.
const NAME_MAX: usize = 253;

/// Returns whether `set` has the pod template of the Deployment.
pub(super) fn has_template_of(set: &ReplicaSet, deployment: &Deployment) -> bool {
    let of_set = set.spec.as_ref().and_then(|spec| spec.template.clone());
    let of_deployment = deployment.spec.as_ref().map(|spec| spec.template.clone());
    of_set.map(without_hash) == of_deployment.map(without_hash)
}

fn without_hash(mut template: PodTemplateSpec) -> PodTemplateSpec {
    if let Some(metadata) = &mut template.metadata {
        if let Some(labels) = &mut metadata.labels {
            labels.remove(TEMPLATE_HASH);
        }
        metadata.labels = metadata.labels.take().filter(|labels| !labels.is_empty());
    }
    template
}

/// Returns a ReplicaSet without pods for the Deployment's current pod template.
pub(super) fn replica_set_of(deployment: &Deployment) -> Result<ReplicaSet, serde_json::Error> {
    let spec = deployment.spec.clone().unwrap_or_default();
    let status = deployment.status.as_ref();
    let collisions = status.and_then(|status| status.collision_count);
    let hash = template_hash(&spec.template, collisions)?;
    let mut template = spec.template;
    let labels = template
        .metadata
        .get_or_insert_default()
        .labels
        .get_or_insert_default();
    labels.insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut match_labels = spec.selector.match_labels.unwrap_or_default();
    match_labels.insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    // Names are ASCII.
    let name = name.get(..NAME_MAX - 1 - hash.len()).unwrap_or(name);
    Ok(ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: deployment
                .controller_owner_ref(&())
                .map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(0),
            min_ready_seconds: spec.min_ready_seconds,
            selector: LabelSelector {
                match_labels: Some(match_labels),
                match_expressions: spec.selector.match_expressions,
            },
            template: Some(template),
        }),
        ..ReplicaSet::default()
    })
}

/// Returns the FNV-1a hash of a pod template's JSON and of the number of collisions, in characters of [`ALPHABET`].
fn template_hash(
    template: &PodTemplateSpec,
    collisions: Option<i32>,
) -> Result<String, serde_json::Error> {
    let mut bytes = serde_json::to_vec(template)?;
    bytes.extend(collisions.iter().flat_map(|number| number.to_le_bytes()));
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    let safe = |digit: u8| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]);
    Ok(hash.to_string().bytes().map(safe).collect())
}
