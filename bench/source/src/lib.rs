//! A neutral source of Kubernetes objects to measure informers against.
//!
//! It serves lists and watches of one generated corpus, in JSON and protobuf, and makes changes on request.
//! It is no API server: what it leaves out, `README.md` says.
//!
//! Guarantees:
//! - every client receives the same objects, in the order, with the bytes and in the chunks of an API server;
//! - serving costs little beside what is measured: objects are templates with holes, filled on the way out, so memory does not grow with their number either.

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
