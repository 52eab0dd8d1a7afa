//! Serves generated Kubernetes objects for benchmarks of informers.
//!
//! The source serves lists and watches of objects of one kind, in JSON and protobuf. It changes the objects
//! when it receives a command. It is not a complete API server: `README.md` lists the features that it does
//! not support.
//!
//! Guarantees:
//! - Every client receives the same objects. The responses have the same order of objects and the same chunks
//!   as those of kube-apiserver.
//! - The bytes of an object are generated from a template when the object is sent.
//! - The record of changes has at most one entry per object plus 65,536 entries. An entry has 16 bytes.

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
