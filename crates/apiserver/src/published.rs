//! Keeps the OpenAPI documents until a definition changes.
//!
//! Guarantees: a document is built by the first request that needs it, not when a server is built.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha512};

/// A document, in JSON, and in protobuf if it was requested.
pub(crate) struct Published {
    pub(crate) json: Bytes,
    /// The hash of the JSON, which identifies the document in both encodings.
    pub(crate) hash: String,
    protobuf: OnceLock<Bytes>,
}

/// The documents that were requested since a definition changed.
#[derive(Default)]
pub(crate) struct Publication {
    changes: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The number of changes of definitions before the documents were built.
    changes: u64,
    documents: BTreeMap<String, Arc<Published>>,
}

impl Published {
    fn new(json: String) -> Published {
        Published {
            hash: hash(json.as_bytes()),
            json: json.into(),
            protobuf: OnceLock::new(),
        }
    }

    /// Returns the document in protobuf, which `encode` writes if it was not needed yet.
    pub(crate) fn protobuf(&self, encode: impl FnOnce(&[u8]) -> Vec<u8>) -> Bytes {
        let written = || encode(&self.json).into();
        self.protobuf.get_or_init(written).clone()
    }
}

impl Publication {
    /// Records that a definition changes. The next requests build the documents again.
    ///
    /// The kinds can stay the same, since they do not contain the descriptions in a definition.
    pub(crate) fn expire(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Returns a document, which `build` returns as JSON if it was not requested since a definition changed. Returns
    /// `None` if `build` does.
    ///
    /// `build` reads definitions, and can see a later state of them; the next request then builds the document again.
    pub(crate) fn current(
        &self,
        name: &str,
        build: impl FnOnce() -> Option<String>,
    ) -> Option<Arc<Published>> {
        let mut kept = self.kept.lock();
        let changes = self.changes.load(Ordering::Acquire);
        if kept.changes != changes {
            kept.changes = changes;
            kept.documents.clear();
        }
        if let Some(published) = kept.documents.get(name) {
            return Some(Arc::clone(published));
        }
        let published = Arc::new(Published::new(build()?));
        kept.documents
            .insert(name.to_owned(), Arc::clone(&published));
        Some(published)
    }
}

/// Returns the hash of a document, as in kube-openapi.
fn hash(document: &[u8]) -> String {
    let hash = Sha512::digest(document);
    let digits: Vec<String> = hash.iter().map(|byte| format!("{byte:02X}")).collect();
    digits.concat()
}
