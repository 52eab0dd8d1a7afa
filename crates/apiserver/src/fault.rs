//! Defines faults: the grammar of fault plans, the active rules, and the effects on response bodies.
//!
//! Guarantees:
//! - A rule affects requests as soon as it is added. Its limits restrict the number of affected requests.
//! - Rules apply in the order in which they were added.
//! - A rule changes requests and their responses, never the store.
//!
//! This module does not serve requests. The module [`fault_injection`](crate::fault_injection) serves the
//! requests that add and remove rules.

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
