//! Splits the same bytes into chunks in different ways.

use bytes::Bytes;

/// Returns five splits of the input: the whole input, single bytes, and three splits into chunks of random
/// lengths. The random lengths are seeded by the input.
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
