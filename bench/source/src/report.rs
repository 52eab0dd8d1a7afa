//! Measures the sizes of generated objects in bytes: as JSON, as protobuf, and as compressed JSON.
//!
//! Guarantees: if there are more than [`SAMPLE_MAX`] generated objects, only a sample of evenly spaced
//! objects is measured.

use std::fmt;

use anyhow::Result;
use serde_json::json;

use crate::corpus::{Corpus, Version};
use crate::slot::Encoding;

/// Maximum number of generated objects that are measured.
const SAMPLE_MAX: usize = 50_000;

/// Maximum number of objects that train the compression dictionary.
const DICTIONARY_OBJECTS: usize = 1_000;

/// Maximum length of the compression dictionary in bytes; the default of zstd.
const DICTIONARY_BYTES: usize = 112_640;

/// The number of objects and workloads in a corpus, and its object sizes in each format.
///
/// A workload is a group of objects from one template.
#[derive(Clone, Debug)]
pub struct Report {
    objects: usize,
    workloads: usize,
    json: Sizes,
    protobuf: Option<Sizes>,
    compressed: Sizes,
    /// Sizes of JSON compressed with a dictionary; `None` if the corpus is too small to train one.
    with_dictionary: Option<Sizes>,
}

/// The mean and the median object size in one format, in bytes.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    mean: f64,
    median: usize,
}

// === impl Report ===

impl Report {
    /// Measures the sizes of the objects of `corpus`.
    ///
    /// # Errors
    ///
    /// Returns an error if the compression fails.
    pub fn of(corpus: &Corpus) -> Result<Report> {
        let count = corpus.len();
        let sample: Vec<_> = (0..count).step_by(count.div_ceil(SAMPLE_MAX)).collect();
        let object = |at, encoding| {
            let version = Version {
                revision: 4_000_000_000 + at as u64,
                stamp: 0,
            };
            corpus.object(at, version, encoding)
        };
        let sizes = |encoding| {
            Sizes::of(
                sample
                    .iter()
                    .map(|at| object(*at, encoding).len())
                    .collect(),
            )
        };
        let mut plain = zstd::bulk::Compressor::new(1)?;
        let mut compressed = Vec::with_capacity(sample.len());
        for at in &sample {
            compressed.push(plain.compress(&object(*at, Encoding::Json))?.len());
        }
        let first: Vec<_> = (0..count.min(DICTIONARY_OBJECTS))
            .map(|at| object(at, Encoding::Json))
            .collect();
        let mut with_dictionary = None;
        if let Ok(dictionary) = zstd::dict::from_samples(&first, DICTIONARY_BYTES) {
            let mut compressor = zstd::bulk::Compressor::with_dictionary(1, &dictionary)?;
            let mut lengths = Vec::with_capacity(sample.len());
            for at in &sample {
                lengths.push(compressor.compress(&object(*at, Encoding::Json))?.len());
            }
            with_dictionary = Some(Sizes::of(lengths));
        }
        Ok(Report {
            objects: count,
            workloads: corpus.workloads(),
            json: sizes(Encoding::Json),
            protobuf: corpus
                .kind()
                .has_protobuf
                .then(|| sizes(Encoding::Protobuf)),
            compressed: Sizes::of(compressed),
            with_dictionary,
        })
    }

    /// Returns one line of JSON with the mean object size in bytes for each format.
    ///
    /// `dictionary_bytes` is the mean size of JSON that is compressed with a dictionary. `ratio` is
    /// `json_bytes` divided by `dictionary_bytes`.
    pub fn line(&self) -> String {
        let dictionary = self.with_dictionary.map(|sizes| sizes.mean);
        let line = json!({
            "json_bytes": self.json.mean,
            "protobuf_bytes": self.protobuf.map(|sizes| sizes.mean),
            "zstd_bytes": self.compressed.mean,
            "dictionary_bytes": dictionary,
            "ratio": dictionary.map(|bytes| self.json.mean / bytes),
        });
        line.to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "objects          {} of {} workloads",
            self.objects, self.workloads
        )?;
        writeln!(f, "bytes per object mean / median")?;
        writeln!(f, "JSON             {}", self.json)?;
        match &self.protobuf {
            Some(sizes) => writeln!(f, "protobuf         {sizes}")?,
            None => writeln!(f, "protobuf         not for this kind")?,
        }
        let ratio = |sizes: &Sizes| self.json.mean / sizes.mean;
        writeln!(
            f,
            "zstd 1           {}, ratio {:.1}",
            self.compressed,
            ratio(&self.compressed)
        )?;
        match &self.with_dictionary {
            Some(sizes) => write!(f, "with dictionary  {sizes}, ratio {:.1}", ratio(sizes)),
            None => write!(f, "with dictionary  too few objects"),
        }
    }
}

// === impl Sizes ===

impl Sizes {
    fn of(mut lengths: Vec<usize>) -> Sizes {
        lengths.sort_unstable();
        let total: usize = lengths.iter().sum();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 bytes")]
        let mean = total as f64 / lengths.len().max(1) as f64;
        let median = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
        Sizes { mean, median }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} / {}", self.mean, self.median)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::kind::CorpusKind;

    fn line(kind: CorpusKind, objects: usize) -> Value {
        let report = Report::of(&Corpus::new(kind, objects, 1).unwrap()).unwrap();
        serde_json::from_str(&report.line()).unwrap()
    }

    #[test]
    fn unavailable_figures_are_null_and_a_dictionary_reduces_the_size() {
        let custom = line(CorpusKind::Custom, 200);
        assert_eq!(custom["protobuf_bytes"], Value::Null);
        let pods = line(CorpusKind::Pods, 200);
        let bytes = [
            "json_bytes",
            "protobuf_bytes",
            "zstd_bytes",
            "dictionary_bytes",
        ];
        let bytes = bytes.map(|name| pods[name].as_f64().unwrap());
        assert!(bytes.is_sorted_by(|more, less| more > less), "{bytes:?}");
        let ratio = pods["ratio"].as_f64().unwrap();
        assert_eq!(format!("{ratio:.6}"), format!("{:.6}", bytes[0] / bytes[3]));
    }
}
