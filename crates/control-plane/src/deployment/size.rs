//! Computes the sizes of a Deployment's ReplicaSets during a rollout and after a change of `replicas`.
//!
//! The functions are those of `rolling.go`, `sync.go` and `deployment_util.go` in kube-controller-manager's
//! deployment controller, without their requests.
//!
//! Guarantees:
//! - the ReplicaSets together never have more than `replicas` + `maxSurge` pods because of a returned size;
//! - while at least `replicas` - `maxUnavailable` pods are available, a returned size keeps that many.

use k8s_openapi::{
    api::apps::v1::{Deployment, ReplicaSet, RollingUpdateDeployment},
    apimachinery::pkg::util::intstr::IntOrString,
};

use kube_core::ResourceExt;

use super::Set;
use crate::percent::{Round, pods_of};

/// `spec.replicas` of the Deployment when the ReplicaSet was scaled.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";

/// [`DESIRED_REPLICAS`] plus `maxSurge` at that time.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

/// `maxSurge` and `maxUnavailable` of a Deployment that the server has not defaulted.
const DEFAULT_PERCENT: i32 = 25;

/// The limits of a rollout, in pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) replicas: i32,
    pub(super) max_surge: i32,
    pub(super) max_unavailable: i32,
}

/// Returns `spec.replicas` of the Deployment, or 1 if the field is missing.
pub(crate) fn wanted(deployment: &Deployment) -> i32 {
    let spec = deployment.spec.as_ref();
    spec.and_then(|spec| spec.replicas).unwrap_or(1)
}

/// Returns `spec.replicas` of the ReplicaSet, or 1 if the field is missing.
pub(super) fn size(set: &ReplicaSet) -> i32 {
    let spec = set.spec.as_ref();
    spec.and_then(|spec| spec.replicas).unwrap_or(1)
}

pub(super) fn total(sets: &[Set]) -> i32 {
    sets.iter().map(|set| size(set)).sum()
}

pub(super) fn available(set: &ReplicaSet) -> i32 {
    let status = set.status.as_ref();
    status
        .and_then(|status| status.available_replicas)
        .unwrap_or(0)
}

pub(super) fn is_recreated(deployment: &Deployment) -> bool {
    let strategy = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.strategy.as_ref());
    strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("Recreate"))
}

// === impl Limits ===

impl Limits {
    /// Resolves the percentages of the strategy, as `ResolveFenceposts` does.
    ///
    /// With the strategy `Recreate`, both limits are 0.
    pub(super) fn of(deployment: &Deployment) -> Self {
        let replicas = wanted(deployment);
        if is_recreated(deployment) {
            return Self {
                replicas,
                max_surge: 0,
                max_unavailable: 0,
            };
        }
        let strategy = deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.strategy.as_ref());
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.clone());
        let rolling = rolling.unwrap_or_else(|| RollingUpdateDeployment {
            max_surge: Some(IntOrString::String(format!("{DEFAULT_PERCENT}%"))),
            max_unavailable: Some(IntOrString::String(format!("{DEFAULT_PERCENT}%"))),
        });
        let max_surge = pods_of(rolling.max_surge.as_ref(), replicas, Round::Up);
        let mut max_unavailable = pods_of(rolling.max_unavailable.as_ref(), replicas, Round::Down);
        if max_surge == 0 && max_unavailable == 0 {
            // Both were rounded. Without this, the rollout could not begin.
            max_unavailable = 1;
        }
        Self {
            replicas,
            max_surge,
            max_unavailable: max_unavailable.min(replicas),
        }
    }

    pub(super) fn max_total(self) -> i32 {
        self.replicas.saturating_add(self.max_surge)
    }

    pub(super) fn min_available(self) -> i32 {
        self.replicas - self.max_unavailable
    }

    /// Returns the next size of the ReplicaSet of the current template, which has `size` pods of `total`.
    pub(super) fn next_size(self, size: i32, total: i32) -> i32 {
        if size >= self.replicas {
            return self.replicas;
        }
        let room = (self.max_total() - total).max(0);
        size + room.min(self.replicas - size)
    }

    /// Returns the next sizes of the ReplicaSets `old`, in their order, while `new` is rolled out.
    ///
    /// First the pods that are not available go, from the oldest ReplicaSet to the newest, then the available ones
    /// that the limit permits.
    pub(super) fn shrink(self, old: &[Set], new: &ReplicaSet) -> Vec<i32> {
        let mut sizes: Vec<i32> = old.iter().map(|set| size(set)).collect();
        let all: i32 = sizes.iter().sum::<i32>() + size(new);
        // Pods of the new ReplicaSet that are not available must not cost available pods of the old ones.
        let mut spare = all - self.min_available() - (size(new) - available(new));
        if spare <= 0 {
            return sizes;
        }
        for (size, set) in sizes.iter_mut().zip(old) {
            let unhealthy = (*size - available(set)).max(0);
            let gone = unhealthy.min(spare);
            *size -= gone;
            spare -= gone;
        }
        let ready: i32 = old.iter().map(|set| available(set)).sum::<i32>() + available(new);
        let mut spare = (ready - self.min_available()).max(0);
        for size in &mut sizes {
            let gone = spare.min(*size);
            *size -= gone;
            spare -= gone;
        }
        sizes
    }

    /// Distributes a change of `replicas` in the middle of a rollout to the ReplicaSets with pods, by their sizes.
    ///
    /// `sets` are sorted by [`by_size`]. `running` is `status.replicas` of the Deployment.
    pub(super) fn proportional(self, sets: &[Set], running: i32) -> Vec<i32> {
        let allowed = if self.replicas > 0 {
            self.max_total()
        } else {
            0
        };
        let change = allowed - total(sets);
        let mut sizes: Vec<i32> = sets.iter().map(|set| size(set)).collect();
        let mut left = change;
        for (size, set) in sizes.iter_mut().zip(sets) {
            if left == 0 {
                break;
            }
            let fraction = self.fraction(set, running);
            let part = if change > 0 {
                fraction.min(left)
            } else {
                fraction.max(left)
            };
            *size += part;
            left -= part;
        }
        if let Some(largest) = sizes.first_mut() {
            *largest = (*largest + left).max(0);
        }
        sizes
    }

    /// Returns by how many pods the size of `set` would have to change to keep its share of all pods.
    fn fraction(self, set: &ReplicaSet, running: i32) -> i32 {
        let has = size(set);
        if self.replicas == 0 {
            return -has;
        }
        let before = number(set, MAX_REPLICAS)
            .filter(|before| *before > 0)
            .unwrap_or(running);
        if before == 0 {
            return 0;
        }
        let share = f64::from(has) * f64::from(self.max_total()) / f64::from(before);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the limits are i32, and a cast saturates"
        )]
        let share = share.round() as i32;
        share - has
    }

    /// Returns whether `set` has all pods of the Deployment, and all are available.
    pub(super) fn is_saturated(self, set: &ReplicaSet) -> bool {
        size(set) == self.replicas
            && number(set, DESIRED_REPLICAS) == Some(self.replicas)
            && available(set) == self.replicas
    }
}

/// Returns the annotation `key` of the object as a number of pods, or `None` if it is not one.
pub(super) fn number(object: &ReplicaSet, key: &str) -> Option<i32> {
    let text = object.annotations().get(key)?;
    text.parse().ok().filter(|number| *number >= 0)
}

/// Records the limits with which a ReplicaSet was scaled. Returns whether they differ from the recorded ones.
pub(super) fn record_limits(set: &mut ReplicaSet, limits: Limits) -> bool {
    let recorded = [
        (DESIRED_REPLICAS, limits.replicas),
        (MAX_REPLICAS, limits.max_total()),
    ];
    let mut changed = false;
    for (key, number) in recorded {
        let text = number.to_string();
        changed |= set.annotations().get(key) != Some(&text);
        set.annotations_mut().insert(key.to_owned(), text);
    }
    changed
}

/// Sorts ReplicaSets by size, the largest first. Of equal ones, the newest is first if `newer_first`.
pub(super) fn by_size(sets: &mut [Set], newer_first: bool) {
    sets.sort_by(|a, b| {
        let age = super::age(a).cmp(&super::age(b));
        let age = if newer_first { age.reverse() } else { age };
        size(b).cmp(&size(a)).then(age)
    });
}

#[cfg(test)]
mod tests;
