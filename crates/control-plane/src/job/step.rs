//! One reconciliation of a Job that has not finished: counts its pods, creates or deletes some, writes the status.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    batch::v1::{Job, JobStatus},
    core::v1::Pod,
};
use kube_client::api::{DeleteParams, PostParams};
use kube_core::ResourceExt;
use kube_informer::ObjectName;

use super::{
    BURST_MAX, Controller, indexes,
    pod::pod_of,
    tally::{self, Tally},
    this_one,
    verdict::{self, Verdict},
};
use crate::{
    node_agent::is_ready,
    object::{is_gone, is_in_ending_namespace, is_leaving, message_of},
};

/// One reconciliation of a Job that has not finished.
pub(super) struct Step<'a> {
    pub(super) controller: &'a Controller,
    pub(super) name: &'a ObjectName,
    pub(super) job: &'a Job,
    /// Whether the cache shows all of the controller's creations and deletions.
    pub(super) met: bool,
}

impl Step<'_> {
    pub(super) async fn advance(&self, pods: &[Arc<Pod>]) -> Result<(), anyhow::Error> {
        let (job, clock) = (self.job, self.controller.clock);
        let written = verdict::written(job);
        let fails = written.as_ref().is_some_and(|verdict| !verdict.is_success);
        let mut tally = Tally::of(job, pods, fails);
        let mut status = std::mem::take(&mut tally.status);
        if status.start_time.is_none() && !verdict::is_suspended(job) {
            status.start_time = Some(clock.time());
            self.report_ignored_fields();
        }
        if let Some(left) = verdict::deadline(job, clock) {
            self.controller.queue.add_after(self.name.clone(), left);
        }
        let is_decided = written.is_some();
        let mut verdict = written.or_else(|| verdict::failure(job, &tally, clock));
        let mut changed = Ok(0);
        if verdict.is_some() {
            // Pods that the cache does not show yet are deleted when it does.
            if self.met {
                changed = self.delete(&tally.active).await.map(|deleted| -deleted);
            }
        } else {
            if self.met && !is_leaving(job) {
                changed = self.manage(&tally, pods).await;
                if verdict::record_suspension(job, &mut status, clock) {
                    self.report_suspension();
                }
            }
            let active = count(&tally) + changed.as_ref().copied().unwrap_or(0);
            verdict = verdict::success(job, &tally, active);
        }
        let change = changed.as_ref().copied().unwrap_or(0);
        status.active = Some(count(&tally) + change).filter(|active| *active != 0);
        status.ready = Some(tally.ready.min(count(&tally) + change));
        status.terminating = Some(tally.terminating + (-change).max(0));
        if let Some(verdict) = &verdict {
            verdict::announce(&mut status, verdict, clock);
            let has_pods = change != 0 || tally.terminating > 0 || !self.met;
            if is_decided && changed.is_ok() && !has_pods && tally.is_settled(&status) {
                verdict::finish(&mut status, verdict, clock);
                self.report_end(verdict);
            }
        }
        self.write(status).await?;
        for pod in &tally.counted {
            self.controller.release(pod).await?;
        }
        changed.map(|_| ())
    }

    /// Creates missing pods or deletes spare ones. Returns by how many the number of active pods has changed.
    async fn manage(&self, tally: &Tally, pods: &[Arc<Pod>]) -> Result<i32, anyhow::Error> {
        if verdict::is_suspended(self.job) {
            return self.delete(&tally.active).await.map(|deleted| -deleted);
        }
        let spec = self.job.spec.clone().unwrap_or_default();
        let active = count(tally);
        let parallelism = spec.parallelism.unwrap_or(1);
        let wanted = match spec.completions {
            // The first success decides, and the pods that run then may go on.
            None if tally.succeeded > 0 => active,
            None => parallelism,
            Some(completions) => (completions - tally.succeeded).clamp(0, parallelism),
        };
        if active > wanted {
            let spare = usize::try_from(active - wanted)?;
            let spare: Vec<Arc<Pod>> = least_useful(&tally.active, spare.min(BURST_MAX));
            return self.delete(&spare).await.map(|deleted| -deleted);
        }
        let waits = if tally::waits_for_ends(self.job) {
            tally.terminating
        } else {
            0
        };
        let missing = usize::try_from(wanted - active - waits)
            .unwrap_or(0)
            .min(BURST_MAX);
        if missing == 0 {
            return Ok(0);
        }
        let delay = tally::back_off(pods, self.controller.clock);
        if !delay.is_zero() {
            self.controller.queue.add_after(self.name.clone(), delay);
            return Ok(0);
        }
        if indexes::is_indexed(self.job) {
            let completions = spec.completions.unwrap_or(0);
            let indexes = indexes::missing(
                &tally.succeeded_indexes,
                &tally.active,
                (missing, completions),
            );
            return self.create(indexes.into_iter().map(Some).collect()).await;
        }
        self.create(vec![None; missing]).await
    }

    /// Creates a pod for each of `indexes`, until the first error. Returns their number.
    async fn create(&self, indexes: Vec<Option<i32>>) -> Result<i32, anyhow::Error> {
        let Controller {
            expectations,
            events,
            write_pods,
            ..
        } = self.controller;
        expectations.expect(self.name, indexes.len(), BTreeSet::new());
        let api = write_pods.in_namespace_of(self.job);
        let mut created = 0;
        let mut outcome = Ok(());
        for index in &indexes {
            match api
                .create(&PostParams::default(), &pod_of(self.job, *index))
                .await
            {
                Ok(pod) => {
                    created += 1;
                    events.normal(
                        self.job,
                        "SuccessfulCreate",
                        format!("Created pod: {}", pod.name_any()),
                    );
                }
                Err(error) => {
                    outcome = Err(anyhow::Error::from(error));
                    break;
                }
            }
        }
        for _ in created..indexes.len() {
            expectations.created(self.name);
        }
        match outcome {
            // Nothing can be created in a namespace that is being deleted.
            Err(error) if !is_in_ending_namespace(&error) => {
                let text = format!("Error creating: {}", message_of(&error));
                events.warning(self.job, "FailedCreate", text);
                Err(error)
            }
            _ => Ok(i32::try_from(created)?),
        }
    }

    /// Deletes pods, until the first error. Returns their number.
    async fn delete(&self, pods: &[Arc<Pod>]) -> Result<i32, anyhow::Error> {
        if pods.is_empty() {
            return Ok(0);
        }
        let Controller {
            expectations,
            events,
            write_pods,
            ..
        } = self.controller;
        let uid = |pod: &Arc<Pod>| pod.metadata.uid.clone().unwrap_or_default();
        expectations.expect(self.name, 0, pods.iter().map(uid).collect());
        let mut deleted = 0;
        let mut outcome = Ok(());
        for pod in pods {
            let params = DeleteParams::default().preconditions(this_one(&**pod));
            let api = write_pods.in_namespace_of(&**pod);
            if outcome.is_ok() {
                match api.delete(&pod.name_any(), &params).await {
                    Ok(_) => {
                        deleted += 1;
                        events.normal(
                            self.job,
                            "SuccessfulDelete",
                            format!("Deleted pod: {}", pod.name_any()),
                        );
                        continue;
                    }
                    Err(error) if is_gone(&error) => {}
                    Err(error) => outcome = Err(anyhow::Error::from(error)),
                }
            }
            expectations.deleted(self.name, &uid(pod));
        }
        outcome.map(|()| deleted)
    }

    async fn write(&self, status: JobStatus) -> Result<(), anyhow::Error> {
        if self.job.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let mut job = self.job.clone();
        job.status = Some(status);
        let api = self.controller.write_jobs.in_namespace_of(&job);
        api.replace_status(self.name.name(), &PostParams::default(), &job)
            .await?;
        Ok(())
    }

    /// Reports what is set and has no effect, when the Job starts.
    fn report_ignored_fields(&self) {
        let Some(spec) = &self.job.spec else { return };
        let ignored = [
            ("podFailurePolicy", spec.pod_failure_policy.is_some()),
            ("successPolicy", spec.success_policy.is_some()),
            (
                "backoffLimitPerIndex",
                spec.backoff_limit_per_index.is_some(),
            ),
        ];
        for (field, _) in ignored.iter().filter(|(_, is_set)| *is_set) {
            let text = format!("spec.{field} has no effect on this server");
            self.controller
                .events
                .warning(self.job, "FieldIgnored", text);
        }
    }

    fn report_suspension(&self) {
        let (reason, text) = if verdict::is_suspended(self.job) {
            ("Suspended", "Job suspended")
        } else {
            ("Resumed", "Job resumed")
        };
        self.controller.events.normal(self.job, reason, text);
    }

    fn report_end(&self, verdict: &Verdict) {
        let events = &self.controller.events;
        if verdict.is_success {
            events.normal(self.job, "Completed", "Job completed");
        } else {
            let reasons = ["BackoffLimitExceeded", "DeadlineExceeded"];
            let reason = reasons.into_iter().find(|reason| *reason == verdict.reason);
            events.warning(
                self.job,
                reason.unwrap_or("Failed"),
                verdict.message.clone(),
            );
        }
    }
}

fn count(tally: &Tally) -> i32 {
    i32::try_from(tally.active.len()).unwrap_or(i32::MAX)
}

/// Selects `number` pods to delete, those that are not ready first.
fn least_useful(pods: &[Arc<Pod>], number: usize) -> Vec<Arc<Pod>> {
    let mut pods = pods.to_vec();
    pods.sort_by_key(|pod| is_ready(pod));
    pods.truncate(number);
    pods
}
