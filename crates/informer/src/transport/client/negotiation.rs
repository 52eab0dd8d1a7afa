//! Selects the encoding of requests: the default encoding of the object type, or JSON if the server rejects
//! protobuf.
//!
//! Guarantees: if the server rejects the media types of protobuf, the module sends the request once more, and
//! accepts only JSON. No other request is sent twice. The module does not read the bodies of responses.

use std::{any::type_name, sync::atomic::Ordering};

use kube_core::Resource;

use super::{
    ListWatch,
    accept::{self, Wanted},
};
use crate::transport::{Encoding, Error, ListOptions, Response};

/// The error of a request, with the HTTP status of the response, if any.
pub(super) struct Rejected {
    pub(super) status: Option<http::StatusCode>,
    pub(super) error: Error,
}

impl Rejected {
    fn is_not_acceptable(&self) -> bool {
        self.status == Some(http::StatusCode::NOT_ACCEPTABLE)
    }
}

impl From<Error> for Rejected {
    fn from(error: Error) -> Self {
        Self {
            status: None,
            error,
        }
    }
}

// Whether the table of messages, which is that of Kubernetes 1.36, has the fields of the `k8s-openapi` types of
// the version that the program selects. Version 1.37 adds 31 fields. One field of 1.35, `spec.workloadRef` of
// pods, is missing in 1.36; a server of 1.35 stores it only if its alpha feature is enabled.
k8s_openapi::k8s_if_le_1_36! { const HAS_ALL_FIELDS: bool = true; }
k8s_openapi::k8s_if_ge_1_37! { const HAS_ALL_FIELDS: bool = false; }

/// Returns the encoding that a `ListWatch` of the type `K` requests by default.
///
/// The default is JSON for types that may have fields unknown to Kubernetes 1.36, because the protobuf
/// decoder drops these fields.
pub(super) fn default_encoding<K: Resource>() -> Encoding {
    let name = type_name::<K>();
    let pruned = name.strip_prefix("kube_informer::pruning::pruned::Pruned<");
    let is_typed = pruned.unwrap_or(name).starts_with("k8s_openapi::");
    if is_typed && HAS_ALL_FIELDS || K::metadata_api() {
        Encoding::Protobuf
    } else {
        Encoding::Json
    }
}

impl<K> ListWatch<K> {
    /// Sends a request, and sends it again in JSON if the server responds to protobuf with 406.
    ///
    /// If the second request succeeds, all later requests accept only JSON.
    pub(super) async fn negotiate(
        &self,
        options: &ListOptions,
        wanted: Wanted,
    ) -> Result<Response, Error> {
        let request = self.request(options, wanted)?;
        let accepts_protobuf = accept::is_of_protobuf(&request);
        let rejected = match self.send_once(request).await {
            Err(rejected) if accepts_protobuf && rejected.is_not_acceptable() => rejected,
            response => return response.map_err(|rejected| rejected.error),
        };
        let in_json = self.request_in(options, wanted, Some(Encoding::Json))?;
        match self.send_once(in_json).await {
            // Not the encoding is rejected, but the form, such as the metadata alone.
            Err(again) if again.is_not_acceptable() => Err(rejected.error),
            Err(again) => Err(again.error),
            Ok(response) => {
                self.is_json_only.store(true, Ordering::Relaxed);
                Ok(response)
            }
        }
    }
}
