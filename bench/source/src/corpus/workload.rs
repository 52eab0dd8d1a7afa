//! What runs in the cluster: names, namespaces and sizes.
//!
//! Guarantees: namespaces and names are unique, and ordered as an API server orders their objects.

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
    /// As its Deployment has it.
    pub(super) name: String,
    pub(super) team: &'static str,
    pub(super) stage: &'static str,
    pub(super) domain: &'static str,
    pub(super) component: &'static str,
    /// Of its pod template.
    pub(super) hash: String,
    /// How many objects it has, beside others.
    pub(super) weight: usize,
    /// Of everything else about it.
    pub(super) seed: u64,
}

// === impl Workload ===

impl Workload {
    /// Draws this number of workloads, in order.
    pub(super) fn draw(count: usize, seed: u64) -> Vec<Workload> {
        let mut rng = Rng::with_seed(mix(seed));
        let mut workloads: Vec<_> = (0..count).map(|at| Workload::one(at, &mut rng)).collect();
        workloads
            .sort_by_cached_key(|workload| format!("{}/{}-", workload.namespace, workload.name));
        workloads
    }

    fn one(at: usize, rng: &mut Rng) -> Workload {
        // The number of the workload, in a system whose digits are the lists: no two are the same.
        let (component, at) = (COMPONENTS[at % COMPONENTS.len()], at / COMPONENTS.len());
        let (team, at) = (TEAMS[at % TEAMS.len()], at / TEAMS.len());
        let (stage, at) = (STAGES[at % STAGES.len()], at / STAGES.len());
        let domain = DOMAINS[rng.usize(..DOMAINS.len())];
        Workload {
            namespace: format!("{team}-{stage}"),
            // The number stands in every name, so that none is the start of another, and objects are ordered whatever follows.
            name: format!("{domain}-{component}-v{}", at + 1),
            team,
            stage,
            domain,
            component,
            hash: hash(rng),
            // Most are small, and some are ten times as large.
            weight: [2, 2, 3, 3, 4, 6, 10, 20][rng.usize(..8)],
            seed: rng.u64(..),
        }
    }
}

/// Like the hash of a pod template: ten letters.
pub(super) fn hash(rng: &mut Rng) -> String {
    (0..10)
        .map(|_| char::from(LETTERS[rng.usize(..LETTERS.len())]))
        .collect()
}

/// This number of hexadecimal digits.
pub(super) fn hex(rng: &mut Rng, len: usize) -> String {
    (0..len)
        .map(|_| char::from(b"0123456789abcdef"[rng.usize(..16)]))
        .collect()
}

/// One of several.
pub(super) fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}
