//! Selects the encoding of responses: the configured encoding, or JSON if the server rejects protobuf.
//!
//! Guarantees: if the server responds with 406 to a request that accepts protobuf, the module sends the
//! request once more, with an `Accept` header that allows only JSON. No other request is sent twice. The
//! module does not read the bodies of responses.

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

/// Returns the encoding that a `ListWatch` of the type `K` requests by default.
///
/// The default is protobuf for types of `k8s-openapi` and for types with only metadata. The protobuf decoder
/// has a table with the fields of these types, and drops all other fields. For all other types, the default
/// is therefore JSON.
pub(super) fn default_encoding<K: Resource>() -> Encoding {
    let name = type_name::<K>();
    let pruned = name.strip_prefix("kube_informer::pruning::pruned::Pruned<");
    let is_typed = pruned.unwrap_or(name).starts_with("k8s_openapi::");
    // The table has the fields of all `k8s-openapi` types, from 1.33 to 1.37, but for `spec.workloadRef` of pods
    // in 1.35, which a server stores only if its alpha feature is enabled.
    if is_typed || K::metadata_api() {
        Encoding::Protobuf
    } else {
        Encoding::Json
    }
}

impl<K> ListWatch<K> {
    /// Sends a request, and requests JSON instead if the server rejects protobuf with status 406.
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
