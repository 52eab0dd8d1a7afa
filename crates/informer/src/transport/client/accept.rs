//! Defines the `Accept` header of each type of request ([`Wanted`]).
//!
//! The header lists media types in order of preference. The server uses the first one that it supports.

use crate::transport::Encoding;

/// `Accept` header that requests only metadata, in a watch or for one object.
pub(super) const METADATA_ALONE: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// `Accept` header that requests only metadata, in a list.
const METADATA_OF_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// `Accept` header of a list that prefers metadata, but accepts whole objects.
const METADATA_IF_IT_CAN: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// `Accept` header that requests whole objects as JSON, in a list or a watch.
const JSON: &str = "application/json";

/// `Accept` header that requests whole objects in a list or a watch, preferably in protobuf.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";

/// Like [`METADATA_ALONE`], but prefers protobuf to JSON.
const METADATA_ALONE_PROTOBUF: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Like [`METADATA_OF_LIST`], but prefers protobuf to JSON.
const METADATA_OF_LIST_PROTOBUF: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Like [`METADATA_IF_IT_CAN`], but prefers protobuf to JSON.
const METADATA_IF_IT_CAN_PROTOBUF: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/vnd.kubernetes.protobuf,application/json";

/// Type of a request, which determines the `Accept` header and the option `watch=true`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    List,
    ListOfMetadata,
    Watch,
}

pub(super) fn is_of_protobuf<B>(request: &http::Request<B>) -> bool {
    let accept = request.headers().get(http::header::ACCEPT);
    let accept = accept.map_or(&b""[..], http::HeaderValue::as_bytes);
    accept.starts_with(b"application/vnd.kubernetes.protobuf")
}

impl Wanted {
    pub(super) fn accept(self, metadata_only: bool, encoding: Encoding) -> &'static str {
        let (json, protobuf) = match (metadata_only, self) {
            (true, Self::Watch) => (METADATA_ALONE, METADATA_ALONE_PROTOBUF),
            (true, Self::List | Self::ListOfMetadata) => {
                (METADATA_OF_LIST, METADATA_OF_LIST_PROTOBUF)
            }
            (false, Self::ListOfMetadata) => (METADATA_IF_IT_CAN, METADATA_IF_IT_CAN_PROTOBUF),
            (false, Self::List | Self::Watch) => (JSON, PROTOBUF),
        };
        match encoding {
            Encoding::Json => json,
            Encoding::Protobuf => protobuf,
        }
    }
}
