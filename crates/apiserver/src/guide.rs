//! A guide: how to test a controller against a [`Server`](crate::Server).
//!
//! Guarantees: its tests are run by `cargo test`, each as a file of its own.
//!
#![cfg_attr(feature = "client", doc = include_str!("../testing.md"))]
#![cfg_attr(
    not(feature = "client"),
    doc = "It is about feature `client`, and shown where that is on."
)]
