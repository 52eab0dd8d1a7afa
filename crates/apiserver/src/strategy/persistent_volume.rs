//! The strategy of persistent volumes: sets the time of the first phase in the status of a new volume.

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
