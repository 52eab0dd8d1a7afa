//! Compares the memory and the decoding time of objects decoded by `serde_json` with those of objects decoded
//! by the informer.
//!
//! The program prints a table with one row per kind of object. The column `floor` shows the memory of clones
//! of the decoded objects. This is the minimum memory of these objects, because cloned strings and vectors
//! have no spare capacity. The column `our count` shows the informer's own estimate of the memory of the
//! objects that it decoded. All memory figures except `our count` are bytes requested from the allocator.
//!
//! This program does not measure a running informer. The program `subject` measures a running informer.

use std::{alloc::System, hint::black_box, io::Write as _, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use clap::Parser;
use gauge::resident_kib;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_informer::fuzzing::read_json;
use serde::{Serialize, de::DeserializeOwned};
use source::{Corpus, CorpusKind, Encoding, Version};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
// Linked for its C symbols: it replaces `malloc` of the C library, as in the compared programs.
use tikv_jemallocator as _;

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Compares memory and decoding time of objects decoded by `serde_json` and by the informer
#[derive(Debug, Parser)]
struct Flags {
    /// Number of objects of each kind.
    #[arg(long, default_value_t = 1_000)]
    objects: usize,
    /// Number of times that each decoder decodes all objects; the table shows the fastest time.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Print only the memory in KiB of clones of this number of pods, as one line of JSON; the strings and
    /// vectors of clones have no spare capacity.
    #[arg(long, value_name = "PODS")]
    floor: Option<usize>,
    /// With `--floor`, print resident memory instead of the memory requested from the allocator.
    #[arg(long, requires = "floor")]
    resident: bool,
}

/// Bytes and blocks that a measured call has allocated and not freed.
#[derive(Clone, Copy)]
struct Held {
    bytes: usize,
    blocks: usize,
}

fn main() -> Result<()> {
    let flags = Flags::parse();
    let mut out = std::io::stdout().lock();
    if let Some(pods) = flags.floor {
        let (asked, resident) = floor(pods)?;
        let steady = if flags.resident { resident } else { asked };
        let line = serde_json::json!({"objects": pods, "steady_kib": steady});
        writeln!(out, "{line}")?;
        return Ok(());
    }
    writeln!(
        out,
        "| objects | JSON | serde_json | ours | floor | ours / floor | our count | blocks | serde_json | ours |"
    )?;
    writeln!(
        out,
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )?;
    let pods = corpus(CorpusKind::Pods, flags.objects)?;
    let slim = pods
        .iter()
        .map(|json| without_managed_fields(json))
        .collect::<Result<Vec<_>>>()?;
    for line in [
        line::<Pod>("pods", &pods, flags.rounds)?,
        line::<Pod>("pods, pruned", &slim, flags.rounds)?,
        line::<ConfigMap>(
            "config maps",
            &corpus(CorpusKind::Configmaps, flags.objects)?,
            flags.rounds,
        )?,
        line::<Secret>(
            "secrets",
            &corpus(CorpusKind::Secrets, flags.objects)?,
            flags.rounds,
        )?,
    ] {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn corpus(kind: CorpusKind, objects: usize) -> Result<Vec<Vec<u8>>> {
    let corpus = Corpus::new(kind, objects, 1)?;
    Ok((0..objects).map(|at| json(&corpus, at)).collect())
}

fn json(corpus: &Corpus, at: usize) -> Vec<u8> {
    let version = Version {
        revision: at as u64 + 1,
        stamp: 0,
    };
    // A corpus object has no opening brace.
    let mut json = b"{".to_vec();
    json.extend(corpus.object(at, version, Encoding::Json));
    json
}

/// Decodes `pods` pods, and measures the memory of their clones. A clone has no spare capacity.
///
/// Returns the memory requested from the allocator and the resident memory, in KiB.
fn floor(pods: usize) -> Result<(u64, u64)> {
    let corpus = Corpus::new(CorpusKind::Pods, pods, 1)?;
    let mut kept = Vec::with_capacity(pods);
    let resident = resident_kib()?;
    let region = Region::new(COUNTING);
    for at in 0..pods {
        let mut pod: Pod = serde_json::from_slice(&json(&corpus, at))?;
        pod.metadata.managed_fields = None;
        kept.push(Arc::new(pod.clone()));
    }
    let change = region.change();
    let asked = (change.bytes_allocated - change.bytes_deallocated) as u64;
    let resident = resident_kib()?.saturating_sub(resident);
    drop(black_box(kept));
    Ok((asked / 1024, resident))
}

fn without_managed_fields(json: &[u8]) -> Result<Vec<u8>> {
    let mut pod: Pod = serde_json::from_slice(json)?;
    pod.metadata.managed_fields = None;
    Ok(serde_json::to_vec(&pod)?)
}

fn line<K>(name: &str, all: &[Vec<u8>], rounds: usize) -> Result<String>
where
    K: DeserializeOwned + Serialize + Clone,
{
    let theirs = |json: &Vec<u8>| serde_json::from_slice::<K>(json).ok();
    let ours = |json: &Vec<u8>| Some(read_json::<K>(json).ok()?.0);
    let counted: Option<usize> = all
        .iter()
        .map(|json| Some(read_json::<K>(json).ok()?.1))
        .sum();
    let counted = counted.context("all of them can be decoded")? + all.len() * size_of::<K>();
    let (by_them, _) = held(|| all.iter().filter_map(theirs).collect::<Vec<K>>());
    let (by_us, decoded) = held(|| all.iter().filter_map(ours).collect::<Vec<K>>());
    let (floor, _) = held(|| decoded.clone());
    let times = fastest(all, rounds, &theirs, &ours);
    let each = |bytes: usize| bytes / all.len();
    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    let ratio = by_us.bytes as f64 / floor.bytes as f64;
    Ok(format!(
        "| {name} | {} | {} | {} | {} | {ratio:.3} | {} | {} | {:.1?} | {:.1?} |",
        each(all.iter().map(Vec::len).sum()),
        each(by_them.bytes),
        each(by_us.bytes),
        each(floor.bytes),
        each(counted),
        each(by_us.blocks),
        times.0,
        times.1,
    ))
}

fn held<T>(make: impl FnOnce() -> T) -> (Held, T) {
    let region = Region::new(COUNTING);
    let value = make();
    let change = region.change();
    let bytes = change.bytes_allocated - change.bytes_deallocated;
    let blocks = change.allocations - change.deallocations;
    (Held { bytes, blocks }, value)
}

/// Returns the mean decoding time per object in the fastest round of each decoder, `theirs` and `ours`.
fn fastest<K>(
    all: &[Vec<u8>],
    rounds: usize,
    theirs: &dyn Fn(&Vec<u8>) -> Option<K>,
    ours: &dyn Fn(&Vec<u8>) -> Option<K>,
) -> (Duration, Duration) {
    let each = |total: Duration| total / u32::try_from(all.len()).unwrap_or(u32::MAX);
    let round = |decode: &dyn Fn(&Vec<u8>) -> Option<K>| {
        let mut spent = Duration::ZERO;
        for json in all {
            #[expect(clippy::disallowed_types, reason = "decoding is measured in real time")]
            let from = std::time::Instant::now();
            let object = black_box(decode(black_box(json)));
            spent += from.elapsed();
            drop(object);
        }
        each(spent)
    };
    let rounds = (0..rounds.max(1)).map(|_| (round(theirs), round(ours)));
    rounds.fold((Duration::MAX, Duration::MAX), |least, this| {
        (least.0.min(this.0), least.1.min(this.1))
    })
}
