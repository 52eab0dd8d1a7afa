//! Explains how to test a controller with a [`Server`](crate::Server).
//!
//! Each test in this guide is a complete program, which `cargo test` compiles and runs.
#![cfg_attr(feature = "client", doc = include_str!("../testing.md"))]
#![cfg_attr(
    not(feature = "client"),
    doc = "The documentation of this crate with feature `client` contains this guide."
)]
