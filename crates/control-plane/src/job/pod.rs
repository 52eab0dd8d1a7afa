//! Builds the pods of a Job.

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodTemplateSpec},
};
use kube_client::api::ObjectMeta;
use kube_core::{Resource, ResourceExt};

use super::{FINALIZER, INDEX, INDEX_VARIABLE};

/// Returns the pod to create for the Job, with the index `index` if the Job is indexed.
pub(super) fn pod_of(job: &Job, index: Option<i32>) -> Pod {
    let template = job.spec.as_ref().map(|spec| spec.template.clone());
    let PodTemplateSpec { metadata, spec } = template.unwrap_or_default();
    let mut metadata = metadata.unwrap_or_default();
    let mut spec = spec.unwrap_or_default();
    let name = job.name_any();
    let mut generate_name = format!("{name}-");
    if let Some(index) = index {
        let text = index.to_string();
        metadata
            .labels
            .get_or_insert_default()
            .insert(INDEX.to_owned(), text.clone());
        metadata
            .annotations
            .get_or_insert_default()
            .insert(INDEX.to_owned(), text);
        spec.hostname = Some(format!("{name}-{index}"));
        generate_name = format!("{name}-{index}-");
        let containers = spec.init_containers.iter_mut().flatten();
        for container in containers.chain(&mut spec.containers) {
            let env = container.env.get_or_insert_default();
            if env.iter().all(|variable| variable.name != INDEX_VARIABLE) {
                env.push(index_variable());
            }
        }
    }
    let finalizers = metadata.finalizers.get_or_insert_default();
    finalizers.push(FINALIZER.to_owned());
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(generate_name),
            namespace: job.metadata.namespace.clone(),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            owner_references: job.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        ..Pod::default()
    }
}

fn index_variable() -> EnvVar {
    EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: format!("metadata.labels['{INDEX}']"),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}
