//! One reconciliation of a Deployment: decides, in the order of kube-controller-manager, and writes.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use kube_client::api::{DeleteParams, PostParams, Preconditions};
use kube_core::ResourceExt;

use super::{
    Controller, Set, age,
    replica_set::{has_template_of, replica_set_of},
    revision,
    size::{self, Limits},
    status::{self, New, Sets},
};
use crate::{
    node_agent::has_ended,
    object::{is_gone, is_in_ending_namespace, is_leaving, message_of},
};

/// The Deployment and its ReplicaSets, as they are after the writes so far.
pub(super) struct Rollout<'a> {
    controller: &'a Controller,
    deployment: Deployment,
    limits: Limits,
    /// The ReplicaSet of the current pod template.
    new: Option<Set>,
    /// All other ReplicaSets, the oldest first.
    old: Vec<Set>,
}

impl<'a> Rollout<'a> {
    /// `sets` are all ReplicaSets that the Deployment controls.
    pub(super) fn new(
        controller: &'a Controller,
        deployment: Deployment,
        mut sets: Vec<Set>,
    ) -> Self {
        sets.sort_by_cached_key(|set| age(set));
        let new = sets
            .iter()
            .position(|set| has_template_of(set, &deployment));
        let new = new.map(|position| sets.remove(position));
        Self {
            controller,
            limits: Limits::of(&deployment),
            deployment,
            new,
            old: sets,
        }
    }

    /// Brings the Deployment one step closer to its spec.
    ///
    /// Returns when the Deployment must be reconciled again even if no object changes.
    pub(super) async fn step(mut self) -> Result<Option<Duration>, anyhow::Error> {
        if is_leaving(&self.deployment) {
            self.number_new().await?;
            self.write_counts().await?;
            return Ok(None);
        }
        if status::record_pause(&mut self.deployment, self.controller.clock) {
            self.write_deployment().await?;
        }
        let is_paused = self.deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true);
        if is_paused || self.is_scaled().await? {
            self.number_new().await?;
            self.scale_all().await?;
            if is_paused {
                self.clean_up().await?;
            }
            self.write_counts().await?;
            return Ok(None);
        }
        if size::is_recreated(&self.deployment) {
            self.recreate().await?;
        } else {
            self.roll().await?;
        }
        self.write_progress().await?;
        Ok(status::next_judgement(
            &self.deployment,
            self.controller.clock,
        ))
    }

    // === the strategies ===

    async fn roll(&mut self) -> Result<(), anyhow::Error> {
        let Some(new) = self.number_or_create_new().await? else {
            return Ok(());
        };
        let total = size::total(&self.old) + size::size(&new);
        let next = self.limits.next_size(size::size(&new), total);
        if self.scale(&new, next).await? {
            return Ok(());
        }
        let active = self.active_old();
        let mut has_scaled = false;
        if size::total(&active) > 0 {
            for (set, next) in active.iter().zip(self.limits.shrink(&active, &new)) {
                has_scaled |= self.scale(set, next).await?;
            }
        }
        if has_scaled {
            return Ok(());
        }
        self.clean_up_if_complete().await
    }

    /// Creates new pods only after the last old one is gone.
    async fn recreate(&mut self) -> Result<(), anyhow::Error> {
        self.number_new().await?;
        let mut has_scaled = false;
        for set in self.active_old() {
            has_scaled |= self.scale(&set, 0).await?;
        }
        if has_scaled || self.has_old_pods()? {
            return Ok(());
        }
        if let Some(new) = self.number_or_create_new().await? {
            self.scale(&new, self.limits.replicas).await?;
        }
        self.clean_up_if_complete().await
    }

    fn has_old_pods(&self) -> Result<bool, anyhow::Error> {
        for set in &self.old {
            let status = set.status.as_ref();
            if status.is_some_and(|status| status.replicas > 0) {
                return Ok(true);
            }
            let uid = set.metadata.uid.as_deref().unwrap_or_default();
            let controller = self.controller;
            for pod in controller.pods.by_index(&controller.pods_by_set, uid) {
                if !has_ended(&*pod.get()?) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    // === revisions ===

    /// Numbers the ReplicaSet of the current template, if it exists.
    async fn number_new(&mut self) -> Result<(), anyhow::Error> {
        let Some(new) = self.new.clone() else {
            return Ok(());
        };
        let mut changed = ReplicaSet::clone(&new);
        let next = revision::next(&self.old);
        let min_ready = |spec: Option<i32>| spec.unwrap_or(0);
        let wanted = self
            .deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.min_ready_seconds);
        let has = new.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
        let is_other = min_ready(wanted) != min_ready(has);
        if is_other {
            changed.spec.get_or_insert_default().min_ready_seconds = wanted;
        }
        if revision::annotate(&self.deployment, &mut changed, next) || is_other {
            self.update(&changed).await?;
        }
        let new = self.new.as_ref().unwrap_or(&new);
        let number = new.annotations().get(revision::REVISION).cloned();
        let name = new.name_any();
        let mut has_changed =
            revision::number_deployment(&mut self.deployment, number.unwrap_or_default());
        let found = New::Found(&name);
        has_changed |= status::record_new(&mut self.deployment, &found, self.controller.clock);
        if has_changed {
            self.write_deployment().await?;
        }
        Ok(())
    }

    /// Returns the ReplicaSet of the current template. Creates it if it does not exist.
    ///
    /// Returns `None` if its name is that of another ReplicaSet. The next name is tried in the next
    /// reconciliation.
    async fn number_or_create_new(&mut self) -> Result<Option<Set>, anyhow::Error> {
        if self.new.is_some() {
            self.number_new().await?;
            return Ok(self.new.clone());
        }
        let mut set = replica_set_of(&self.deployment)?;
        let next = revision::next(&self.old);
        let replicas = self.limits.next_size(0, size::total(&self.old));
        set.spec.get_or_insert_default().replicas = Some(replicas);
        revision::annotate(&self.deployment, &mut set, next);
        size::record_limits(&mut set, self.limits);
        let name = set.name_any();
        let api = self.controller.write_replica_sets.in_namespace_of(&set);
        let new = match api.create(&PostParams::default(), &set).await {
            Ok(created) => {
                if replicas > 0 {
                    self.report_scaling(&name, 0, replicas);
                }
                status::record_new(
                    &mut self.deployment,
                    &New::Created(&name),
                    self.controller.clock,
                );
                created
            }
            Err(kube_client::Error::Api(answer)) if answer.is_already_exists() => {
                let existing = api.get(&name).await?;
                if !self.is_mine(&existing) {
                    return self.count_collision().await.map(|()| None);
                }
                existing
            }
            Err(error) => {
                let error = error.into();
                self.report_failure(&name, &error).await;
                return Err(error);
            }
        };
        self.new = Some(Arc::new(new));
        revision::number_deployment(&mut self.deployment, next.to_string());
        self.write_deployment().await?;
        Ok(self.new.clone())
    }

    fn is_mine(&self, set: &ReplicaSet) -> bool {
        let owner = super::controller_uid(set, "Deployment");
        owner.is_some()
            && owner == self.deployment.metadata.uid
            && has_template_of(set, &self.deployment)
    }

    /// Records that another ReplicaSet has the name, so that the next reconciliation chooses another one.
    async fn count_collision(&mut self) -> Result<(), anyhow::Error> {
        let status = self.deployment.status.get_or_insert_default();
        *status.collision_count.get_or_insert(0) += 1;
        self.write_deployment().await
    }

    /// Writes that the ReplicaSet `name` could not be created.
    async fn report_failure(&mut self, name: &str, error: &anyhow::Error) {
        // No reader of the status is left in a namespace that is being deleted.
        if is_in_ending_namespace(error) {
            return;
        }
        let text = format!(
            "Failed to create new replica set {name:?}: {}",
            message_of(error)
        );
        self.controller
            .events
            .warning(&self.deployment, "ReplicaSetCreateError", &*text);
        let failed = New::NotCreated(&text);
        if status::record_new(&mut self.deployment, &failed, self.controller.clock) {
            // The error of the creation is the one to report.
            let _ = self.write_deployment().await;
        }
    }

    // === sizes ===

    /// Returns whether `spec.replicas` has changed since a ReplicaSet with pods was scaled.
    async fn is_scaled(&mut self) -> Result<bool, anyhow::Error> {
        self.number_new().await?;
        let recorded = |set: &Set| size::number(set, size::DESIRED_REPLICAS);
        let mut active = self
            .old
            .iter()
            .chain(&self.new)
            .filter(|set| size::size(set) > 0);
        Ok(active.any(|set| recorded(set).is_some_and(|number| number != self.limits.replicas)))
    }

    /// Scales the ReplicaSets after a change of `spec.replicas`, or while the Deployment is paused.
    async fn scale_all(&mut self) -> Result<(), anyhow::Error> {
        let active = self.active_old();
        let mut all = active.clone();
        all.extend(self.new.iter().filter(|set| size::size(set) > 0).cloned());
        if all.len() <= 1 {
            let latest = self.new.clone().or_else(|| self.old.last().cloned());
            if let Some(only) = all.pop().or(latest) {
                self.scale(&only, self.limits.replicas).await?;
            }
            return Ok(());
        }
        if self
            .new
            .as_ref()
            .is_some_and(|new| self.limits.is_saturated(new))
        {
            for set in active {
                self.scale(&set, 0).await?;
            }
            return Ok(());
        }
        if size::is_recreated(&self.deployment) {
            return Ok(());
        }
        let allowed = if self.limits.replicas > 0 {
            self.limits.max_total()
        } else {
            0
        };
        let grows = allowed > size::total(&all);
        size::by_size(&mut all, grows);
        let status = self.deployment.status.as_ref();
        let running = status.and_then(|status| status.replicas).unwrap_or(0);
        for (set, next) in all.iter().zip(self.limits.proportional(&all, running)) {
            self.resize(set, next).await?;
        }
        Ok(())
    }

    /// Sets the size of a ReplicaSet. Returns whether it had another one.
    async fn scale(&mut self, set: &Set, replicas: i32) -> Result<bool, anyhow::Error> {
        if size::size(set) == replicas {
            return Ok(false);
        }
        self.resize(set, replicas).await
    }

    /// Like [`scale`](Self::scale), but always records the current limits.
    async fn resize(&mut self, set: &Set, replicas: i32) -> Result<bool, anyhow::Error> {
        let mut changed = ReplicaSet::clone(set);
        let before = size::size(set);
        changed.spec.get_or_insert_default().replicas = Some(replicas);
        if !size::record_limits(&mut changed, self.limits) && before == replicas {
            return Ok(false);
        }
        self.update(&changed).await?;
        if before != replicas {
            self.report_scaling(&set.name_any(), before, replicas);
        }
        Ok(before != replicas)
    }

    fn report_scaling(&self, set: &str, from: i32, to: i32) {
        let direction = if from < to { "up" } else { "down" };
        let text = format!("Scaled {direction} replica set {set} from {from} to {to}");
        self.controller
            .events
            .normal(&self.deployment, "ScalingReplicaSet", text);
    }

    fn active_old(&self) -> Vec<Set> {
        self.old
            .iter()
            .filter(|set| size::size(set) > 0)
            .cloned()
            .collect()
    }

    // === history ===

    async fn clean_up_if_complete(&mut self) -> Result<(), anyhow::Error> {
        let status = self.deployment.status.clone().unwrap_or_default();
        if status::is_complete(&self.deployment, &status) {
            self.clean_up().await?;
        }
        Ok(())
    }

    /// Deletes the oldest of the ReplicaSets without pods, if there are more than `revisionHistoryLimit`.
    async fn clean_up(&mut self) -> Result<(), anyhow::Error> {
        let spec = self.deployment.spec.as_ref();
        let limit = spec.and_then(|spec| spec.revision_history_limit);
        let Some(limit) = limit.filter(|limit| *limit != i32::MAX) else {
            return Ok(());
        };
        let mut sets: Vec<Set> = self
            .old
            .iter()
            .filter(|set| !is_leaving(&***set))
            .cloned()
            .collect();
        sets.sort_by_cached_key(|set| (revision::revision(set), age(set)));
        let excess = sets
            .len()
            .saturating_sub(usize::try_from(limit).unwrap_or(0));
        for set in sets.into_iter().take(excess).filter(|set| is_unused(set)) {
            let params = DeleteParams::default().preconditions(Preconditions {
                uid: set.metadata.uid.clone(),
                ..Preconditions::default()
            });
            let api = self.controller.write_replica_sets.in_namespace_of(&*set);
            match api.delete(&set.name_any(), &params).await {
                Err(error) if !is_gone(&error) => return Err(error.into()),
                _ => self.old.retain(|old| old.metadata.uid != set.metadata.uid),
            }
        }
        Ok(())
    }

    // === writes ===

    /// Writes a ReplicaSet, and keeps what the server returns.
    async fn update(&mut self, set: &ReplicaSet) -> Result<(), anyhow::Error> {
        let api = self.controller.write_replica_sets.in_namespace_of(set);
        let updated = api
            .replace(&set.name_any(), &PostParams::default(), set)
            .await?;
        let updated = Arc::new(updated);
        for held in self.old.iter_mut().chain(&mut self.new) {
            if held.metadata.uid == updated.metadata.uid {
                *held = Arc::clone(&updated);
            }
        }
        Ok(())
    }

    /// Writes the status and the annotations of the Deployment, and keeps what the server returns.
    async fn write_deployment(&mut self) -> Result<(), anyhow::Error> {
        let api = self
            .controller
            .write_deployments
            .in_namespace_of(&self.deployment);
        let name = self.deployment.name_any();
        self.deployment = api
            .replace_status(&name, &PostParams::default(), &self.deployment)
            .await?;
        Ok(())
    }

    fn sets(&self) -> Sets<'_> {
        Sets {
            new: self.new.as_ref(),
            old: &self.old,
        }
    }

    async fn write_counts(&mut self) -> Result<(), anyhow::Error> {
        let status = status::counted(&self.deployment, self.sets(), self.controller.clock);
        self.write_status(status).await
    }

    async fn write_progress(&mut self) -> Result<(), anyhow::Error> {
        let status = status::rolled_out(&self.deployment, self.sets(), self.controller.clock);
        self.write_status(status).await
    }

    async fn write_status(&mut self, status: DeploymentStatus) -> Result<(), anyhow::Error> {
        if self.deployment.status.as_ref() == Some(&status) {
            return Ok(());
        }
        self.deployment.status = Some(status);
        self.write_deployment().await
    }
}

/// Returns whether a ReplicaSet has no pods, and needs none.
fn is_unused(set: &ReplicaSet) -> bool {
    let status = set.status.clone().unwrap_or_default();
    size::size(set) == 0
        && status.replicas == 0
        && status.observed_generation >= set.metadata.generation
}
