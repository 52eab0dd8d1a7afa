//! The request log as text for people: one line per request.

use std::fmt;

use super::{LoggedRequest, RequestLog};
use crate::route::{ListOptions, Verb};

/// Prints one line per request, as [`LoggedRequest`] does.
impl fmt::Display for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            writeln!(f, "({} earlier requests were dropped)", self.dropped)?;
        }
        for request in &self.requests {
            writeln!(f, "{request}")?;
        }
        Ok(())
    }
}

/// Prints the time since the start of the server in seconds, the status or `...` if there is none yet, the verb, the
/// path and the options, the revision of the response, the client, and the faults:
///
/// ```text
///    12.345 s  200  list    /api/v1/pods?limit=500  rv 17  controller/1.0
///    12.350 s  ...  watch   /api/v1/pods?resourceVersion=17  controller/1.0  [cut after 3 events]
/// ```
impl fmt::Display for LoggedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.map(|status| status.to_string());
        let status = status.as_deref().unwrap_or("...");
        let arrived = self.arrived.as_secs_f64();
        let (verb, path) = (self.verb.as_str(), &self.path);
        write!(f, "{arrived:>9.3} s  {status}  {verb:<6}  {path}")?;
        if matches!(self.verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
            write_options(&self.options, f)?;
        }
        if let Some(revision) = self.revision {
            write!(f, "  rv {revision}")?;
        }
        if !self.user_agent.is_empty() {
            write!(f, "  {}", self.user_agent)?;
        }
        if !self.faults.is_empty() {
            write!(f, "  [{}]", self.faults.join("; "))?;
        }
        Ok(())
    }
}

/// Writes the options of a list or watch that the client has set, as in a URL without its escapes.
fn write_options(options: &ListOptions, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let values = [
        ("resourceVersion", options.resource_version.clone()),
        (
            "resourceVersionMatch",
            options.resource_version_match.clone(),
        ),
        ("limit", number(options.limit)),
        ("continue", options.continue_token.clone()),
        ("labelSelector", options.label_selector.clone()),
        ("fieldSelector", options.field_selector.clone()),
        (
            "sendInitialEvents",
            options.send_initial_events.map(|sends| sends.to_string()),
        ),
        (
            "allowWatchBookmarks",
            options.allow_watch_bookmarks.then(|| "true".to_owned()),
        ),
        ("timeoutSeconds", number(options.timeout_seconds)),
    ];
    let mut separator = '?';
    for (name, value) in values {
        if let Some(value) = value {
            write!(f, "{separator}{name}={value}")?;
            separator = '&';
        }
    }
    Ok(())
}
