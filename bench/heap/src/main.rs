//! Compares the memory and the decoding time of objects decoded by `serde_json` with those of objects decoded
//! by the informer.
//!
//! The program prints a table with one row per kind of object. The column `floor` shows the memory of clones
//! of the decoded objects. This is the minimum memory of these objects, because cloned strings and vectors
//! have no spare capacity. The column `our count` shows the informer's own estimate of the memory of the
//! objects that it decoded. All memory figures except `our count` are bytes requested from the allocator.
//!
//! The last four columns are mean times per object, each from the fastest round. Three of them show the time
//! to decode and free an object. The decoders are `serde_json`, the informer's JSON decoder, and the protobuf
//! decoder `kube_informer_protobuf`. The informer's JSON decoder also estimates the memory of the object. In
//! the protobuf column, no estimate is made, although a running informer makes one. The last column shows the
//! time to allocate, copy and free an object of the same type without decoding. This time is a lower limit
//! for the other three.
//!
//! The program `subject` measures a running informer.

use std::{alloc::System, hint::black_box, io::Write as _, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use gauge::resident_kib;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_informer::fuzzing::read_json;
use kube_informer_protobuf::{MessageId, Messages, Missing, Options, decode, encode};
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
    /// Decode this number of pods, and print only the memory of their clones, in KiB, as one line of JSON.
    /// Clones have the minimum memory, because their strings and vectors have no spare capacity.
    #[arg(long, value_name = "PODS")]
    floor: Option<usize>,
    /// With `--floor`, print the growth of the resident memory instead of the memory requested from the
    /// allocator.
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
        "| objects | JSON | serde_json | ours | floor | ours / floor | our count | blocks | serde_json | ours | ours, protobuf | clone and drop |"
    )?;
    writeln!(
        out,
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )?;
    let pods = corpus(CorpusKind::Pods, flags.objects)?;
    let slim = pods
        .iter()
        .map(|json| without_managed_fields(json))
        .collect::<Result<Vec<_>>>()?;
    let config_maps = corpus(CorpusKind::Configmaps, flags.objects)?;
    let secrets = corpus(CorpusKind::Secrets, flags.objects)?;
    for line in [
        line::<Pod>("pods", "Pod", &pods, flags.rounds)?,
        line::<Pod>("pods, pruned", "Pod", &slim, flags.rounds)?,
        line::<ConfigMap>("config maps", "ConfigMap", &config_maps, flags.rounds)?,
        line::<Secret>("secrets", "Secret", &secrets, flags.rounds)?,
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

/// Decodes `pods` pods, and measures the memory of their clones. This is the minimum memory of the pods,
/// because clones have no spare capacity.
///
/// Returns the memory requested from the allocator and the growth of the resident memory, in KiB.
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

/// Measures the objects of one kind, and returns their row of the table.
///
/// `name` is the label of the row, `kind` is a kind of the API version `v1`, and `all` contains the JSON of
/// each object.
fn line<K>(name: &str, kind: &str, all: &[Vec<u8>], rounds: usize) -> Result<String>
where
    K: DeserializeOwned + Serialize + Clone,
{
    let message = Messages::builtin().of_kind("v1", kind);
    let message = message.context("the kind has a message type")?;
    let encoded = all
        .iter()
        .map(|json| Ok(encode(message, &serde_json::from_slice(json)?)?))
        .collect::<Result<Vec<_>>>()?;
    let can_decode = |bytes: &Vec<u8>| read::<K>(message, bytes).is_some();
    ensure!(
        encoded.iter().all(can_decode),
        "a protobuf message of {name} can't be decoded"
    );
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
    let mut least = [Duration::MAX; 4];
    for _ in 0..rounds.max(1) {
        let times = [
            timed(all, |json| drop(black_box(theirs(json)))),
            timed(all, |json| drop(black_box(ours(json)))),
            timed(&encoded, |bytes| drop(black_box(read::<K>(message, bytes)))),
            timed(&decoded, |object| drop(black_box(object.clone()))),
        ];
        for (least, time) in least.iter_mut().zip(times) {
            *least = time.min(*least);
        }
    }
    let each = |bytes: usize| bytes / all.len();
    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    let ratio = by_us.bytes as f64 / floor.bytes as f64;
    let [serde_json, json, protobuf, clone] = least;
    Ok(format!(
        "| {name} | {} | {} | {} | {} | {ratio:.3} | {} | {} | {serde_json:.1?} | {json:.1?} \
         | {protobuf:.1?} | {clone:.1?} |",
        each(all.iter().map(Vec::len).sum()),
        each(by_them.bytes),
        each(by_us.bytes),
        each(floor.bytes),
        each(counted),
        each(by_us.blocks),
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

/// Decodes the protobuf message of an object.
fn read<K: DeserializeOwned>(message: MessageId, bytes: &[u8]) -> Option<K> {
    let options = Options {
        depth: 127,
        containers: usize::MAX,
        values: usize::MAX,
        missing: Missing::Nothing,
    };
    decode(message, bytes, options).ok()
}

/// Calls `work` once with each object, and returns the mean time of one call.
fn timed<T>(all: &[T], mut work: impl FnMut(&T)) -> Duration {
    #[expect(clippy::disallowed_types, reason = "decoding is measured in real time")]
    let from = std::time::Instant::now();
    for object in all {
        work(black_box(object));
    }
    from.elapsed() / u32::try_from(all.len()).unwrap_or(u32::MAX)
}
