//! Generates the workloads of the simulated cluster. A workload is a Deployment. All its
//! generated objects, such as pods or Secrets, share one template.
//!
//! Guarantees: each pair of namespace and name is unique. The workloads are sorted by namespace and
//! name, like the objects in a list response of an API server.

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

/// A generated Deployment. All objects of the workload, such as pods, are generated from one template.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) team: &'static str,
    pub(super) stage: &'static str,
    pub(super) domain: &'static str,
    pub(super) component: &'static str,
    /// Hash of the Deployment's pod template, as in the name of a `ReplicaSet`.
    pub(super) hash: String,
    /// Relative number of objects of this workload.
    pub(super) weight: usize,
    /// Seed of the random values in the template.
    pub(super) seed: u64,
}

// === impl Workload ===

impl Workload {
    /// Returns `count` workloads that are generated from `seed`, sorted by namespace and name.
    pub(super) fn draw(count: usize, seed: u64) -> Vec<Workload> {
        let mut rng = Rng::with_seed(mix(seed));
        let mut workloads: Vec<_> = (0..count).map(|at| Workload::one(at, &mut rng)).collect();
        workloads
            .sort_by_cached_key(|workload| format!("{}/{}-", workload.namespace, workload.name));
        workloads
    }

    fn one(at: usize, rng: &mut Rng) -> Workload {
        // Splits the index of the workload into one index per list (mixed radix), so that each combination is
        // unique.
        let (component, at) = (COMPONENTS[at % COMPONENTS.len()], at / COMPONENTS.len());
        let (team, at) = (TEAMS[at % TEAMS.len()], at / TEAMS.len());
        let (stage, at) = (STAGES[at % STAGES.len()], at / STAGES.len());
        let domain = DOMAINS[rng.usize(..DOMAINS.len())];
        Workload {
            namespace: format!("{team}-{stage}"),
            // The number makes the name unique. A name with a trailing `-` is never the start of another
            // name, so the suffixes of objects do not affect the order of the workloads.
            name: format!("{domain}-{component}-v{}", at + 1),
            team,
            stage,
            domain,
            component,
            hash: hash(rng),
            // Most workloads are small. A few have ten times as many objects.
            weight: [2, 2, 3, 3, 4, 6, 10, 20][rng.usize(..8)],
            seed: rng.u64(..),
        }
    }
}

/// Returns a random string of ten characters that resembles a pod template hash.
pub(super) fn hash(rng: &mut Rng) -> String {
    (0..10)
        .map(|_| char::from(LETTERS[rng.usize(..LETTERS.len())]))
        .collect()
}

/// Returns a string of `len` random hexadecimal digits.
pub(super) fn hex(rng: &mut Rng, len: usize) -> String {
    (0..len)
        .map(|_| char::from(b"0123456789abcdef"[rng.usize(..16)]))
        .collect()
}

/// Returns a random element of `choices`.
pub(super) fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}
