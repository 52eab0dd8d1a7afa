//! Keeps the OpenAPI document of all kinds until the served kinds change.
//!
//! Guarantees: the document is built by the first request that needs it, not when a server is built.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha512};

use crate::resource::Registry;

/// A document in both encodings.
pub(crate) struct Published {
    pub(crate) json: Bytes,
    /// The value of the header `ETag`, which is the same for both encodings.
    pub(crate) etag: String,
    protobuf: OnceLock<Bytes>,
}

/// The document for the kinds of one registry.
#[derive(Default)]
pub(crate) struct Publication(Mutex<Option<(Arc<Registry>, Arc<Published>)>>);

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
    /// Returns the document for the kinds of `registry`, which `build` returns as JSON if it is not known.
    ///
    /// A change of a definition replaces the registry. `build` reads definitions, and can see a later state of them;
    /// the next request then builds the document again.
    pub(crate) fn of(
        &self,
        registry: &Arc<Registry>,
        build: impl FnOnce() -> String,
    ) -> Arc<Published> {
        let mut kept = self.0.lock();
        if let Some((known, published)) = &*kept
            && Arc::ptr_eq(known, registry)
        {
            return Arc::clone(published);
        }
        let published = Arc::new(Published::new(build()));
        *kept = Some((Arc::clone(registry), Arc::clone(&published)));
        published
    }
}

/// Returns the value of the header `ETag` for a document: its quoted hash, as in kube-openapi.
pub(crate) fn etag(document: &[u8]) -> String {
    let hash = Sha512::digest(document);
    let digits: Vec<String> = hash.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("\"{}\"", digits.concat())
}
