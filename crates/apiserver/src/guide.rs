//! Explains how to test a controller with a [`Server`](crate::Server).
//!
//! Guarantees: `cargo test` compiles and runs each test of this guide as a separate file.
//!
#![cfg_attr(feature = "client", doc = include_str!("../testing.md"))]
#![cfg_attr(
    not(feature = "client"),
    doc = "It is about feature `client`, and shown where that is on."
)]
