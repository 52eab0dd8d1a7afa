//! The protobuf encoding of Kubernetes' built-in kinds, for types that know only serde.
//!
//! [`decode`] reads a message into any type that implements [`Deserialize`](serde::Deserialize), such as those
//! of `k8s-openapi`. The type receives what it would receive from the JSON that Go writes for the same object:
//! the same names, and the same omitted, zero and null fields.
//!
//! [`encode`] writes the JSON of an object as a message, with the bytes that Go writes.
//!
//! The tables of messages are generated from Kubernetes' own modules. The crate knows nothing of lists, watches
//! or servers.

mod wire;
mod write;
mod envelope;
mod error;
mod table;
mod scalar;
mod order;
mod de;
mod encode;

pub use de::{Deserializer, Missing, Options, decode, decode_with};
pub use encode::encode;
pub use envelope::Envelope;
pub use error::Error;
pub use table::{Container, Field, Form, Message, MessageId, Messages, Presence, Type};
pub use wire::{WireError, WireFields, WireValue};
pub use write::{put_bytes, put_fixed64, put_varint};

#[cfg(test)]
mod tests;
