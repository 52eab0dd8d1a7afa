//! Writes the events (`kubectl get events`) with which the control loops report what they did to an object.
//!
//! Guarantees:
//! - a loop never waits for an event. At most [`QUEUE_MAX`] reports are queued; further ones are dropped, with a
//!   warning;
//! - a report that equals an earlier one, up to the time, increments the count of the earlier event;
//! - a request that fails without a response from the server is repeated [`ATTEMPTS`] times. An event that the
//!   server rejects is dropped, for example because the namespace is being deleted.
//!
//! The numbers and the fields are those of `client-go/tools/record`. Unlike client-go, the module neither combines
//! similar events nor limits their rate.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube_client::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use kube_core::Resource;
use serde_json::json;
use tokio::sync::mpsc;

use crate::{clock::Clock, object::is_gone};

/// Maximum number of queued reports; `maxQueuedEvents` in client-go.
const QUEUE_MAX: usize = 1_000;

/// Maximum number of requests for one report; `maxTriesPerEvent` in client-go.
const ATTEMPTS: u32 = 12;

/// Pause between two of these requests; `defaultSleepDuration` in client-go.
const PAUSE: Duration = Duration::from_secs(10);

/// Number of earlier events whose counts can increase; `maxLruCacheEntries` in client-go.
const REMEMBERED_MAX: usize = 4_096;

/// Reports of one control loop. Without a receiver, reports have no effect.
#[derive(Clone)]
pub(crate) struct Events {
    source: EventSource,
    sender: Option<mpsc::Sender<Report>>,
}

/// What distinguishes two events, apart from their times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct About {
    component: String,
    host: String,
    kind: String,
    namespace: String,
    name: String,
    uid: String,
    type_: &'static str,
    reason: &'static str,
    message: String,
}

/// A report on its way to the server.
pub(crate) struct Report {
    source: EventSource,
    object: ObjectReference,
    about: About,
}

/// The event that counts equal reports.
struct Counted {
    name: String,
    count: i32,
}

/// Sends the reports of a process to the server.
pub(crate) struct Writer {
    client: Client,
    clock: Clock,
    reports: mpsc::Receiver<Report>,
    counted: BTreeMap<About, Counted>,
    /// The keys of `counted`, the oldest first.
    order: VecDeque<About>,
    /// The latest time in the name of an event, in nanoseconds.
    latest: i128,
}

/// Returns a channel for the reports of a process, and what sends them to the server.
pub(crate) fn channel(client: Client, clock: Clock) -> (mpsc::Sender<Report>, Writer) {
    let (sender, reports) = mpsc::channel(QUEUE_MAX);
    let writer = Writer {
        client,
        clock,
        reports,
        counted: BTreeMap::new(),
        order: VecDeque::new(),
        latest: 0,
    };
    (sender, writer)
}

// === impl Events ===

impl Events {
    /// Creates the events of the component `component`, such as `deployment-controller`, on the node `host`.
    pub(crate) fn new(
        component: &str,
        host: Option<&str>,
        sender: Option<mpsc::Sender<Report>>,
    ) -> Self {
        Self {
            source: EventSource {
                component: Some(component.to_owned()),
                host: host.map(str::to_owned),
            },
            sender,
        }
    }

    pub(crate) fn normal<K>(&self, object: &K, reason: &'static str, message: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        self.report(object, ("Normal", reason), message.into());
    }

    pub(crate) fn warning<K>(&self, object: &K, reason: &'static str, message: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        self.report(object, ("Warning", reason), message.into());
    }

    fn report<K>(&self, object: &K, (type_, reason): (&'static str, &'static str), message: String)
    where
        K: Resource<DynamicType = ()>,
    {
        let Some(sender) = &self.sender else { return };
        let object = object.object_ref(&());
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let about = About {
            component: text(&self.source.component),
            host: text(&self.source.host),
            kind: text(&object.kind),
            namespace: object
                .namespace
                .clone()
                .unwrap_or_else(|| "default".to_owned()),
            name: text(&object.name),
            uid: text(&object.uid),
            type_,
            reason,
            message,
        };
        let report = Report {
            source: self.source.clone(),
            object,
            about,
        };
        if sender.try_send(report).is_err() {
            tracing::warn!(
                reason,
                "an event is not written, because too many wait or the loops end"
            );
        }
    }
}

// === impl Writer ===

impl Writer {
    /// Sends all reports. Returns when no [`Events`] of the process exists.
    pub(crate) async fn run(mut self) {
        while let Some(report) = self.reports.recv().await {
            for attempt in 1..=ATTEMPTS {
                match self.write(&report).await {
                    Ok(()) => break,
                    Err(kube_client::Error::Api(status)) => {
                        tracing::debug!(
                            reason = report.about.reason,
                            "the server rejected an event: {status}"
                        );
                        break;
                    }
                    Err(error) => {
                        tracing::info!(attempt, "can't write an event: {error}");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        }
    }

    async fn write(&mut self, report: &Report) -> Result<(), kube_client::Error> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &report.about.namespace);
        let now = self.clock.time();
        if let Some(counted) = self.counted.get_mut(&report.about) {
            let count = counted.count + 1;
            let patch = Patch::Merge(json!({"count": count, "lastTimestamp": now}));
            match events
                .patch(&counted.name, &PatchParams::default(), &patch)
                .await
            {
                Ok(_) => {
                    counted.count = count;
                    return Ok(());
                }
                // Events expire. Then the count starts again.
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let name = self.name(&report.about.name);
        let event = event(report, name.clone(), now);
        events.create(&PostParams::default(), &event).await?;
        self.remember(report.about.clone(), name);
        Ok(())
    }

    /// Returns a new name of an event about the object `object`.
    fn name(&mut self, object: &str) -> String {
        let now: Timestamp = self.clock.now();
        self.latest = now.as_nanosecond().max(self.latest + 1);
        format!("{object}.{:x}", self.latest)
    }

    fn remember(&mut self, about: About, name: String) {
        let counted = Counted { name, count: 1 };
        if self.counted.insert(about.clone(), counted).is_none() {
            self.order.push_back(about);
        }
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.counted.remove(&oldest);
        }
    }
}

fn event(report: &Report, name: String, now: Time) -> Event {
    let about = &report.about;
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(about.namespace.clone()),
            ..ObjectMeta::default()
        },
        involved_object: report.object.clone(),
        reason: Some(about.reason.to_owned()),
        message: Some(about.message.clone()),
        type_: Some(about.type_.to_owned()),
        reporting_component: report.source.component.clone(),
        reporting_instance: report.source.host.clone(),
        source: Some(report.source.clone()),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now),
        count: Some(1),
        ..Event::default()
    }
}
