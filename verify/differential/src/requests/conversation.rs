//! Connects client-go's reflector to an embedded server. The reflector runs in the oracle, which is a
//! separate Go process.
//!
//! The oracle sends a JSON line to this module in each of these cases:
//! - The next turn is due. A turn is a step of an operation, which changes objects or injects faults. This
//!   module executes the turn, and responds with a JSON line.
//! - The reflector sends a request to the server. This module responds with a JSON line.
//! - The reflector has closed a response body. This module does not respond.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::host::Host;
use crate::{
    oracle::Counterpart,
    sequence::{Answer, Sequence},
};

/// A JSON line that the oracle process sends to this module.
///
/// A field `at` is a time in nanoseconds since the start of the test sequence.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Heard {
    /// The next turn of an operation is due.
    Operates {
        at: u64,
        operation: usize,
        turn: usize,
    },
    /// A request of client-go's reflector to the server.
    Requests {
        at: u64,
        path: String,
        query: String,
    },
    /// client-go has closed the response body with the number `leaves`.
    ///
    /// Response bodies are numbered from 1, in the order of the responses.
    Leaves { leaves: u64 },
}

/// The embedded server for client-go's reflector, and the requests that the reflector has sent.
pub(super) struct Conversation {
    host: Host,
    /// The formatted requests that followed each operation.
    said: Vec<Vec<String>>,
}

impl Conversation {
    pub(super) fn new(sequence: &Sequence) -> Self {
        Self {
            host: Host::new(sequence),
            said: Vec::new(),
        }
    }

    /// Appends the newly recorded requests of the reflector to the last entry of `said`.
    fn note(&mut self) {
        let lines = self.host.take();
        if let Some(said) = self.said.last_mut() {
            said.extend(lines.iter().map(ToString::to_string));
        }
    }
}

impl Counterpart for Conversation {
    fn hear(&mut self, line: &str) -> Result<Option<String>> {
        let heard =
            serde_json::from_str(line).with_context(|| format!("an oracle sent {line:?}"))?;
        let say = match heard {
            Heard::Operates {
                at,
                operation,
                turn,
            } => {
                self.note();
                match self.said.last_mut() {
                    Some(said) if turn > 0 => said.push(super::THEN.to_owned()),
                    _ => self.said.push(Vec::new()),
                }
                let happened = self.host.operate(operation, turn, Duration::from_nanos(at));
                serde_json::to_string(&happened)?
            }
            Heard::Requests { at, path, query } => {
                let answered = self.host.request(&path, &query, Duration::from_nanos(at));
                serde_json::to_string(&answered)?
            }
            Heard::Leaves { leaves } => {
                self.host.leave(leaves);
                return Ok(None);
            }
        };
        Ok(Some(say))
    }

    fn end(&mut self, stores: Vec<Option<Answer>>) -> Vec<Option<Answer>> {
        self.note();
        let said = std::mem::take(&mut self.said);
        let answers = said.into_iter().zip(stores).map(|(said, store)| {
            let store = store.as_ref().and_then(Answer::text).unwrap_or_default();
            Some(Answer::said(super::join(said, store)))
        });
        answers.collect()
    }
}
