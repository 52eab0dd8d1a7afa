//! Parses the text of a fault plan into statements: random seeds, rules and actions.
//!
//! Guarantees:
//! - A plan with a mistake has no effect. The error contains the position of the first mistake and the
//!   expected input.
//! - The `Display` text of a rule or an action parses to an equal rule or action.

mod parser;
mod token;

use super::edit::{EDITS, Edit};
use super::matching::Match;
use super::rule::{
    Action, After, ENDINGS, ErrorResponse, Fault, FaultRule, Form, Moment, Restart, Split,
    Statement, Which,
};
use crate::route::Verb;
use parser::{Parser, share};
use token::{Kind, tokens};

/// Verbs that a rule of a fault plan can match.
const VERBS: [Verb; 9] = [
    Verb::Get,
    Verb::List,
    Verb::Watch,
    Verb::Create,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Other,
];

/// First word of each action in a fault plan, except the action `accept connections`.
const ACTIONS: [&str; 9] = [
    "cut", "break", "freeze", "thaw", "close", "send", "expire", "restart", "refuse",
];

/// Error for a mistake in a fault plan, or for an action of the plan that failed.
///
/// The error contains the position of the mistake or of the failed action in the plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fault plan, line {line}, column {column}: {message}")]
pub struct PlanError {
    line: usize,
    column: usize,
    message: String,
}

/// A fault plan: its text and the parsed statements.
pub(crate) struct Plan {
    pub(crate) text: String,
    pub(crate) statements: Vec<Placed>,
}

/// A statement of a fault plan, with its byte offset in the plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    pub(crate) statement: Statement,
    pub(crate) at: usize,
}

/// A mistake in a fault plan: its byte offset, and the error message.
struct Mistake {
    at: usize,
    message: String,
}

type Parsed<T> = Result<T, Mistake>;

impl Plan {
    pub(crate) fn parse(text: &str) -> Result<Plan, PlanError> {
        Ok(Plan {
            statements: parse(text)?,
            text: text.to_owned(),
        })
    }
}

pub(crate) fn parse(text: &str) -> Result<Vec<Placed>, PlanError> {
    let read = || Parser::new(tokens(text)?).plan();
    read().map_err(|mistake| PlanError::new(text, mistake.at, mistake.message))
}

// === impl PlanError ===

impl PlanError {
    /// Creates an error for the byte offset `at` in the plan `text`.
    pub(crate) fn new(text: &str, at: usize, message: String) -> PlanError {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |feed| feed + 1);
        PlanError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }

    /// Returns the line of the plan that contains the mistake or the failed action, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the column of the plan at which the mistake or the failed action starts, in characters,
    /// counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

// === impl Parser ===

impl Parser<'_> {
    fn plan(&mut self) -> Parsed<Vec<Placed>> {
        let mut statements = Vec::new();
        loop {
            while self.peek().kind == Kind::Separator {
                self.skip();
            }
            let at = self.peek().at;
            if self.peek().kind == Kind::End {
                return Ok(statements);
            }
            let statement = self.statement()?;
            statements.push(Placed { statement, at });
            if !matches!(self.peek().kind, Kind::Separator | Kind::End) {
                return self.expected("`;` or the end of the line");
            }
        }
    }

    fn statement(&mut self) -> Parsed<Statement> {
        if self.takes("seed") {
            return Ok(Statement::Seed(self.number()?));
        }
        if self.takes("accept") {
            self.word("connections")?;
            return Ok(Statement::Action(Action::Accept));
        }
        let word = self.peek().word();
        if word.is_some_and(|word| ACTIONS.contains(&word)) {
            return self.action().map(Statement::Action);
        }
        let at = self.peek().at;
        let matches = self.matches()?;
        if self.peek().kind != Kind::Colon {
            return self.expected("`:`, `named`, `in` or `from`");
        }
        self.skip();
        let fault = self.fault()?;
        if fault.needs_watch() && !matches!(matches.verb, None | Some(Verb::Watch)) {
            let message = format!("`{fault}` is for watches only");
            return Err(Mistake { at, message });
        }
        self.limits(FaultRule::new(matches, fault))
            .map(Statement::Rule)
    }

    fn matches(&mut self) -> Parsed<Match> {
        let names = || VERBS.iter().map(|verb| verb.as_str());
        let verb = match self.peek().word() {
            Some("*") => None,
            Some(word) if names().any(|name| name == word) => {
                VERBS.into_iter().find(|verb| verb.as_str() == word)
            }
            _ => {
                let names: Vec<&str> = names().collect();
                let known = format!(
                    "`*`, a verb ({}) or an action ({}, accept, seed)",
                    names.join(", "),
                    ACTIONS.join(", ")
                );
                return self.expected(&known);
            }
        };
        self.skip();
        let resource = match self.peek().word() {
            Some("*") => {
                self.skip();
                None
            }
            _ => Some(self.name("a resource, such as pods, or `*`")?),
        };
        let mut matches = Match {
            verb,
            resource,
            ..Match::default()
        };
        loop {
            if self.takes("named") {
                matches.name = Some(self.name("an object's name")?);
            } else if self.takes("in") {
                matches.namespace = Some(self.name("a namespace")?);
            } else if self.takes("from") {
                matches.user_agent = Some(self.name("a part of a User-Agent")?);
            } else {
                return Ok(matches);
            }
        }
    }

    fn fault(&mut self) -> Parsed<Fault> {
        let Some(word) = self.peek().word() else {
            return self.expected(&known_faults());
        };
        if let Ok(code) = word.parse::<u16>()
            && (400..600).contains(&code)
        {
            self.skip();
            return self.refusal(code).map(Fault::Answer);
        }
        if let Some((_, ending)) = ENDINGS.iter().find(|(known, _)| *known == word) {
            self.skip();
            return Ok(Fault::End(*ending, self.after()?));
        }
        if let Some((_, edit)) = EDITS.iter().find(|(known, _)| *known == word) {
            self.skip();
            return self.edit(*edit);
        }
        match word {
            "reset" => {
                self.skip();
                Ok(Fault::Reset)
            }
            "refuse" => {
                self.skip();
                self.word("streaming")?;
                Ok(Fault::RefuseStreaming)
            }
            "delay" => {
                self.skip();
                self.delay()
            }
            "split" => {
                self.skip();
                self.split().map(Fault::Split)
            }
            "send" => {
                self.skip();
                let text = self.text()?;
                self.word("after")?;
                let after = self.number()?;
                self.one_of(&["events", "event"])?;
                Ok(Fault::Send(text, after))
            }
            _ => self.expected(&known_faults()),
        }
    }

    fn refusal(&mut self, code: u16) -> Parsed<ErrorResponse> {
        let form = if self.takes("plain") {
            Form::Plain
        } else if code == 504 && self.takes("too-large") {
            Form::TooLarge
        } else {
            Form::Status
        };
        let retry_after = match self.setting("retry-after") {
            Some((at, value)) => Some(value.parse().map_err(|_| Mistake {
                at,
                message: format!("expected seconds, found `{value}`"),
            })?),
            None => None,
        };
        Ok(ErrorResponse {
            code,
            form,
            retry_after,
        })
    }

    /// Parses `after N events` or `after N bytes`. The default is `after 0 bytes`.
    fn after(&mut self) -> Parsed<After> {
        if !self.takes("after") {
            return Ok(After::Bytes(0));
        }
        let count = self.number()?;
        Ok(match self.one_of(&["events", "bytes", "event", "byte"])? {
            "events" | "event" => After::Events(count),
            _ => After::Bytes(count),
        })
    }

    fn edit(&mut self, edit: Edit) -> Parsed<Fault> {
        let which = if self.takes("events") {
            Which::All
        } else if self.takes("bookmarks") {
            Which::Bookmarks
        } else if self.takes("end-bookmark") {
            Which::EndBookmark
        } else if self.takes("event") {
            Which::Nth(self.count()?)
        } else if self.takes("every") {
            let nth = self.count()?;
            self.one_of(&["events", "event"])?;
            Which::Every(nth)
        } else if let Some(share) = self.peek().word().and_then(share) {
            self.skip();
            self.word("of")?;
            self.word("events")?;
            Which::Share(share)
        } else {
            return self.expected("`events`, `event N`, `every N events`, `P% of events`, `bookmarks` or `end-bookmark`");
        };
        Ok(Fault::Edit(edit, which))
    }

    fn delay(&mut self) -> Parsed<Fault> {
        let moment = if self.takes("first") {
            self.word("byte")?;
            Moment::FirstByte
        } else if self.takes("each") {
            self.word("event")?;
            Moment::EachEvent
        } else {
            self.takes("answer");
            Moment::Answer
        };
        Ok(Fault::Delay(moment, self.period()?))
    }

    fn split(&mut self) -> Parsed<Split> {
        match self.one_of(&["every", "at", "randomly"])? {
            "every" => {
                let bytes = self.count()?;
                self.one_of(&["bytes", "byte"])?;
                Ok(Split::Every(bytes))
            }
            "at" => {
                let borders = self.peek().word().and_then(|list| {
                    let numbers = list.split(',').map(|number| number.parse().ok());
                    numbers.collect::<Option<Vec<u64>>>()
                });
                match borders {
                    Some(borders) if borders.is_sorted() => {
                        self.skip();
                        Ok(Split::At(borders))
                    }
                    _ => self.expected("byte offsets in growing order, such as `5,20`"),
                }
            }
            _ => Ok(Split::Randomly),
        }
    }

    /// Parses the limits at the end of a rule (`skip=N`, `chance=P%`, `xN`) into `rule`.
    fn limits(&mut self, mut rule: FaultRule) -> Parsed<FaultRule> {
        loop {
            let token = self.peek();
            let Some(word) = token.word() else {
                return Ok(rule);
            };
            let bad = |message: &str| {
                Err(Mistake {
                    at: token.at,
                    message: message.to_owned(),
                })
            };
            if let Some(times) = word.strip_prefix('x') {
                match times.parse() {
                    Ok(times) => rule.times = Some(times),
                    Err(_) => return bad("expected a number of requests, such as `x3`"),
                }
            } else if let Some(skip) = word.strip_prefix("skip=") {
                match skip.parse() {
                    Ok(skip) => rule.skip = skip,
                    Err(_) => return bad("expected a number of requests, such as `skip=3`"),
                }
            } else if let Some(chance) = word.strip_prefix("chance=") {
                match share(chance) {
                    Some(chance) => rule.chance = chance,
                    None => return bad("expected a share of requests, such as `chance=2.5%`"),
                }
            } else {
                return self.expected("`xN`, `skip=N`, `chance=P%` or the end of the statement");
            }
            self.skip();
        }
    }

    fn action(&mut self) -> Parsed<Action> {
        let word = self.one_of(&ACTIONS)?;
        if let Some((_, ending)) = ENDINGS.iter().find(|(known, _)| *known == word) {
            return Ok(Action::End(*ending, self.watches()?));
        }
        match word {
            "thaw" => Ok(Action::Thaw(self.watches()?)),
            "close" => Ok(Action::CloseSlow(self.watches()?)),
            "send" if self.takes("bookmarks") => {
                self.word("to")?;
                Ok(Action::SendBookmarks(self.watches()?))
            }
            "send" => {
                let text = self.text()?;
                self.word("to")?;
                Ok(Action::Send(text, self.watches()?))
            }
            "expire" => {
                self.word("history")?;
                Ok(Action::ExpireHistory)
            }
            "restart" => Ok(Action::Restart(if self.takes("at") {
                Restart::At(self.number()?)
            } else if self.takes("back") {
                Restart::Back(self.number()?)
            } else {
                Restart::Here
            })),
            _ => {
                self.word("connections")?;
                let period = if self.takes("for") {
                    Some(self.period()?)
                } else {
                    None
                };
                Ok(Action::Refuse(period))
            }
        }
    }

    /// Parses the selection of watches in an action such as `cut watch pods`.
    fn watches(&mut self) -> Parsed<Match> {
        if self.peek().word() != Some("watch") {
            return self.expected("`watch` and a resource: an action is about open watches");
        }
        self.matches()
    }
}

/// Returns a list of the words with which a fault in a plan can start, for an error message.
fn known_faults() -> String {
    let endings = ENDINGS.map(|(word, _)| word).join(", ");
    let edits = EDITS.map(|(word, _)| word).join(", ");
    format!(
        "an HTTP status from 400 to 599, or one of reset, refuse, delay, {endings}, split, {edits}, send"
    )
}

#[cfg(test)]
mod tests;
