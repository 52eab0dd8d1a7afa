//! The workloads of the cluster: names, namespaces and weights.
//!
//! Guarantees: each pair of namespace and name is unique, and workloads have the order of their objects in a
//! list.

use fastrand::Rng;

use crate::slot::{LETTERS, mix};

const DOMAINS: [&str; 32] = [
    "accounts",
    "audit",
    "basket",
    "billing",
    "catalog",
    "checkout",
    "consent",
    "content",
    "coupons",
    "customer",
    "delivery",
    "feed",
    "fraud",
    "gateway",
    "identity",
    "inventory",
    "invoice",
    "ledger",
    "media",
    "messaging",
    "notify",
    "orders",
    "payments",
    "pricing",
    "profile",
    "ranking",
    "refunds",
    "reports",
    "search",
    "sessions",
    "shipping",
    "tracking",
];

const COMPONENTS: [&str; 12] = [
    "api",
    "backend",
    "cache-warmer",
    "consumer",
    "exporter",
    "frontend",
    "indexer",
    "projector",
    "proxy",
    "scheduler",
    "web",
    "worker",
];

const TEAMS: [&str; 16] = [
    "core",
    "data",
    "discovery",
    "finance",
    "fulfilment",
    "growth",
    "identity",
    "logistics",
    "marketing",
    "mobile",
    "partners",
    "payments",
    "platform",
    "retail",
    "risk",
    "support",
];

const STAGES: [&str; 4] = ["canary", "prod", "staging", "test"];

/// One workload.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) namespace: String,
    /// The name of the Deployment.
    pub(super) name: String,
    pub(super) team: &'static str,
    pub(super) stage: &'static str,
    pub(super) domain: &'static str,
    pub(super) component: &'static str,
    /// The hash of the pod template.
    pub(super) hash: String,
    /// The share of the objects, relative to other workloads.
    pub(super) weight: usize,
    /// The seed of the template.
    pub(super) seed: u64,
}

// === impl Workload ===

impl Workload {
    /// Returns this number of random workloads, in the order of their objects.
    pub(super) fn draw(count: usize, seed: u64) -> Vec<Workload> {
        let mut rng = Rng::with_seed(mix(seed));
        let mut workloads: Vec<_> = (0..count).map(|at| Workload::one(at, &mut rng)).collect();
        workloads
            .sort_by_cached_key(|workload| format!("{}/{}-", workload.namespace, workload.name));
        workloads
    }

    fn one(at: usize, rng: &mut Rng) -> Workload {
        // The number of the workload in a mixed radix of the lists, so that each combination is unique.
        let (component, at) = (COMPONENTS[at % COMPONENTS.len()], at / COMPONENTS.len());
        let (team, at) = (TEAMS[at % TEAMS.len()], at / TEAMS.len());
        let (stage, at) = (STAGES[at % STAGES.len()], at / STAGES.len());
        let domain = DOMAINS[rng.usize(..DOMAINS.len())];
        Workload {
            namespace: format!("{team}-{stage}"),
            // The number in the name makes it unique, and lists keep the workloads in order for any suffix.
            name: format!("{domain}-{component}-v{}", at + 1),
            team,
            stage,
            domain,
            component,
            hash: hash(rng),
            // Most are small, and a few are ten times as large.
            weight: [2, 2, 3, 3, 4, 6, 10, 20][rng.usize(..8)],
            seed: rng.u64(..),
        }
    }
}

/// Returns a random hash of a pod template: ten letters.
pub(super) fn hash(rng: &mut Rng) -> String {
    (0..10)
        .map(|_| char::from(LETTERS[rng.usize(..LETTERS.len())]))
        .collect()
}

/// Returns this number of random hexadecimal digits.
pub(super) fn hex(rng: &mut Rng, len: usize) -> String {
    (0..len)
        .map(|_| char::from(b"0123456789abcdef"[rng.usize(..16)]))
        .collect()
}

/// Returns a random choice.
pub(super) fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}
