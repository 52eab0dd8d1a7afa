//! Serves generated Kubernetes objects for benchmarks of informers.
//!
//! This server is called the source. It serves lists and watches of objects of one kind, in JSON and
//! protobuf. It changes the objects when it receives a command. It is not a complete API server: `README.md`
//! lists the features that it does not support.
//!
//! Guarantees:
//! - Every client receives the same objects, in the order of kube-apiserver.
//! - By default, a response has the same HTTP chunks (over HTTP/2, DATA frames) as a response of
//!   kube-apiserver.
//! - The source does not store encoded objects. It stores only the changes, in entries of 16 bytes: at most
//!   one entry per object plus 65,536 entries.

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
pub mod probabilities;
mod server;

pub use chunks::Chunking;
pub use corpus::{Corpus, Version};
pub use kind::{CorpusKind, Kind};
pub use report::Report;
pub use server::serve;
pub use slot::Encoding;
pub use source::{Clock, Source};
