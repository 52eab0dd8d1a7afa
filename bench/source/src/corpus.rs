//! Generates Kubernetes objects that resemble those of a real cluster, from a seed.
//! A workload is a group of objects that are generated from one template.
//!
//! Guarantees:
//! - The same kind, number of objects and seed always give the same objects.
//! - The objects are ordered by namespace and name, as in a list of an API server.
//! - A [`Corpus`], which is a set of generated objects, keeps at most 2,000 templates in memory. The bytes of
//!   an object are generated from its template when the object is sent.

mod application;
mod config_map;
mod pod;
mod secret;
mod workload;

use std::ops::Range;

use anyhow::{Result, ensure};
use fastrand::Rng;

use crate::kind::{CorpusKind, Kind};
use crate::slot::{Encoding, Identity, SUFFIXES, Slots, mix};
use crate::template::{Pattern, Template};
use workload::Workload;

/// Maximum number of workloads in a corpus. All objects of a workload are generated from one template.
const WORKLOADS_MAX: usize = 2_000;

/// Minimum mean number of objects per workload.
///
/// The number of workloads is the number of objects divided by this minimum, but between 1 and
/// [`WORKLOADS_MAX`].
const OBJECTS_PER_WORKLOAD_MIN: usize = 5;

/// Mean number of pods on each node of the simulated cluster.
const PODS_PER_NODE: usize = 30;

/// A set of generated objects of one kind, identified by indexes that start at 0.
#[derive(Debug)]
pub struct Corpus {
    kind: &'static Kind,
    seed: u64,
    templates: Vec<Template>,
    /// Index of the first object of each workload, followed by the total number of objects.
    starts: Vec<usize>,
    nodes: u32,
}

/// The `resourceVersion` of a generated object, and the time of its last change.
///
/// A change of an object replaces both values, and changes nothing else in the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The `resourceVersion` of the object.
    pub revision: u64,
    /// Time of the last change in nanoseconds since 1970, or 0 if the object has never changed.
    pub stamp: u64,
}

/// Generates the bytes of a corpus's objects in one encoding. Writing in ascending order of indexes is
/// fastest.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    corpus: &'a Corpus,
    encoding: Encoding,
    /// Index of the workload that contains the most recently written or measured object.
    workload: usize,
    scratch: Vec<u8>,
}

// === impl Corpus ===

impl Corpus {
    /// Creates a corpus of `objects` objects, whose random values are derived from `seed`.
    ///
    /// # Errors
    ///
    /// Returns an error if the number of objects is 0 or above 100,000,000.
    pub fn new(kind: CorpusKind, objects: usize, seed: u64) -> Result<Corpus> {
        ensure!(objects > 0, "a corpus has at least one object");
        ensure!(
            objects <= 100_000_000,
            "a corpus has at most 100,000,000 objects"
        );
        let count = (objects / OBJECTS_PER_WORKLOAD_MIN).clamp(1, WORKLOADS_MAX);
        let workloads = Workload::draw(count, seed);
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
            templates.push(Template::new(kind.kind(), &object, &slots)?);
        }
        Ok(Corpus {
            kind: kind.kind(),
            seed,
            templates,
            starts: starts(&workloads, objects),
            nodes: u32::try_from(objects / PODS_PER_NODE).unwrap_or(u32::MAX),
        })
    }

    /// Returns the kind of the objects.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// Returns the number of objects in the corpus.
    #[expect(clippy::len_without_is_empty, reason = "a corpus is never empty")]
    pub fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or_default()
    }

    /// Returns the number of workloads: groups of objects generated from one template.
    pub fn workloads(&self) -> usize {
        self.templates.len()
    }

    /// Creates a writer for `encoding`, which the kind of the corpus must support.
    pub(crate) fn writer(&self, encoding: Encoding) -> Writer<'_> {
        Writer {
            corpus: self,
            encoding,
            workload: 0,
            scratch: Vec::new(),
        }
    }

    /// Returns the bytes of the object with the index `at`.
    ///
    /// The kind of the corpus must support `encoding`. The JSON text lacks the opening brace, `apiVersion`
    /// and `kind`. The protobuf message lacks the envelope `runtime.Unknown`.
    pub fn object(&self, at: usize, version: Version, encoding: Encoding) -> Vec<u8> {
        let mut out = Vec::new();
        self.writer(encoding).write(at, version, &mut out);
        out
    }

    /// For each workload with objects in `range`, returns the size of an object in bytes and the number of
    /// these objects.
    ///
    /// All objects of a workload have the same size.
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

/// Distributes the objects among the workloads.
///
/// Each workload receives one object. The remaining objects are distributed in proportion to the weights.
///
/// Returns the index of the first object of each workload, followed by the total number of objects.
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
    /// Returns the length in bytes of the object with the index `at`.
    pub(crate) fn len(&mut self, at: usize) -> usize {
        self.find(at);
        self.pattern().len()
    }

    /// Appends the object with the index `at` to `out`.
    pub(crate) fn write(&mut self, at: usize, version: Version, out: &mut Vec<u8>) {
        self.find(at);
        let first = self.corpus.starts[self.workload];
        let count = self.corpus.starts[self.workload + 1] - first;
        let seed = mix(self.corpus.seed ^ mix(at as u64));
        // Each object has its own range of suffixes, so that names ascend and are unique.
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
            .expect("a writer has an encoding that the kind supports")
    }

    /// Sets `workload` to the index of the workload that contains the object with the index `at`.
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
