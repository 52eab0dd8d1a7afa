//! Intentional differences.
//!
//! Read from `verify/differential/divergences.toml`, and recognised by predicates of the components, which
//! refer to them by name.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use harness::report::workspace;
use serde::Deserialize;

use crate::components::COMPONENTS;

/// The file, in the workspace.
pub(crate) const FILE: &str = "verify/differential/divergences.toml";

/// A difference, as the file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Divergence {
    /// The component that shows it.
    pub(crate) component: String,
    /// The affected behaviour.
    pub(crate) behaviour: String,
    /// What client-go does.
    pub(crate) client_go: String,
    /// What the library does.
    pub(crate) ours: String,
    /// The reason for the difference.
    pub(crate) reason: String,
    /// How the comparison recognises it.
    pub(crate) recognised: String,
}

/// All divergences, by name.
pub(crate) type Divergences = BTreeMap<String, Divergence>;

/// Reads the file.
///
/// # Errors
/// Returns an error if the file is missing, a field is missing or unknown, or a component does not exist.
pub(crate) fn read() -> Result<Divergences> {
    let text = std::fs::read_to_string(workspace().join(FILE)).context(FILE)?;
    parse(&text).context(FILE)
}

fn parse(text: &str) -> Result<Divergences> {
    let divergences: Divergences = toml::from_str(text)?;
    for (name, divergence) in &divergences {
        let known = COMPONENTS
            .iter()
            .any(|known| known.name == divergence.component);
        ensure!(
            known,
            "{name}: there is no component {}",
            divergence.component
        );
    }
    Ok(divergences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_divergence_needs_a_reason_and_a_component_that_exists() {
        let text = r#"
            [a_queue]
            component = "delta_fifo"
            behaviour = "b"
            client_go = "c"
            ours = "o"
            recognised = "r"
        "#;
        assert!(parse(text).is_err());
        let with_reason = format!("{text}\nreason = \"why\"");
        assert_eq!(parse(&with_reason).unwrap()["a_queue"].reason, "why");
        assert!(parse(&with_reason.replace("delta_fifo", "delta")).is_err());
    }
}
