//! The mental model, what can be relied on, what happens when things fail, and what it costs.
//!
#![doc = include_str!("../guide.svg")]
//!
#![doc = include_str!("../guide.md")]
