//! Which requests a fault is for.
//!
//! Guarantees: every condition must hold; what is printed is what a fault plan says, and reads back as the same.

use std::fmt;

use crate::request_log::LoggedRequest;
use crate::route::Verb;

/// Which requests a fault is for; every condition must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    pub(super) verb: Option<Verb>,
    pub(super) resource: Option<String>,
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) user_agent: Option<String>,
}

/// A word of a plan: in quotes, as JSON has them, if it could be read as something else.
pub(super) struct Word<'a>(pub(super) &'a str);

// === impl Match ===

impl Match {
    /// Every request.
    pub fn any() -> Match {
        Match::default()
    }

    /// Lists of a resource, such as `pods`.
    pub fn list(resource: &str) -> Match {
        Match::verb(Verb::List, resource)
    }

    /// Watches of a resource, such as `pods`.
    pub fn watch(resource: &str) -> Match {
        Match::verb(Verb::Watch, resource)
    }

    /// One verb on a resource, such as `pods`.
    pub fn verb(verb: Verb, resource: &str) -> Match {
        Match {
            verb: Some(verb),
            resource: Some(resource.to_owned()),
            ..Match::default()
        }
    }

    /// Only those whose `User-Agent` contains this.
    #[must_use]
    pub fn from_user_agent(mut self, part: &str) -> Match {
        self.user_agent = Some(part.to_owned());
        self
    }

    /// Only those about an object of this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Match {
        self.name = Some(name.to_owned());
        self
    }

    /// Only those below this namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Match {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Every watch.
    pub(crate) fn watches() -> Match {
        Match {
            verb: Some(Verb::Watch),
            ..Match::default()
        }
    }

    /// Whether it asks for nothing that `narrower` does not ask for too.
    pub(crate) fn covers(&self, narrower: &Match) -> bool {
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        (self.verb.is_none() || self.verb == narrower.verb)
            && is(&self.resource, &narrower.resource)
            && is(&self.name, &narrower.name)
            && is(&self.namespace, &narrower.namespace)
            && is(&self.user_agent, &narrower.user_agent)
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
    /// Whether a character can stand in a word without quotes.
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
