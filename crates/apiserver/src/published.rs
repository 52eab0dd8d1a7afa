//! Keeps the OpenAPI document of all kinds until a definition changes.
//!
//! Guarantees: the document is built by the first request that needs it, not when a server is built.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha512};

/// A document in both encodings.
pub(crate) struct Published {
    pub(crate) json: Bytes,
    /// The value of the header `ETag`, which is the same for both encodings.
    pub(crate) etag: String,
    protobuf: OnceLock<Bytes>,
}

/// The document, with the number of changes of definitions before it was built.
#[derive(Default)]
pub(crate) struct Publication {
    changes: AtomicU64,
    kept: Mutex<Option<(u64, Arc<Published>)>>,
}

impl Published {
    fn new(json: String) -> Published {
        Published {
            etag: etag(json.as_bytes()),
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
    /// Records that a definition changes. The next request builds the document again.
    ///
    /// The kinds can stay the same, since they do not contain the descriptions in a definition.
    pub(crate) fn expire(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the document, which `build` returns as JSON if a definition has changed since the last one.
    ///
    /// `build` reads definitions, and can see a later state of them; the next request then builds the document again.
    pub(crate) fn current(&self, build: impl FnOnce() -> String) -> Arc<Published> {
        let mut kept = self.kept.lock();
        let changes = self.changes.load(Ordering::Relaxed);
        if let Some((known, published)) = &*kept
            && *known == changes
        {
            return Arc::clone(published);
        }
        let published = Arc::new(Published::new(build()));
        *kept = Some((changes, Arc::clone(&published)));
        published
    }
}

/// Returns the value of the header `ETag` for a document: its quoted hash, as in kube-openapi.
pub(crate) fn etag(document: &[u8]) -> String {
    let hash = Sha512::digest(document);
    let digits: Vec<String> = hash.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("\"{}\"", digits.concat())
}
