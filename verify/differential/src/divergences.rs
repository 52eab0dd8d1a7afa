//! Reads the intentional differences between the library and client-go from
//! `verify/differential/divergences.toml`.
//!
//! This module does not detect the differences. The modules that compare parts of the library with client-go,
//! such as `delta_fifo`, detect the differences and refer to them by name.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use harness::report::workspace;
use serde::Deserialize;

use crate::components::COMPONENTS;

/// Path of the file that describes the intentional differences, relative to the workspace.
pub(crate) const FILE: &str = "verify/differential/divergences.toml";

/// Description of one intentional difference between client-go and the library, from [`FILE`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Divergence {
    /// Name of the compared component, such as `delta_fifo`, in which the difference occurs.
    pub(crate) component: String,
    /// Description of the behavior in which client-go and the library differ.
    pub(crate) behaviour: String,
    /// Description of client-go's behavior.
    pub(crate) client_go: String,
    /// Description of the library's behavior.
    pub(crate) ours: String,
    /// Reason why the library behaves differently from client-go.
    pub(crate) reason: String,
    /// Description of the condition under which the comparison accepts the difference.
    pub(crate) recognised: String,
}

/// All intentional differences between client-go and the library, keyed by name.
pub(crate) type Divergences = BTreeMap<String, Divergence>;

/// Reads the intentional differences from [`FILE`], and returns them by name.
///
/// # Errors
/// Returns an error if the file is missing or invalid, or names an unknown component.
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
