//! Parses the elements of statements in a fault plan, such as words, numbers and durations.
//!
//! Guarantees: an unexpected token is not consumed, and the error contains the position of the token.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::token::{Kind, PlanToken};
use super::{Mistake, Parsed};
use crate::fault::rule::Share;

/// Maximum duration of a delay or of a refusal of connections.
const PERIOD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the tokens of a fault plan one by one.
pub(super) struct Parser<'a> {
    tokens: Vec<PlanToken<'a>>,
    next: usize,
}

impl<'a> Parser<'a> {
    /// Creates a parser for `tokens`, which must end with [`Kind::End`].
    pub(super) fn new(tokens: Vec<PlanToken<'a>>) -> Parser<'a> {
        Parser { tokens, next: 0 }
    }

    /// Consumes the next token, unless it is [`Kind::End`].
    pub(super) fn skip(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    pub(super) fn peek(&self) -> PlanToken<'a> {
        self.tokens[self.next].clone()
    }

    pub(super) fn expected<T>(&self, wanted: &str) -> Parsed<T> {
        let token = self.peek();
        Err(Mistake {
            at: token.at,
            message: format!("expected {wanted}, found {token}"),
        })
    }

    /// Returns whether the next token is `word`, and consumes the token in that case.
    pub(super) fn takes(&mut self, word: &str) -> bool {
        let comes = self.peek().word() == Some(word);
        if comes {
            self.skip();
        }
        comes
    }

    pub(super) fn word(&mut self, word: &str) -> Parsed<()> {
        if self.takes(word) {
            return Ok(());
        }
        self.expected(&format!("`{word}`"))
    }

    pub(super) fn one_of(&mut self, words: &[&'static str]) -> Parsed<&'static str> {
        let comes = self.peek();
        match words.iter().find(|word| comes.word() == Some(**word)) {
            Some(word) => {
                self.skip();
                Ok(word)
            }
            None => self.expected(&format!("one of {}", words.join(", "))),
        }
    }

    /// Parses a name with or without quotes; `what` describes the name in the error.
    pub(super) fn name(&mut self, what: &str) -> Parsed<String> {
        let name = match self.peek().kind {
            Kind::PlanToken(word) => word.to_owned(),
            Kind::Text(text) => text,
            _ => return self.expected(what),
        };
        self.skip();
        Ok(name)
    }

    pub(super) fn text(&mut self) -> Parsed<Arc<str>> {
        let Kind::Text(text) = self.peek().kind else {
            return self.expected("text in quotes, such as \"garbage\\n\"");
        };
        self.skip();
        Ok(text.into())
    }

    pub(super) fn number(&mut self) -> Parsed<u64> {
        match self.peek().word().and_then(|word| word.parse().ok()) {
            Some(number) => {
                self.skip();
                Ok(number)
            }
            None => self.expected("a number"),
        }
    }

    pub(super) fn count(&mut self) -> Parsed<NonZeroU64> {
        match self.peek().word().and_then(|word| word.parse().ok()) {
            Some(number) => {
                self.skip();
                Ok(number)
            }
            None => self.expected("a number above 0"),
        }
    }

    pub(super) fn period(&mut self) -> Parsed<Duration> {
        match self.peek().word().and_then(period) {
            Some(period) => {
                self.skip();
                Ok(period)
            }
            None => self.expected("a time of at most 24h, such as `200ms` or `5s`"),
        }
    }

    /// If the next token is `name=value`, consumes the token and returns its byte offset and value.
    pub(super) fn setting(&mut self, name: &str) -> Option<(usize, &'a str)> {
        let token = self.peek();
        let value = token.word()?.strip_prefix(name)?.strip_prefix('=')?;
        self.skip();
        Some((token.at, value))
    }
}

/// Parses a percentage up to 100% with at most four decimals, such as `2.5%`.
pub(super) fn share(word: &str) -> Option<Share> {
    let number = word.strip_suffix('%')?;
    let (percent, decimals) = number.split_once('.').unwrap_or((number, "0"));
    if decimals.is_empty() || decimals.len() > 4 {
        return None;
    }
    let percent: u32 = percent.parse().ok().filter(|percent| *percent <= 100)?;
    let decimals: u32 = format!("{decimals:0<4}").parse().ok()?;
    let share = Share(percent * 10_000 + decimals);
    (share.0 <= Share::ALWAYS.0).then_some(share)
}

/// Parses a duration up to [`PERIOD_MAX`], such as `200ms`, `5s`, `2m` or `1h`.
fn period(word: &str) -> Option<Duration> {
    let digits = word.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = word.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => None,
    };
    let period = Duration::from_millis(millis?);
    (period <= PERIOD_MAX).then_some(period)
}
