//! Parses the commands of a case that start, read and stop an informer.

use anyhow::{Context as _, Result, bail, ensure};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InformerCommand {
    pub(crate) informer: String,
    pub(crate) action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Start(Options),
    /// Registers a handler.
    ///
    /// Each callback of a slow handler blocks until a `SEEN` command has read the handler's previous event.
    /// The buffer of a slow handler holds one event. A full buffer blocks the informer.
    Handler {
        handler: String,
        is_slow: bool,
    },
    /// Waits until the cache contains the first list.
    Synced,
    /// Reads events that a handler has received.
    Seen {
        handler: String,
        wanted: Seen,
    },
    /// Reads all objects in the cache.
    Store,
    /// Waits until the status has this activity, and reads the status.
    Status(Activity),
    /// Waits until the informer watches.
    Watching,
    /// Waits until the cache contains the last response.
    Written,
    /// Closes the connections to the server, and rejects new ones.
    Cut,
    /// Ends a cut.
    Restore,
    /// Sets the user of all later requests of the informer.
    User(String),
    /// Stops the informer, and waits until all its tasks have ended.
    Stop,
}

/// How an informer lists and watches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    pub(crate) kind: String,
    /// Path of the collection.
    pub(crate) path: String,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    /// Further options, by name.
    pub(crate) settings: Vec<(String, String)>,
}

/// Events of a handler that a command waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Seen {
    /// The next events, this many.
    Count(usize),
    /// All events until the handler is dropped.
    UntilEnd,
}

/// The activity that a case waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Activity {
    Watching,
    /// The informer waits for a retry after an error of this class.
    Failing(String),
    NotServed,
    /// A slow handler blocks the cache, and the informer has therefore closed the watch.
    Full,
    Stopped,
}

impl InformerCommand {
    /// Parses a command from its first word, the rest of its first line, and its further lines.
    ///
    /// Returns `None` if the word is no command for informers.
    ///
    /// # Errors
    /// Returns an error that names the part that is missing or unknown.
    pub(crate) fn parse(word: &str, rest: &str, lines: &[&str]) -> Result<Option<Self>> {
        let words: Vec<_> = rest.split(' ').collect();
        let action = match (word, &words[1..]) {
            ("INFORMER", [kind, target]) => Action::Start(Options::parse(kind, target, lines)?),
            ("HANDLER", [handler]) => Action::handler(handler, false),
            ("HANDLER", [handler, "slow"]) => Action::handler(handler, true),
            ("SYNCED", []) => Action::Synced,
            ("SEEN", [handler, "until", "end"]) => Action::seen(handler, Seen::UntilEnd),
            ("SEEN", [handler, count]) => {
                let count = count.parse().context("not a number of events")?;
                Action::seen(handler, Seen::Count(count))
            }
            ("STORE", []) => Action::Store,
            ("STATUS", ["watching"]) => Action::Status(Activity::Watching),
            ("STATUS", ["failing", class]) => {
                Action::Status(Activity::Failing((*class).to_owned()))
            }
            ("STATUS", ["not-served"]) => Action::Status(Activity::NotServed),
            ("STATUS", ["full"]) => Action::Status(Activity::Full),
            ("STATUS", ["stopped"]) => Action::Status(Activity::Stopped),
            ("WATCHING", []) => Action::Watching,
            ("WRITTEN", []) => Action::Written,
            ("CUT", []) => Action::Cut,
            ("RESTORE", []) => Action::Restore,
            ("USER", [user]) => Action::User((*user).to_owned()),
            ("STOP", []) => Action::Stop,
            (
                "INFORMER" | "HANDLER" | "SYNCED" | "SEEN" | "STORE" | "STATUS" | "WATCHING"
                | "WRITTEN" | "CUT" | "RESTORE" | "USER" | "STOP",
                _,
            ) => bail!("{word} has other words"),
            _ => return Ok(None),
        };
        let has_options = matches!(action, Action::Start(_));
        ensure!(has_options || lines.is_empty(), "{word} has one line");
        ensure!(!words[0].is_empty(), "{word} names no informer");
        let informer = words[0].to_owned();
        Ok(Some(Self { informer, action }))
    }
}

impl Action {
    /// Returns whether the command waits for an effect of earlier commands.
    pub(crate) fn waits(&self) -> bool {
        matches!(
            self,
            Self::Synced | Self::Seen { .. } | Self::Status(_) | Self::Watching | Self::Written
        )
    }

    fn handler(handler: &str, is_slow: bool) -> Self {
        Self::Handler {
            handler: handler.to_owned(),
            is_slow,
        }
    }

    fn seen(handler: &str, wanted: Seen) -> Self {
        Self::Seen {
            handler: handler.to_owned(),
            wanted,
        }
    }
}

impl Options {
    fn parse(kind: &str, target: &str, lines: &[&str]) -> Result<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        ensure!(path.starts_with('/'), "{path:?} is no path");
        let mut options = Self {
            kind: kind.to_owned(),
            path: path.to_owned(),
            ..Self::default()
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("labelSelector", labels)) => options.labels = Some(labels.to_owned()),
                Some(("fieldSelector", fields)) => options.fields = Some(fields.to_owned()),
                _ => bail!("{pair:?} is no selector"),
            }
        }
        for line in lines {
            let (name, value) = line
                .split_once(": ")
                .with_context(|| format!("{line:?} is no option"))?;
            options.settings.push((name.to_owned(), value.to_owned()));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(word: &str, rest: &str, lines: &[&str]) -> Option<Action> {
        let parsed = InformerCommand::parse(word, rest, lines).unwrap()?;
        assert_eq!(parsed.informer, "i");
        Some(parsed.action)
    }

    #[test]
    fn an_informer_has_a_kind_a_collection_and_options() {
        let target = "i ConfigMap /api/v1/configmaps?labelSelector=a=b";
        let Some(Action::Start(options)) = parsed("INFORMER", target, &["list: pages"]) else {
            panic!("no start");
        };
        assert_eq!(
            (&*options.kind, &*options.path),
            ("ConfigMap", "/api/v1/configmaps")
        );
        assert_eq!(
            (options.labels.as_deref(), options.fields),
            (Some("a=b"), None)
        );
        assert_eq!(options.settings, [("list".to_owned(), "pages".to_owned())]);
    }

    #[test]
    fn events_of_a_handler_are_counted_or_read_to_the_end() {
        let seen = |wanted| Some(Action::seen("h", wanted));
        assert_eq!(parsed("SEEN", "i h 2", &[]), seen(Seen::Count(2)));
        assert_eq!(parsed("SEEN", "i h until end", &[]), seen(Seen::UntilEnd));
    }

    #[test]
    fn other_commands_are_left_to_other_parsers() {
        assert_eq!(parsed("GET", "/a", &[]), None);
    }

    #[test]
    fn an_incomplete_command_is_an_error() {
        for (word, rest, lines) in [
            ("INFORMER", "i ConfigMap", &[][..]),
            ("INFORMER", "i ConfigMap api", &[]),
            ("INFORMER", "i ConfigMap /api?limit=1", &[]),
            ("INFORMER", "i ConfigMap /api", &["pages"]),
            ("SEEN", "i h", &[]),
            ("SEEN", "i h some", &[]),
            ("STATUS", "i", &[]),
            ("STATUS", "i failing", &[]),
            ("STOP", "", &[]),
            ("STOP", "i", &["a: b"]),
        ] {
            let parsed = InformerCommand::parse(word, rest, lines);
            assert!(parsed.is_err(), "{word} {rest}: {parsed:?}");
        }
    }
}
