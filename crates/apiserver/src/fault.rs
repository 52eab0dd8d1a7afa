//! Defines faults: the grammar of fault plans, the active rules, and the effects on response bodies.
//!
//! Guarantees:
//! - A rule affects requests as soon as it is added. It affects at most as many requests as its limits allow.
//! - Rules apply in the order in which they were added.
//! - A rule changes requests and their responses, never the store.
//!
//! The module does not respond to requests and does not change the state of the server. The module
//! [`fault_injection`](crate::fault_injection) does both.

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
