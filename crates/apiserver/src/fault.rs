//! Faults: their grammar, the active rules, and their effects on response bodies.
//!
//! Guarantees:
//! - a rule takes effect immediately and exactly as often as it states, in the order in which rules were added;
//! - faults change requests and their responses, never the store.
//!
//! It does not respond to requests and does not change the server: [`fault_injection`](crate::fault_injection) does.

mod disturbance;
mod edit;
mod matching;
mod open_body;
mod plan;
mod rule;
#[cfg(test)]
mod shown;
mod switchboard;

pub use matching::Match;
pub(crate) use open_body::OpenBodyGuard;
pub use plan::PlanError;
pub(crate) use plan::{Placed, Plan};
pub(crate) use rule::{Action, Ending, ErrorResponse, Fault, FaultRule, Form, Restart, Statement};
pub(crate) use switchboard::{Connections, Planned, Switchboard, Verdict};
