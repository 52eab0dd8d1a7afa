//! Creates new inputs by applying a few small random mutations to existing inputs.

use fastrand::Rng;
use harness::draw::Choose as _;

/// Maximum length of a mutated input in bytes.
const LONGEST: usize = 8 << 10;

/// Maximum number of mutations that are applied to one input.
const ACCIDENTS: usize = 6;

/// Bytes with a special meaning to parsers, such as delimiters. A mutation can write one of these bytes into
/// an input.
const TURNS: &[u8] = b"\0\x01\x7f\x80\xff\n\r\t \"\\/{}[],:%&=+-0919eE.";

/// Returns a randomly mutated copy of an input in `pool`.
///
/// `words` is the dictionary of the fuzz target: texts that mutations insert into inputs. `pool` starts with
/// the inputs of the corpus, and `first` is their number. On average, at least half of the calls mutate a
/// corpus input, because most mutated inputs are invalid.
///
/// # Panics
/// Can panic if `first` is 0.
pub(crate) fn mutate(random: &mut Rng, pool: &[Vec<u8>], first: usize, words: &[&str]) -> Vec<u8> {
    let choice = if random.bool() { first } else { pool.len() };
    let mut input = random.one(&pool[..choice]).clone();
    for _ in 0..=random.usize(..ACCIDENTS) {
        accident(random, &mut input, pool, words);
    }
    input.truncate(LONGEST);
    input
}

fn accident(random: &mut Rng, input: &mut Vec<u8>, pool: &[Vec<u8>], words: &[&str]) {
    let at = random.usize(..=input.len());
    let piece = piece(random, input.len());
    match random.u32(..9) {
        0 if at < input.len() => input[at] ^= 1 << random.u32(..8),
        1 if at < input.len() => input[at] = *random.one(TURNS),
        2 => input.insert(at, random.u8(..)),
        3 => drop(input.drain(piece)),
        4 => {
            let copy = input[piece].to_vec();
            insert(input, at, &copy);
        }
        5 => {
            let other = random.one(pool);
            let from = self::piece(random, other.len());
            insert(input, at, &other[from]);
        }
        6 => {
            let other = random.one(pool);
            input.truncate(at);
            input.extend_from_slice(&other[random.usize(..=other.len())..]);
        }
        _ if words.is_empty() => input.insert(at, random.u8(..)),
        7 => {
            let end = (at + random.usize(..8)).min(input.len());
            let word = random.one(words).bytes();
            input.splice(at..end, word);
        }
        _ => insert(input, at, random.one(words).as_bytes()),
    }
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if input.len() + bytes.len() <= 2 * LONGEST {
        input.splice(at..at, bytes.iter().copied());
    }
}

/// Returns a random byte range within an input; short ranges are more likely.
fn piece(random: &mut Rng, length: usize) -> std::ops::Range<usize> {
    let from = random.usize(..=length);
    let longest = if random.bool() { 16 } else { length };
    from..(from + random.usize(..=longest)).min(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_creates_the_same_inputs_and_they_differ() {
        let pool = [b"{\"items\":[1,2]}".to_vec(), b"abc".to_vec()];
        let made = |seed| {
            let mut random = Rng::with_seed(seed);
            let inputs = (0..200).map(|_| mutate(&mut random, &pool, 1, &["null"]));
            inputs.collect::<Vec<_>>()
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
        let mut inputs = made(1);
        inputs.sort();
        inputs.dedup();
        assert!(inputs.len() > 150, "{} of 200 are different", inputs.len());
    }

    #[test]
    fn no_input_exceeds_the_maximum_length() {
        let pool = [vec![b'x'; LONGEST]];
        let mut random = Rng::with_seed(1);
        let lengths = (0..100).map(|_| mutate(&mut random, &pool, 1, &[]).len());
        assert_eq!(lengths.max(), Some(LONGEST));
    }
}
