//! Trains the entropy tables of the zstd dictionaries with which a packed cache compresses objects.
//!
//! A zstd dictionary consists of entropy tables and of sampled objects. An entropy table contains
//! probabilities, for example of bytes or of the lengths of repetitions.

use anyhow::{Context as _, Result};

use crate::corpus::{Corpus, Version};
use crate::kind::CorpusKind;
use crate::slot::Encoding;

/// Number of generated objects of each kind. Of these, [`SAMPLES`] evenly spaced objects train the
/// dictionary.
const OBJECTS: usize = 1024;

/// Number of samples of each kind in each encoding.
const SAMPLES: usize = 64;

/// Maximum length in bytes of the dictionary that zstd trains.
const DICTIONARY_BYTES: usize = 16 * 1024;

/// The three offsets that follow the probabilities in zstd's dictionaries: 1, 4 and 8.
const OFFSETS: [u8; 12] = [1, 0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0];

/// Trains the entropy tables of a zstd dictionary, and returns the beginning of the dictionary.
///
/// The beginning consists of the magic number, the identifier, the entropy tables, and the repeat offsets 1,
/// 4 and 8. The rest of a dictionary is text of any length, which the caller can append.
///
/// The entropy tables are trained with pods, `ConfigMaps` and custom resources in JSON, and with pods and
/// `ConfigMaps` in protobuf. Secrets are not used: their text is random, so it compresses badly with any
/// probabilities. Secrets would also make the probabilities less accurate for other text.
///
/// # Errors
///
/// Returns an error if zstd can't train a dictionary.
pub fn train() -> Result<Vec<u8>> {
    let mut samples = Vec::new();
    for kind in [CorpusKind::Pods, CorpusKind::Configmaps, CorpusKind::Custom] {
        let corpus = Corpus::new(kind, OBJECTS, 1)?;
        let encodings: &[_] = if corpus.kind().has_protobuf {
            &[Encoding::Json, Encoding::Protobuf]
        } else {
            &[Encoding::Json]
        };
        for &encoding in encodings {
            for at in (0..OBJECTS).step_by(OBJECTS / SAMPLES) {
                let version = Version {
                    revision: 4_000_000_000 + at as u64,
                    stamp: 0,
                };
                samples.push(corpus.object(at, version, encoding));
            }
        }
    }
    let mut dictionary = zstd::dict::from_samples(&samples, DICTIONARY_BYTES)?;
    let mut windows = dictionary.windows(OFFSETS.len());
    let at = windows.position(|window| window == OFFSETS);
    dictionary.truncate(at.context("a dictionary without offsets")? + OFFSETS.len());
    Ok(dictionary)
}
