//! The informers of a run: large informers with caches of every [`Form`], and many small informers.
//!
//! Each small informer observes the pods of one node.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Result;
use fastrand::Rng;
use kube_client::Client;
use kube_informer::{InitialList, transport::Encoding};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    cluster::Cluster,
    object::{Kind, NAMESPACES, Selection, Truth},
    setback::Setbacks,
    subject::{Form, Options, Subject},
    wire::Wire,
};

/// Number of informers whose differences are reported.
const REPORTED: usize = 5;

pub(crate) struct Fleet {
    pub(crate) subjects: Vec<Subject>,
    /// The sources of all informers.
    pub(crate) wires: Vec<Arc<Wire>>,
    pub(crate) by_name: BTreeMap<String, Arc<Wire>>,
    tasks: JoinSet<()>,
}

impl Fleet {
    /// Starts `large` informers with random options, and `small` ones with the pods of one node each.
    ///
    /// # Errors
    /// Returns an error if an informer or a client can't be built.
    pub(crate) fn start(
        cluster: &Cluster,
        setbacks: &Setbacks,
        rng: &mut Rng,
        (large, small): (usize, usize),
    ) -> Result<Self> {
        let mut fleet = Self {
            subjects: Vec::new(),
            wires: Vec::new(),
            by_name: BTreeMap::new(),
            tasks: JoinSet::new(),
        };
        let clients = [cluster.client(true)?, cluster.client(false)?];
        for index in 0..large {
            let options = options(index, rng);
            let http = index % clients.len();
            fleet.add(options, &clients[http], setbacks)?;
        }
        // As in a program with one client for all of them.
        let client = cluster.client(true)?;
        for index in 0..small {
            fleet.add(small_options(index), &client, setbacks)?;
        }
        Ok(fleet)
    }

    fn add(&mut self, options: Options, client: &Client, setbacks: &Setbacks) -> Result<()> {
        let subject = Subject::start(options, client, setbacks, &mut self.tasks)?;
        for wire in &subject.wires {
            self.wires.push(Arc::clone(wire));
            self.by_name
                .insert(wire.name().to_owned(), Arc::clone(wire));
        }
        self.subjects.push(subject);
        Ok(())
    }

    /// Waits until every informer watches and agrees with a new list of the server. Stops waiting after
    /// `within`.
    ///
    /// # Errors
    /// Returns an error if the server can't be listed.
    pub(crate) async fn settle(&self, client: &Client, within: Duration) -> Result<Settled> {
        let until = Instant::now() + within;
        loop {
            let truth = match Truth::read(client).await {
                Ok(truth) => truth,
                // The server may still refuse requests for a moment.
                Err(_) if Instant::now() < until => {
                    sleep(Duration::from_millis(500)).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            // Only the informers that differ are compared again.
            let mut differing: Vec<&Subject> = self.subjects.iter().collect();
            let again = Instant::now() + Duration::from_secs(5);
            while Instant::now() < again && !differing.is_empty() {
                differing.retain(|subject| !subject.is_watching() || subject.differs(&truth));
                sleep(Duration::from_millis(100)).await;
            }
            let late = Instant::now() > until;
            if differing.is_empty() || late {
                let describe = |subject: &&Subject| match subject.difference(&truth) {
                    Some(difference) => difference,
                    None => subject.describe(),
                };
                let first = differing.iter().take(REPORTED).map(describe).collect();
                return Ok(Settled {
                    objects: truth.len(),
                    differing: differing.len(),
                    first,
                });
            }
        }
    }

    /// Returns the illegal events of all handlers.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.subjects.iter().filter_map(Subject::wrong).collect()
    }

    /// Returns the number of events of all handlers.
    pub(crate) fn events(&self) -> u64 {
        self.subjects.iter().map(Subject::events).sum()
    }

    /// Ends all informers, and waits for their tasks at most `within`.
    ///
    /// Returns what is wrong: tasks that have not ended or have panicked, illegal events, and unnecessary
    /// lists that informers have requested since the last check.
    pub(crate) async fn stop(mut self, within: Duration) -> Vec<String> {
        self.subjects.iter_mut().for_each(Subject::stop);
        let mut found = Vec::new();
        let all = async {
            while let Some(ended) = self.tasks.join_next().await {
                found.extend(ended.err().map(|error| error.to_string()));
            }
        };
        // The informers that have not ended are found below.
        let _ = tokio::time::timeout(within, all).await;
        let running = self.subjects.iter().filter(|subject| !subject.is_ended());
        found.extend(running.map(|subject| format!("{} has not ended", subject.describe())));
        found.extend(self.wrong());
        found.extend(self.wires.iter().flat_map(|wire| wire.unjustified()));
        found
    }
}

/// The result of a comparison of all informers.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) objects: usize,
    /// Number of informers that differ from the server or do not watch.
    pub(crate) differing: usize,
    /// Descriptions of the first differing informers.
    pub(crate) first: Vec<String>,
}

fn options(index: usize, rng: &mut Rng) -> Options {
    let lists = [
        InitialList::Pages,
        InitialList::List,
        InitialList::Streaming,
    ];
    let selection = match rng.u8(..4) {
        0 => {
            let mut namespaces = NAMESPACES.to_vec();
            rng.shuffle(&mut namespaces);
            namespaces.truncate(rng.usize(1..=3));
            Selection::Namespaces(namespaces)
        }
        1 => Selection::Even,
        _ => Selection::All,
    };
    Options {
        name: format!("large{index}"),
        kind: Kind::ALL[rng.usize(..Kind::ALL.len())],
        // Each form with each HTTP version, whose index is the parity of the informer's.
        form: Form::ALL[index / 2 % Form::ALL.len()],
        selection,
        encoding: encoding(rng.bool()),
        list: lists[rng.usize(..lists.len())],
    }
}

fn small_options(index: usize) -> Options {
    Options {
        name: format!("small{index}"),
        kind: Kind::Pod,
        form: Form::Typed,
        selection: Selection::Node(format!("node-{index}")),
        encoding: encoding(index.is_multiple_of(2)),
        list: InitialList::default(),
    }
}

fn encoding(protobuf: bool) -> Encoding {
    if protobuf {
        Encoding::Protobuf
    } else {
        Encoding::Json
    }
}
