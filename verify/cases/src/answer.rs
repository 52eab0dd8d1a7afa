//! Defines [`Answer`], the response of a server to a command of a case.
//!
//! An answer contains the values that the server sent, such as revisions and uids. The module `trace` later
//! replaces these values by names.

use bytes::Bytes;
use serde_json::Value;

use crate::json::Json;

/// The response to one command.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Response(Response),
    /// The response to a request that prepares the case. The text of the case contains the response only if
    /// the request failed.
    Prepared(Response),
    /// The command was not carried out, or the awaited state did not occur in time. The text states the
    /// reason.
    Impossible(String),
    /// Events of a watch, and how the command ended.
    Events {
        events: Vec<Json>,
        end: End,
    },
    /// Lines about an informer, and how the command ended.
    Lines {
        lines: Vec<Line>,
        end: End,
    },
    /// The text of the responses about a manifest.
    Exchanges(String),
    /// The command has succeeded, and has no output in the text of the case.
    Nothing,
}

/// An event of a handler, or the state of an informer.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// The objects that `text` describes, such as the old and the new state of an object.
    pub(crate) objects: Vec<Value>,
}

#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// All headers, with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Content,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Json(Json),
    /// A body that is not JSON.
    Other(Bytes),
    /// The body is a watch, which other commands read.
    Stream,
}

/// How the reading of events ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    /// The command received the events that it waited for.
    Received,
    /// The server ended the watch.
    Ended,
    /// No event arrived in time.
    Late,
}

impl Answer {
    pub(crate) fn line(text: String, objects: Vec<Value>) -> Self {
        Self::Lines {
            lines: vec![Line { text, objects }],
            end: End::Received,
        }
    }

    /// Returns the HTTP response that the answer contains, if any.
    pub(crate) fn response(&self) -> Option<&Response> {
        match self {
            Self::Response(response) | Self::Prepared(response) => Some(response),
            Self::Impossible(_)
            | Self::Events { .. }
            | Self::Lines { .. }
            | Self::Exchanges(_)
            | Self::Nothing => None,
        }
    }

    /// Returns `false` for [`Impossible`](Self::Impossible), and for a failed request that prepares the case.
    ///
    /// With kube-apiserver, such an answer means that the commands of the case are wrong.
    pub(crate) fn is_possible(&self) -> bool {
        match self {
            Self::Prepared(response) => response.is_success(),
            Self::Impossible(_) => false,
            Self::Response(_)
            | Self::Events { .. }
            | Self::Lines { .. }
            | Self::Exchanges(_)
            | Self::Nothing => true,
        }
    }
}

impl Response {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the body, if it is JSON.
    pub(crate) fn json(&self) -> Option<&Value> {
        match &self.body {
            Content::Json(json) => Some(json),
            Content::Other(_) | Content::Stream => None,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|header| header.0 == name);
        found.map(|header| &*header.1)
    }
}
