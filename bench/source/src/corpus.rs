//! Objects like those of a cluster, as many as one asks for, from a seed.
//!
//! Guarantees:
//! - the same kind, number and seed are the same objects;
//! - objects are ordered by namespace and name, as an API server lists them;
//! - memory is that of 2,000 templates, whatever the number of objects: they are made when they are sent.

mod application;
mod config_map;
mod pod;
mod secret;
mod workload;

use std::ops::Range;

use anyhow::{Result, ensure};
use fastrand::Rng;

use crate::kind::{CorpusKind, Kind};
use crate::protobuf::Messages;
use crate::slot::{Encoding, Identity, SUFFIXES, Slots, mix};
use crate::template::{Pattern, Template};
use workload::Workload;

/// How many workloads there are, unless there are too few objects for it.
const WORKLOADS_MAX: usize = 2_000;

/// The fewest objects of a workload on average.
const OBJECTS_PER_WORKLOAD_MIN: usize = 5;

/// How many pods a node has.
const PODS_PER_NODE: usize = 30;

/// The objects of one kind.
#[derive(Debug)]
pub struct Corpus {
    kind: &'static Kind,
    seed: u64,
    templates: Vec<Template>,
    /// The number of each workload's first object, and behind the last the number of objects.
    starts: Vec<usize>,
    nodes: u32,
}

/// What changes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its revision.
    pub revision: u64,
    /// When its last change was sent, in nanoseconds since 1970; 0 if it has not changed.
    pub stamp: u64,
}

/// Writes objects of a corpus one after the other.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    corpus: &'a Corpus,
    encoding: Encoding,
    /// The workload of the object that was written last.
    workload: usize,
    scratch: Vec<u8>,
}

// === impl Corpus ===

impl Corpus {
    /// Makes the templates.
    ///
    /// # Errors
    ///
    /// No object is asked for, or more than names can be made for.
    pub fn new(kind: CorpusKind, objects: usize, seed: u64) -> Result<Corpus> {
        ensure!(objects > 0, "a corpus has one object at least");
        ensure!(
            objects <= 100_000_000,
            "a corpus has 100,000,000 objects at most"
        );
        let count = (objects / OBJECTS_PER_WORKLOAD_MIN).clamp(1, WORKLOADS_MAX);
        let workloads = Workload::draw(count, seed);
        let messages = Messages::read()?;
        let mut templates = Vec::with_capacity(count);
        for workload in &workloads {
            let mut slots = Slots::default();
            let mut rng = Rng::with_seed(mix(workload.seed));
            let object = match kind {
                CorpusKind::Pods => pod::pod(workload, &mut rng, &mut slots),
                CorpusKind::Configmaps => config_map::config_map(workload, &mut rng, &mut slots),
                CorpusKind::Custom => application::application(workload, &mut rng, &mut slots),
                CorpusKind::Secrets => secret::secret(workload, &mut rng, &mut slots),
            };
            templates.push(Template::new(kind.kind(), &messages, &object, &slots)?);
        }
        Ok(Corpus {
            kind: kind.kind(),
            seed,
            templates,
            starts: starts(&workloads, objects),
            nodes: u32::try_from(objects / PODS_PER_NODE).unwrap_or(u32::MAX),
        })
    }

    /// The kind of the objects.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// How many objects there are.
    #[expect(clippy::len_without_is_empty, reason = "a corpus is never empty")]
    pub fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or_default()
    }

    /// How many workloads they belong to.
    pub fn workloads(&self) -> usize {
        self.templates.len()
    }

    /// A writer of objects in an encoding that the kind has.
    pub(crate) fn writer(&self, encoding: Encoding) -> Writer<'_> {
        Writer {
            corpus: self,
            encoding,
            workload: 0,
            scratch: Vec::new(),
        }
    }

    /// The object in an encoding that its kind has; JSON has the members behind `apiVersion` and `kind`, protobuf the message without its envelope.
    pub fn object(&self, at: usize, version: Version, encoding: Encoding) -> Vec<u8> {
        let mut out = Vec::new();
        self.writer(encoding).write(at, version, &mut out);
        out
    }

    /// The lengths of the objects in a range: for each workload in it how long each object is, and how many.
    pub(crate) fn lengths(
        &self,
        range: Range<usize>,
        encoding: Encoding,
    ) -> impl Iterator<Item = (usize, usize)> {
        let bounds = self.starts.windows(2).zip(&self.templates);
        bounds.filter_map(move |(bounds, template)| {
            let count = bounds[1]
                .min(range.end)
                .saturating_sub(bounds[0].max(range.start));
            let len = template.pattern(encoding).map_or(0, Pattern::len);
            (count > 0).then_some((len, count))
        })
    }
}

/// Shares the objects out, in proportion to the workloads' weights and at least one each where there are enough.
fn starts(workloads: &[Workload], objects: usize) -> Vec<usize> {
    let total: usize = workloads.iter().map(|workload| workload.weight).sum();
    let spare = objects.saturating_sub(workloads.len());
    let mut starts = vec![0];
    let mut weight = 0;
    for (at, workload) in workloads.iter().enumerate() {
        weight += workload.weight;
        starts.push(at + 1 + spare * weight / total);
    }
    starts
}

// === impl Writer ===

impl Writer<'_> {
    /// How long the object is.
    pub(crate) fn len(&mut self, at: usize) -> usize {
        self.find(at);
        self.pattern().len()
    }

    /// Appends the object.
    pub(crate) fn write(&mut self, at: usize, version: Version, out: &mut Vec<u8>) {
        self.find(at);
        let first = self.corpus.starts[self.workload];
        let count = self.corpus.starts[self.workload + 1] - first;
        let seed = mix(self.corpus.seed ^ mix(at as u64));
        // Each object has a part of the names to itself, so names ascend and none is there twice.
        let part = SUFFIXES / count as u64;
        let identity = Identity {
            seed,
            suffix: (at - first) as u64 * part + seed % part.max(1),
            nodes: self.corpus.nodes,
            revision: version.revision,
            stamp: version.stamp,
        };
        let template = &self.corpus.templates[self.workload];
        if let Some(pattern) = template.pattern(self.encoding) {
            pattern.write(&identity, self.encoding, &mut self.scratch, out);
        }
    }

    fn pattern(&self) -> &Pattern {
        let template = &self.corpus.templates[self.workload];
        template
            .pattern(self.encoding)
            .expect("a writer is made for an encoding that the kind has")
    }

    /// Goes to the workload of an object; lists ask for one after the other.
    fn find(&mut self, at: usize) {
        let starts = &self.corpus.starts;
        let here = |workload: usize| starts[workload] <= at && at < starts[workload + 1];
        if here(self.workload) {
            return;
        }
        let next = self.workload + 1;
        self.workload = if next + 1 < starts.len() && here(next) {
            next
        } else {
            starts.partition_point(|start| *start <= at) - 1
        };
    }
}

#[cfg(test)]
mod tests;
