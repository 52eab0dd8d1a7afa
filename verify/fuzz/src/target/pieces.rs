//! Splits an input of a fuzz target into chunks, which simulate the frames of a response body.

use bytes::Bytes;

/// Returns five splits of `data` into chunks, always the same for the same data.
pub(super) fn cuts(data: &[u8]) -> Vec<Vec<Bytes>> {
    let data = Bytes::copy_from_slice(data);
    let seed = data.iter().fold(0, |seed: u64, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(*byte))
    });
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ways = vec![vec![data.clone()], cut(&data, || 1)];
    for longest in [3, 16, 64] {
        ways.push(cut(&data, || random.usize(1..=longest)));
    }
    ways
}

fn cut(data: &Bytes, mut length: impl FnMut() -> usize) -> Vec<Bytes> {
    let mut rest = data.clone();
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        chunks.push(rest.split_to(length().min(rest.len())));
    }
    chunks
}
