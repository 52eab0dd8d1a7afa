//! Defines the strategy of persistent volumes.
//!
//! The server sets `status.lastPhaseTransitionTime` of a new volume to the time of its creation.

use serde_json::{Value, json};

use super::Hooks;
use crate::object::Object;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_status,
    ..Hooks::NONE
};

fn prepare_status(status: &mut Value, _volume: &Object, now: &str) {
    status["lastPhaseTransitionTime"] = json!(now);
}
