//! Clients that write objects. Their total rate can be changed, and they can be paused.
//!
//! Guarantees: while a [`Pause`] exists, no write is sent and none waits for its response. A write that fails
//! is counted, not repeated.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use fastrand::Rng;
use kube_client::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use tokio::{
    sync::{OwnedRwLockWriteGuard, RwLock},
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use crate::object::{Kind, NAMESPACES, patch};

/// Number of concurrent writers. On a busy disk, a write takes 0.2 s, so the writers can then send 320 writes
/// per second.
const WRITERS: usize = 64;

/// Maximum duration of a write. It is longer than the time for which an API request waits while etcd has no
/// leader.
const WRITE_MAX: Duration = Duration::from_secs(8);

/// Share of the objects of each kind: of 7 objects, 4 are pods, 2 are config maps, and 1 is a secret.
const SHARES: [(Kind, usize); 3] = [(Kind::Pod, 4), (Kind::ConfigMap, 2), (Kind::Secret, 1)];

/// The objects of the run, and the writes so far.
#[derive(Debug, Default)]
struct Counts {
    number: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Writers {
    counts: Arc<Counts>,
    gate: Arc<RwLock<()>>,
    /// Writes per second of all writers, as the bits of an `f64`.
    rate: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

/// Keeps the writers paused.
#[derive(Debug)]
pub(crate) struct Pause(
    #[expect(dead_code, reason = "dropped to resume")] OwnedRwLockWriteGuard<()>,
);

/// An object that may exist.
#[derive(Clone, Debug)]
struct Slot {
    kind: Kind,
    namespace: &'static str,
    name: String,
    node: String,
    exists: bool,
}

impl Writers {
    /// Creates all objects, and starts the writers.
    ///
    /// `nodes` is the number of nodes, and each has at least one pod. `rate` is the total number of writes
    /// per second.
    ///
    /// # Errors
    /// Returns an error if an object can't be created.
    pub(crate) async fn start(
        client: &Client,
        rng: &mut Rng,
        nodes: usize,
        rate: f64,
    ) -> Result<Self> {
        let counts: Arc<Counts> = Arc::default();
        let mut parts = parts(nodes);
        let mut creating = JoinSet::new();
        for part in &parts {
            let (mut part, counts, client) = (part.clone(), Arc::clone(&counts), client.clone());
            creating.spawn(async move {
                for slot in &mut part {
                    slot.create(&client, counts.next()).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(created) = creating.join_next().await {
            created?.context("can't create the objects")?;
        }
        let gate = Arc::new(RwLock::new(()));
        let shared_rate = Arc::new(AtomicU64::new(rate.to_bits()));
        let mut tasks = JoinSet::new();
        for mut slots in parts.drain(..) {
            for slot in &mut slots {
                slot.exists = true;
            }
            let writer = Writer {
                client: client.clone(),
                slots,
                counts: Arc::clone(&counts),
                gate: Arc::clone(&gate),
                rate: Arc::clone(&shared_rate),
                rng: rng.fork(),
            };
            tasks.spawn(writer.run());
        }
        Ok(Self {
            counts,
            gate,
            rate: shared_rate,
            _tasks: tasks,
        })
    }

    pub(crate) fn set_rate(&self, rate: f64) {
        self.rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    /// Stops new writes, and returns when all earlier ones have ended.
    pub(crate) async fn pause(&self) -> Pause {
        Pause(Arc::clone(&self.gate).write_owned().await)
    }

    /// Returns the numbers of writes that succeeded and failed so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.counts.done), read(&self.counts.failed))
    }
}

impl Counts {
    fn next(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }
}

/// Divides all objects among the writers, and returns the objects of each writer. No object has two writers.
fn parts(nodes: usize) -> Vec<Vec<Slot>> {
    let pods = nodes.max(100) * 5 / 4;
    let mut parts = vec![Vec::new(); WRITERS];
    for (kind, share) in SHARES {
        for index in 0..pods * share / 4 {
            let slot = Slot {
                kind,
                namespace: NAMESPACES[index % NAMESPACES.len()],
                name: format!("slot-{index}"),
                node: format!("node-{}", index % nodes.max(1)),
                exists: false,
            };
            parts[index % WRITERS].push(slot);
        }
    }
    parts
}

struct Writer {
    client: Client,
    slots: Vec<Slot>,
    counts: Arc<Counts>,
    gate: Arc<RwLock<()>>,
    rate: Arc<AtomicU64>,
    rng: Rng,
}

impl Writer {
    async fn run(mut self) {
        loop {
            let bits = self.rate.load(Ordering::Relaxed);
            let rate = f64::from_bits(bits);
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let period = Duration::from_secs_f64(WRITERS as f64 / rate.max(0.1));
            // Spreads the writers over the period.
            sleep(period.mul_f64(self.rng.f64())).await;
            let mut ticks = interval(period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            while self.rate.load(Ordering::Relaxed) == bits {
                ticks.tick().await;
                let _open = Arc::clone(&self.gate).read_owned().await;
                let index = self.rng.usize(..self.slots.len());
                let (number, deletes) = (self.counts.next(), self.rng.u8(..100) < 15);
                let writing = self.slots[index].write(&self.client, number, deletes);
                let count = match timeout(WRITE_MAX, writing).await {
                    Ok(Ok(())) => &self.counts.done,
                    Ok(Err(_)) | Err(_) => &self.counts.failed,
                };
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Slot {
    fn api(&self, client: &Client) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), self.namespace, &self.kind.resource())
    }

    async fn create(&mut self, client: &Client, number: u64) -> Result<()> {
        let object = self.kind.object(&self.name, &self.node, number);
        let object: DynamicObject = serde_json::from_value(object)?;
        let api = self.api(client);
        let created = api.create(&PostParams::default(), &object).await;
        self.note(created.map(drop), true)
    }

    /// Creates the object if it does not exist, otherwise deletes or changes it.
    async fn write(&mut self, client: &Client, number: u64, deletes: bool) -> Result<()> {
        if !self.exists {
            return self.create(client, number).await;
        }
        let api = self.api(client);
        if deletes {
            let now = DeleteParams::default().grace_period(0);
            let done = api.delete(&self.name, &now).await;
            return self.note(done.map(drop), false);
        }
        let patch = Patch::Merge(patch(number));
        let patched = api.patch(&self.name, &PatchParams::default(), &patch).await;
        self.note(patched.map(drop), true)
    }

    /// Records whether the object exists after a write, and returns the error if the write failed.
    ///
    /// Records `exists` if the write succeeded, `false` for status 404, and `true` for status 409. Records
    /// nothing for other errors.
    fn note(&mut self, result: Result<(), kube_client::Error>, exists: bool) -> Result<()> {
        match result {
            Ok(()) => {
                self.exists = exists;
                Ok(())
            }
            Err(kube_client::Error::Api(status)) if status.code == 404 => {
                self.exists = false;
                bail!(status)
            }
            Err(kube_client::Error::Api(status)) if status.code == 409 => {
                self.exists = true;
                bail!(status)
            }
            Err(error) => Err(error.into()),
        }
    }
}
