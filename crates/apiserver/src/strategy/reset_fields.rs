//! Defines which fields a write can't change, and therefore gives to no owner (`GetResetFields` in Kubernetes).

use super::Part;
use crate::kinds::Kind;

type Paths = &'static [&'static [&'static str]];

const METADATA: &[&str] = &["metadata"];
const SPEC: &[&str] = &["spec"];
const STATUS: &[&str] = &["status"];

/// The kinds whose `status` subresource changes no metadata.
const METADATA_TOO: [&str; 6] = [
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "resourceclaims.resource.k8s.io",
    "servicecidrs.networking.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "volumeattachments.storage.k8s.io",
];

/// Returns the fields that a write of a part of an object can't change, with all fields below them.
pub(crate) fn reset_fields(kind: &Kind, part: Part) -> Paths {
    let name = kind.group_resource();
    let is_request = name == "certificatesigningrequests.certificates.k8s.io";
    match part {
        Part::Main | Part::Finalize if is_request => &[SPEC, STATUS],
        Part::Main | Part::Finalize if kind.has_subresource("status") => &[STATUS],
        Part::Approval => &[SPEC, &["status", "certificate"]],
        Part::Status if kind.custom || METADATA_TOO.contains(&&*name) => &[METADATA, SPEC],
        Part::Status if is_request => &[SPEC, &["status", "conditions"]],
        Part::Status => match &*name {
            "deployments.apps" => &[SPEC, &["metadata", "labels"]],
            "pods" => &[
                SPEC,
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ],
            _ => &[SPEC],
        },
        // As in Kubernetes, the other subresources of a pod also give fields to an owner that they keep.
        _ => &[],
    }
}
