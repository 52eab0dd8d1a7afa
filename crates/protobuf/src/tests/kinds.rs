//! Tests that protobuf and JSON decode to equal values of the types of `k8s-openapi`, for
//! all built-in kinds.

use std::fmt::Debug;

use super::*;

/// Decodes a message to its `k8s-openapi` type, directly and through JSON. Panics if the results differ.
///
/// Does nothing if the kind of `pair` is not in [`READERS`].
pub(super) fn compare(pair: &Pair, raw: &[u8]) {
    let read = READERS
        .iter()
        .find(|(kind, _)| kind.rsplit_once('/') == Some((&*pair.api_version, &*pair.kind)));
    if let Some((_, read)) = read {
        read(pair, raw);
    }
}

fn both<T: serde::de::DeserializeOwned + Debug + PartialEq>(pair: &Pair, raw: &[u8]) {
    let json = pair.read::<Value>(raw);
    let typed = pair.read::<T>(raw);
    match (json, typed) {
        (Ok(json), Ok(typed)) => {
            let from_json: T = serde_json::from_value(json).unwrap();
            assert_eq!(typed, from_json);
        }
        (Err(_), Err(_)) => {}
        (Ok(json), Err(error)) => {
            // A type may refuse what JSON can represent; then it refuses the JSON too.
            let from_json = serde_json::from_value::<T>(json.clone());
            assert!(from_json.is_err(), "{error}\n{json:#}");
        }
        (Err(error), Ok(typed)) => {
            // Values in fields that the type does not have are skipped.
            panic!("{error}\n{typed:#?}");
        }
    }
}

#[test]
fn typed_objects_from_protobuf_equal_those_from_json() {
    for pair in pairs() {
        compare(pair, pair.raw());
        compare(pair, &reversed(pair.message(), pair.raw()));
        compare(pair, &[]);
    }
    let unread: Vec<_> = pairs()
        .iter()
        .map(|pair| format!("{}/{}", pair.api_version, pair.kind))
        .filter(|kind| !READERS.iter().any(|(read, _)| read == kind))
        .collect();
    assert_eq!(unread, [""; 0]);
}

/// Decodes a message to one type, directly and through JSON, and panics if the two results differ.
type Reader = fn(&Pair, &[u8]);

/// All built-in kinds, as `apiVersion/Kind`, with the function that compares the decoded values.
#[rustfmt::skip]
const READERS: &[(&str, Reader)] = &[
    ("admissionregistration.k8s.io/v1/MutatingAdmissionPolicy", both::<k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicy>),
    ("admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding", both::<k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicyBinding>),
    ("admissionregistration.k8s.io/v1/MutatingWebhookConfiguration", both::<k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration>),
    ("admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", both::<k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy>),
    ("admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding", both::<k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding>),
    ("admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", both::<k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration>),
    ("apiextensions.k8s.io/v1/CustomResourceDefinition", both::<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>),
    ("apiregistration.k8s.io/v1/APIService", both::<k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService>),
    ("apps/v1/ControllerRevision", both::<k8s_openapi::api::apps::v1::ControllerRevision>),
    ("apps/v1/DaemonSet", both::<k8s_openapi::api::apps::v1::DaemonSet>),
    ("apps/v1/Deployment", both::<k8s_openapi::api::apps::v1::Deployment>),
    ("apps/v1/ReplicaSet", both::<k8s_openapi::api::apps::v1::ReplicaSet>),
    ("apps/v1/StatefulSet", both::<k8s_openapi::api::apps::v1::StatefulSet>),
    ("authentication.k8s.io/v1/SelfSubjectReview", both::<k8s_openapi::api::authentication::v1::SelfSubjectReview>),
    ("authentication.k8s.io/v1/TokenRequest", both::<k8s_openapi::api::authentication::v1::TokenRequest>),
    ("authentication.k8s.io/v1/TokenReview", both::<k8s_openapi::api::authentication::v1::TokenReview>),
    ("authorization.k8s.io/v1/LocalSubjectAccessReview", both::<k8s_openapi::api::authorization::v1::LocalSubjectAccessReview>),
    ("authorization.k8s.io/v1/SelfSubjectAccessReview", both::<k8s_openapi::api::authorization::v1::SelfSubjectAccessReview>),
    ("authorization.k8s.io/v1/SelfSubjectRulesReview", both::<k8s_openapi::api::authorization::v1::SelfSubjectRulesReview>),
    ("authorization.k8s.io/v1/SubjectAccessReview", both::<k8s_openapi::api::authorization::v1::SubjectAccessReview>),
    ("autoscaling/v1/HorizontalPodAutoscaler", both::<k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler>),
    ("autoscaling/v1/Scale", both::<k8s_openapi::api::autoscaling::v1::Scale>),
    ("autoscaling/v2/HorizontalPodAutoscaler", both::<k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler>),
    ("batch/v1/CronJob", both::<k8s_openapi::api::batch::v1::CronJob>),
    ("batch/v1/Job", both::<k8s_openapi::api::batch::v1::Job>),
    ("certificates.k8s.io/v1/CertificateSigningRequest", both::<k8s_openapi::api::certificates::v1::CertificateSigningRequest>),
    ("coordination.k8s.io/v1/Lease", both::<k8s_openapi::api::coordination::v1::Lease>),
    ("discovery.k8s.io/v1/EndpointSlice", both::<k8s_openapi::api::discovery::v1::EndpointSlice>),
    ("events.k8s.io/v1/Event", both::<k8s_openapi::api::events::v1::Event>),
    ("flowcontrol.apiserver.k8s.io/v1/FlowSchema", both::<k8s_openapi::api::flowcontrol::v1::FlowSchema>),
    ("flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration", both::<k8s_openapi::api::flowcontrol::v1::PriorityLevelConfiguration>),
    ("networking.k8s.io/v1/IPAddress", both::<k8s_openapi::api::networking::v1::IPAddress>),
    ("networking.k8s.io/v1/Ingress", both::<k8s_openapi::api::networking::v1::Ingress>),
    ("networking.k8s.io/v1/IngressClass", both::<k8s_openapi::api::networking::v1::IngressClass>),
    ("networking.k8s.io/v1/NetworkPolicy", both::<k8s_openapi::api::networking::v1::NetworkPolicy>),
    ("networking.k8s.io/v1/ServiceCIDR", both::<k8s_openapi::api::networking::v1::ServiceCIDR>),
    ("node.k8s.io/v1/RuntimeClass", both::<k8s_openapi::api::node::v1::RuntimeClass>),
    ("policy/v1/Eviction", both::<k8s_openapi::api::policy::v1::Eviction>),
    ("policy/v1/PodDisruptionBudget", both::<k8s_openapi::api::policy::v1::PodDisruptionBudget>),
    ("rbac.authorization.k8s.io/v1/ClusterRole", both::<k8s_openapi::api::rbac::v1::ClusterRole>),
    ("rbac.authorization.k8s.io/v1/ClusterRoleBinding", both::<k8s_openapi::api::rbac::v1::ClusterRoleBinding>),
    ("rbac.authorization.k8s.io/v1/Role", both::<k8s_openapi::api::rbac::v1::Role>),
    ("rbac.authorization.k8s.io/v1/RoleBinding", both::<k8s_openapi::api::rbac::v1::RoleBinding>),
    ("resource.k8s.io/v1/DeviceClass", both::<k8s_openapi::api::resource::v1::DeviceClass>),
    ("resource.k8s.io/v1/ResourceClaim", both::<k8s_openapi::api::resource::v1::ResourceClaim>),
    ("resource.k8s.io/v1/ResourceClaimTemplate", both::<k8s_openapi::api::resource::v1::ResourceClaimTemplate>),
    ("resource.k8s.io/v1/ResourceSlice", both::<k8s_openapi::api::resource::v1::ResourceSlice>),
    ("scheduling.k8s.io/v1/PriorityClass", both::<k8s_openapi::api::scheduling::v1::PriorityClass>),
    ("storage.k8s.io/v1/CSIDriver", both::<k8s_openapi::api::storage::v1::CSIDriver>),
    ("storage.k8s.io/v1/CSINode", both::<k8s_openapi::api::storage::v1::CSINode>),
    ("storage.k8s.io/v1/CSIStorageCapacity", both::<k8s_openapi::api::storage::v1::CSIStorageCapacity>),
    ("storage.k8s.io/v1/StorageClass", both::<k8s_openapi::api::storage::v1::StorageClass>),
    ("storage.k8s.io/v1/VolumeAttachment", both::<k8s_openapi::api::storage::v1::VolumeAttachment>),
    ("storage.k8s.io/v1/VolumeAttributesClass", both::<k8s_openapi::api::storage::v1::VolumeAttributesClass>),
    ("v1/Binding", both::<k8s_openapi::api::core::v1::Binding>),
    ("v1/ComponentStatus", both::<k8s_openapi::api::core::v1::ComponentStatus>),
    ("v1/ConfigMap", both::<k8s_openapi::api::core::v1::ConfigMap>),
    ("v1/Endpoints", both::<k8s_openapi::api::core::v1::Endpoints>),
    ("v1/Event", both::<k8s_openapi::api::core::v1::Event>),
    ("v1/LimitRange", both::<k8s_openapi::api::core::v1::LimitRange>),
    ("v1/Namespace", both::<k8s_openapi::api::core::v1::Namespace>),
    ("v1/Node", both::<k8s_openapi::api::core::v1::Node>),
    ("v1/PersistentVolume", both::<k8s_openapi::api::core::v1::PersistentVolume>),
    ("v1/PersistentVolumeClaim", both::<k8s_openapi::api::core::v1::PersistentVolumeClaim>),
    ("v1/Pod", both::<k8s_openapi::api::core::v1::Pod>),
    ("v1/PodTemplate", both::<k8s_openapi::api::core::v1::PodTemplate>),
    ("v1/ReplicationController", both::<k8s_openapi::api::core::v1::ReplicationController>),
    ("v1/ResourceQuota", both::<k8s_openapi::api::core::v1::ResourceQuota>),
    ("v1/Secret", both::<k8s_openapi::api::core::v1::Secret>),
    ("v1/Service", both::<k8s_openapi::api::core::v1::Service>),
    ("v1/ServiceAccount", both::<k8s_openapi::api::core::v1::ServiceAccount>),
    ("v1/DeleteOptions", both::<k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions>),
];
