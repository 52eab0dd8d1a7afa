//! Defines [`Match`], which selects the requests that a fault affects.
//!
//! Guarantees: a match is displayed in the syntax of a fault plan. The displayed text parses to an equal
//! match.

use std::fmt;

use crate::request_log::LoggedRequest;
use crate::route::Verb;

/// Conditions that select the requests to which a fault applies. A selected request meets all conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    pub(super) verb: Option<Verb>,
    pub(super) resource: Option<String>,
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) user_agent: Option<String>,
}

/// Prints a resource, name, namespace or user agent for a fault plan, in quotes if necessary.
pub(super) struct Word<'a>(pub(super) &'a str);

// === impl Match ===

impl Match {
    /// Creates a match that selects every request.
    pub fn any() -> Match {
        Match::default()
    }

    /// Creates a match that selects lists of a resource, such as `pods`.
    pub fn list(resource: &str) -> Match {
        Match::verb(Verb::List, resource)
    }

    /// Creates a match that selects watches of a resource, such as `pods`.
    pub fn watch(resource: &str) -> Match {
        Match::verb(Verb::Watch, resource)
    }

    /// Creates a match that selects requests with one verb on a resource, such as `pods`.
    pub fn verb(verb: Verb, resource: &str) -> Match {
        Match {
            verb: Some(verb),
            resource: Some(resource.to_owned()),
            ..Match::default()
        }
    }

    /// Restricts the selection to requests whose `User-Agent` contains `part`.
    #[must_use]
    pub fn from_user_agent(mut self, part: &str) -> Match {
        self.user_agent = Some(part.to_owned());
        self
    }

    /// Restricts the selection to requests for an object with this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Match {
        self.name = Some(name.to_owned());
        self
    }

    /// Restricts the selection to requests in this namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Match {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Creates a match that selects the watches of all resources.
    pub(crate) fn watches() -> Match {
        Match {
            verb: Some(Verb::Watch),
            ..Match::default()
        }
    }

    /// Returns whether this match selects every request that `narrower` selects.
    pub(crate) fn covers(&self, narrower: &Match) -> bool {
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let is_part = |part: &String| {
            let longer = narrower.user_agent.as_ref();
            longer.is_some_and(|longer| longer.contains(part.as_str()))
        };
        (self.verb.is_none() || self.verb == narrower.verb)
            && is(&self.resource, &narrower.resource)
            && is(&self.name, &narrower.name)
            && is(&self.namespace, &narrower.namespace)
            && self.user_agent.as_ref().is_none_or(is_part)
    }

    pub(crate) fn matches(&self, request: &LoggedRequest) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == found)
        };
        self.verb.is_none_or(|verb| verb == request.verb)
            && is(&self.resource, Some(&request.resource))
            && is(&self.name, request.name.as_deref())
            && is(&self.namespace, request.namespace.as_deref())
            && self
                .user_agent
                .as_ref()
                .is_none_or(|part| request.user_agent.contains(part.as_str()))
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.map_or("*", Verb::as_str))?;
        match &self.resource {
            Some(resource) => write!(f, " {}", Word(resource))?,
            None => f.write_str(" *")?,
        }
        let conditions = [
            ("named", &self.name),
            ("in", &self.namespace),
            ("from", &self.user_agent),
        ];
        for (word, wanted) in conditions {
            if let Some(wanted) = wanted {
                write!(f, " {word} {}", Word(wanted))?;
            }
        }
        Ok(())
    }
}

// === impl Word ===

impl Word<'_> {
    /// Returns whether a word of a fault plan may contain `character` without quotes.
    pub(super) fn holds(character: char) -> bool {
        !character.is_whitespace() && !character.is_control() && !";:\"#".contains(character)
    }
}

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() && self.0 != "*" && self.0.chars().all(Word::holds) {
            return f.write_str(self.0);
        }
        write!(f, "{}", serde_json::Value::from(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_covers_the_requests_of_a_longer_user_agent() {
        let watches = |agent| Match::watch("pods").from_user_agent(agent);
        assert!(watches("kubectl").covers(&watches("kubectl/1.36")));
        assert!(!watches("kubectl/1.36").covers(&watches("kubectl")));
        assert!(!watches("kubectl").covers(&Match::watch("pods")));
        assert!(Match::watch("pods").covers(&watches("kubectl")));
        assert!(!Match::watch("pods").named("a").covers(&watches("kubectl")));
    }
}
