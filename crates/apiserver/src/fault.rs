//! Parses fault plans, stores their rules, and applies faults to response bodies.
//!
//! A fault is a deliberate failure, such as an error response, a delay or a watch that ends early. A fault
//! plan is a text with rules, actions and random seeds. A rule applies a fault to future requests that match
//! the rule. An action runs immediately, and can for example end open watches.
//!
//! Guarantees:
//! - A rule affects requests as soon as it is added, and at most as many requests as its limits allow.
//! - Rules apply in the order in which they were added.
//! - A rule can reject a request, or change or delay its response. A rule never changes the store.
//!
//! The module [`fault_injection`](crate::fault_injection) serves the requests that add and remove rules.

mod disturbance;
mod edit;
mod matching;
mod open_body;
mod plan;
mod rule;
#[cfg(test)]
mod shown;
mod switchboard;

pub(crate) use edit::Framing;
pub use matching::Match;
pub(crate) use open_body::OpenBodyGuard;
pub use plan::PlanError;
pub(crate) use plan::{Placed, Plan};
pub(crate) use rule::{Action, Ending, ErrorResponse, Fault, FaultRule, Form, Restart, Statement};
pub(crate) use switchboard::{Connections, Planned, Switchboard, Verdict};
