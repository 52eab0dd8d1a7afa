//! Serves generated Kubernetes objects for benchmarks of informers.
//!
//! The source serves lists and watches of one generated corpus, in JSON and protobuf, and makes changes on
//! request. It is not a complete API server: `README.md` lists what it does not support.
//!
//! Guarantees:
//! - every client receives the same objects, in the order, with the bytes and in the chunks of an API server;
//! - objects are written from templates when they are sent. CPU time is small compared to the measured
//!   programs, and memory grows by 16 bytes per change, for at most 65,536 changes and one per object.

mod kind;
mod protobuf;
mod slot;
mod template;
mod corpus;
mod history;
mod document;
mod refusal;
mod chunks;
mod framing;
mod source;
mod body;
mod request;
mod report;
mod server;

pub use chunks::Chunking;
pub use corpus::{Corpus, Version};
pub use kind::{CorpusKind, Kind};
pub use report::Report;
pub use server::serve;
pub use slot::Encoding;
pub use source::{Clock, Source};
