//! Orders the API groups in discovery.
//!
//! Guarantees: the priorities are those of `apiVersionPriorities` of kube-apiserver, and of its controller for
//! custom kinds.

/// Priority of the groups of custom kinds.
const CUSTOM: u16 = 1000;

/// The groups of built-in kinds with their priorities. The core group is not listed with the others.
const GROUPS: [(&str, u16); 22] = [
    ("apiregistration.k8s.io", 20_001),
    ("", 18_000),
    ("apps", 17_800),
    ("events.k8s.io", 17_750),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("networking.k8s.io", 17_200),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("storage.k8s.io", 16_800),
    ("admissionregistration.k8s.io", 16_700),
    ("apiextensions.k8s.io", 16_700),
    ("scheduling.k8s.io", 16_600),
    ("coordination.k8s.io", 16_500),
    ("node.k8s.io", 16_300),
    ("discovery.k8s.io", 16_200),
    ("resource.k8s.io", 16_200),
    ("flowcontrol.apiserver.k8s.io", 16_100),
    ("internal.apiserver.k8s.io", 16_000),
];

/// Returns the priority of a group; discovery lists the group with the highest priority first.
pub(crate) fn of(group: &str) -> u16 {
    let found = GROUPS.iter().find(|(name, _)| *name == group);
    found.map_or(CUSTOM, |(_, priority)| *priority)
}
