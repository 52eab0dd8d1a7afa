//! Decodes and encodes the protobuf messages of Kubernetes' built-in kinds, with types that implement serde.
//!
//! [`decode`] decodes a message to any type that implements [`Deserialize`](serde::Deserialize), such as the
//! types of `k8s-openapi`. With [`Missing::Zero`], the type receives the same members as from the JSON that
//! Go writes for the object, including zero values and null.
//!
//! [`encode`] encodes the JSON of an object as a message. The bytes equal the bytes that Go writes.
//!
//! The message definitions are generated from Kubernetes' own Go modules. This crate does not read or write
//! lists, watch events or HTTP.

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
pub use table::{
    Container, Field, Form, ListType, MapType, Message, MessageId, Messages, Presence, Type,
};
pub use wire::{WireError, WireFields, WireValue};
pub use write::{put_bytes, put_fixed64, put_length, put_varint};

#[cfg(test)]
mod tests;
