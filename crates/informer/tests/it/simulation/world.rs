//! One life: a server, an informer with handlers, and a seeded hand that changes and breaks things.

use std::{collections::BTreeMap, time::Duration};

use fastrand::Rng;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    InitialList, ObjectName, SharedInformer,
    queue::{DeltaFifo, InOrder},
    shared_informer::{ListenerBuffer, Registration},
};
use kube_informer_apiserver::{Match, Server, Verb, WatchCache};
use serde_json::Value;
use tokio::time::sleep;

use super::{Outcome, history::History};
use crate::setting::{Running, builder, labelled, pod, requests, run};

/// After the faults have ended: two pauses at the cap of the back-off (60 s each), one list, and the
/// slowest handler's backlog.
const HEALED_WITHIN: Duration = Duration::from_secs(600);

/// Few names, so that the same object is changed, deleted and recreated again and again.
const NAMES: usize = 8;

pub(super) struct World {
    rng: Rng,
    server: Server,
    informer: Running,
    handlers: Vec<(History, Registration<Pod>)>,
    steps: BTreeMap<&'static str, usize>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let seeded = (0..rng.usize(0..NAMES)).map(|n| pod(&format!("p{n}")));
        let cache = if rng.u8(..4) == 0 {
            WatchCache::Off
        } else {
            WatchCache::Size(rng.usize(4..64))
        };
        let server = Server::builder()
            .seed(seeded)
            .watch_cache(cache)
            .rng_seed(rng.u64(..))
            .build();
        let mut informer = builder(&server)
            .rng_seed(rng.u64(..))
            .resync(Duration::from_secs(rng.u64(20..60)));
        if rng.bool() {
            informer = informer.queue(DeltaFifo::new());
        } else {
            informer = informer.queue(InOrder::new().batch_size(rng.usize(1..20)));
        }
        if rng.bool() {
            informer = informer.page_size(rng.u32(1..5));
        }
        if rng.bool() {
            informer = informer.initial_list(InitialList::List);
        }
        if rng.bool() {
            let period = Duration::from_secs(rng.u64(5..60));
            informer = informer.consistency_check(period);
        }
        Self {
            rng,
            informer: run(informer),
            server,
            handlers: Vec::new(),
            steps: BTreeMap::new(),
        }
    }

    pub(super) async fn live(mut self) -> Outcome {
        self.add_handler();
        for _ in 0..self.rng.usize(40..120) {
            let step = self.step();
            *self.steps.entry(step).or_default() += 1;
            if self.rng.u8(..4) > 0 {
                let millis = 10_u64.pow(self.rng.u32(0..5));
                sleep(Duration::from_millis(self.rng.u64(..=millis))).await;
            }
        }
        self.heal();
        self.check().await;
        self.finish().await
    }

    /// One change, one fault or one handler more.
    fn step(&mut self) -> &'static str {
        let faults = self.server.faults();
        match self.rng.u32(..100) {
            0..30 => self.change(),
            30..50 => self.delete(),
            50..55 => {
                for _ in 0..self.rng.usize(2..30) {
                    self.change();
                }
                "burst"
            }
            55..65 => {
                faults.cut_watches();
                "watch cut"
            }
            65..70 => {
                faults.break_watches();
                "watch broken"
            }
            70..78 => {
                faults.cut_watches();
                self.change();
                self.delete();
                faults.expire_history();
                "history expired while away"
            }
            78..82 => {
                faults.expire_history();
                "history expired"
            }
            82..86 => {
                faults
                    .answer(Match::list("pods"), 410)
                    .times(self.rng.u64(1..3));
                faults.cut_watches();
                faults.expire_history();
                "lists expired"
            }
            86..90 => {
                let verb = if self.rng.bool() {
                    Verb::List
                } else {
                    Verb::Watch
                };
                faults
                    .answer(Match::verb(verb, "pods"), 500)
                    .times(self.rng.u64(1..4));
                "500"
            }
            90..94 => {
                faults.answer(Match::any(), 429).times(self.rng.u64(1..4));
                "429"
            }
            94..95 => {
                faults.send_bookmarks();
                "bookmark"
            }
            95..98 => self.disturb_streams(),
            _ => {
                self.add_handler();
                "handler joins"
            }
        }
    }

    /// What can happen to a streaming list, and then a reason to make one.
    fn disturb_streams(&mut self) -> &'static str {
        let (fault, step) = match self.rng.u8(..4) {
            0 => ("watch pods: refuse streaming", "streaming refused"),
            1 => ("watch pods: drop end-bookmark", "end bookmark lost"),
            2 => ("watch pods: cut after 1 events", "stream cut"),
            _ => ("watch pods: break after 2 events", "stream broken"),
        };
        let faults = self.server.faults();
        let times = self.rng.u64(1..4);
        faults.inject(&format!("{fault} x{times}")).unwrap();
        faults.cut_watches();
        self.change();
        faults.expire_history();
        step
    }

    fn change(&mut self) -> &'static str {
        let name = format!("p{}", self.rng.usize(..NAMES));
        let new = labelled(&name, &self.rng.u32(..).to_string());
        let known = self.server.get("v1", "pods", &format!("default/{name}"));
        if known.is_some() {
            self.server.update(new).unwrap();
            return "update";
        }
        self.server.create(new).unwrap();
        "create"
    }

    fn delete(&mut self) -> &'static str {
        let name = format!("p{}", self.rng.usize(..NAMES));
        let deleted = self.server.delete("v1", "pods", &format!("default/{name}"));
        if deleted.is_err() {
            return "delete of nothing";
        }
        if self.rng.u8(..3) == 0 {
            self.server.create(pod(&name)).unwrap();
            return "delete and recreate";
        }
        "delete"
    }

    fn add_handler(&mut self) {
        let name = format!("handler-{}", self.handlers.len());
        let resyncs = self.rng.bool();
        let history = History::new(name.as_str(), resyncs);
        let slow = Duration::from_millis(if self.rng.bool() {
            self.rng.u64(..200)
        } else {
            0
        });
        let period = Duration::from_secs(if resyncs { self.rng.u64(1..60) } else { 0 });
        let buffer = match self.rng.u8(..4) {
            0 => ListenerBuffer::Block(4.try_into().unwrap()),
            1 => ListenerBuffer::Coalesce,
            _ => ListenerBuffer::Grow,
        };
        let pods: &SharedInformer<Pod> = &self.informer.pods;
        let registered = pods
            .handler(history.handler(slow))
            .name(name)
            .resync(period)
            .buffer(buffer)
            .register();
        self.handlers.push((history, registered.unwrap()));
    }

    fn heal(&self) {
        self.server.faults().clear();
    }

    async fn check(&self) {
        let pods = &self.informer.pods;
        pods.wait_for_sync().deadline(HEALED_WITHIN).await.unwrap();
        // A bookmark brings an idle watch up to date, also with what was written before it began.
        self.server.faults().send_bookmarks();
        let newest = self.server.revision();
        if let Err(error) = pods.wait_for_revision(newest, HEALED_WITHIN).await {
            let (status, asked) = (pods.status(), requests(&self.server));
            let depths: Vec<_> = self
                .handlers
                .iter()
                .map(|(_, handler)| handler.depth())
                .collect();
            panic!(
                "{error}; {status:?}; depths {depths:?}; asked:
{asked}"
            );
        }
        tokio::time::timeout(HEALED_WITHIN, pods.handlers_idle())
            .await
            .expect("handlers are idle");

        let server: BTreeMap<ObjectName, String> = self
            .server
            .list("v1", "pods")
            .iter()
            .map(name_and_revision)
            .collect();
        let cached = pods.indexer().list();
        let cached: BTreeMap<ObjectName, String> = cached
            .iter()
            .map(|object| (object.object_name().clone(), object.revision().to_string()))
            .collect();
        assert_eq!(cached, server, "the cache is the server's state");
        let different = pods.status().get().consistency.different;
        assert_eq!(different, 0, "nothing here loses an event");
        for (history, registration) in &self.handlers {
            history.check();
            assert!(registration.has_synced());
            assert_eq!(
                history.state(),
                server,
                "the history leads to the server's state"
            );
        }
    }

    async fn finish(self) -> Outcome {
        let mut trace: Vec<_> = requests(&self.server).lines().map(str::to_owned).collect();
        self.informer.stop().await;
        for (history, _) in &self.handlers {
            trace.append(&mut history.take_lines());
        }
        Outcome {
            trace,
            steps: self.steps,
        }
    }
}

fn name_and_revision(object: &Value) -> (ObjectName, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let name = ObjectName::new(Some(text("namespace")), text("name"));
    (name, text("resourceVersion").to_owned())
}
