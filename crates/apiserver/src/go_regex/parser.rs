//! The parser of Go's `regexp/syntax` with the flags of `regexp.Compile`.
//!
//! Guarantees: a pattern is accepted if and only if Go accepts it, unless it exceeds a lower limit of this
//! module, and the description of an error is Go's.

use super::alternation::RepeatError;
use super::class_syntax::ClassParser;
use super::escape::{Fault, escape, next_rune, up_to};
use super::measure::COPIES_MAX;
use super::node::{Copies, Flags, NodeId, Op};
use super::tree::Tree;

const INVALID_NAMED_CAPTURE: &str = "invalid named capture";
const INVALID_PERL_OPERATOR: &str = "invalid or unsupported Perl syntax";
const INVALID_ESCAPE: &str = "invalid escape sequence";
const INVALID_NESTED_REPETITION: &str = "invalid nested repetition operator";
const INVALID_REPEAT_COUNT: &str = "invalid repeat count";
const MISSING_PAREN: &str = "missing closing )";
const MISSING_ARGUMENT: &str = "missing argument to repetition operator";
const UNEXPECTED_PAREN: &str = "unexpected )";

/// A repetition operator in the pattern.
struct Repetition<'a> {
    op: Op,
    copies: Copies,
    /// The pattern from the operator on.
    start: &'a str,
    /// The pattern after the operator, without the `?` that may follow.
    rest: &'a str,
}

struct Parser<'a> {
    tree: Tree,
    classes: ClassParser<'a>,
    pattern: &'a str,
    /// The pattern from the repetition operator on that precedes the current place.
    last_repetition: Option<&'a str>,
}

/// Parses a pattern. Returns the tree and its root.
pub(super) fn parse(pattern: &str) -> Result<(Tree, NodeId), Fault<'_>> {
    let mut parser = Parser {
        tree: Tree::default(),
        classes: ClassParser::default(),
        pattern,
        last_repetition: None,
    };
    parser.tree.flags = Flags::ONE_LINE;
    let mut rest = pattern;
    while !rest.is_empty() {
        rest = parser.item(rest)?;
    }
    parser.tree.end_alternation()?;
    match parser.tree.stack[..] {
        [root] => Ok((parser.tree, root)),
        _ => Err(Fault::Syntax(MISSING_PAREN, pattern)),
    }
}

impl<'a> Parser<'a> {
    /// Parses the first item of `text`, which is not empty. Returns the text after it.
    fn item(&mut self, text: &'a str) -> Result<&'a str, Fault<'a>> {
        let is_repetition = match text.as_bytes()[0] {
            b'*' | b'+' | b'?' => Some(simple_repetition(text)),
            b'{' => counted_repetition(text)?,
            _ => None,
        };
        if let Some(repetition) = is_repetition {
            let rest = self.repeat(&repetition)?;
            self.last_repetition = Some(text);
            return Ok(rest);
        }
        let rest = self.part(text)?;
        self.last_repetition = None;
        Ok(rest)
    }

    /// Parses the first item of `text`, which is no repetition operator.
    fn part(&mut self, text: &'a str) -> Result<&'a str, Fault<'a>> {
        let (first, rest) = next_rune(text);
        let is_one_line = self.tree.flags.has(Flags::ONE_LINE);
        match char::from_u32(first) {
            Some('(') if rest.starts_with('?') => return self.group(text),
            Some('(') => self.tree.push_op(Op::CaptureGroup)?,
            Some('|') => self.tree.end_alternative()?,
            Some(')') => {
                self.tree.end_alternation()?;
                if !self.tree.end_group()? {
                    return Err(Fault::Syntax(UNEXPECTED_PAREN, self.pattern));
                }
            }
            Some('^') if is_one_line => self.tree.push_op(Op::BeginText)?,
            Some('^') => self.tree.push_op(Op::BeginLine)?,
            Some('$') if is_one_line => self.tree.push_op(Op::EndText)?,
            Some('$') => self.tree.push_op(Op::EndLine)?,
            Some('.') if self.tree.flags.has(Flags::DOT_NEWLINE) => self.tree.push_op(Op::Any)?,
            Some('.') => self.tree.push_op(Op::AnyNotNewline)?,
            Some('[') => return self.class(text),
            Some('\\') => return self.backslash(text),
            _ => self.tree.push_literal(first)?,
        }
        Ok(rest)
    }

    /// Applies a repetition to the part before it. Returns the text after the operator.
    fn repeat(&mut self, repetition: &Repetition<'a>) -> Result<&'a str, Fault<'a>> {
        let mut flags = self.tree.flags;
        let mut rest = repetition.rest;
        if let Some(after) = rest.strip_prefix('?') {
            rest = after;
            flags = flags.toggled(Flags::NON_GREEDY);
        }
        if let Some(last) = self.last_repetition {
            return Err(Fault::Syntax(INVALID_NESTED_REPETITION, up_to(last, rest)));
        }
        let operator = up_to(repetition.start, rest);
        let repeated = self.tree.repeat(repetition.op, repetition.copies, flags);
        repeated.map_err(|error| match error {
            RepeatError::NoArgument => Fault::Syntax(MISSING_ARGUMENT, operator),
            RepeatError::TooManyCopies => Fault::Syntax(INVALID_REPEAT_COUNT, operator),
            RepeatError::Limit(limit) => Fault::Limit(limit),
        })?;
        Ok(rest)
    }

    fn class(&mut self, text: &'a str) -> Result<&'a str, Fault<'a>> {
        // Go allocates the node before it parses the class.
        let id = self.tree.node(Op::Class);
        let folds = self.tree.flags.has(Flags::FOLD);
        let (class, rest) = self.classes.bracketed(text, folds)?;
        self.tree.push_class(id, class)?;
        Ok(rest)
    }

    /// Parses an item that starts with a backslash.
    fn backslash(&mut self, text: &'a str) -> Result<&'a str, Fault<'a>> {
        let op = match text.as_bytes().get(1) {
            Some(b'A') => Op::BeginText,
            Some(b'b') => Op::WordBoundary,
            Some(b'B') => Op::NoWordBoundary,
            Some(b'C') => return Err(Fault::Syntax(INVALID_ESCAPE, &text[..2])),
            Some(b'Q') => return self.quoted(&text[2..]),
            Some(b'z') => Op::EndText,
            _ => return self.escaped(text),
        };
        self.tree.push_op(op)?;
        Ok(&text[2..])
    }

    /// Parses literal text up to `\E` or the end.
    fn quoted(&mut self, text: &'a str) -> Result<&'a str, Fault<'a>> {
        let (literal, rest) = text.split_once(r"\E").unwrap_or((text, ""));
        for letter in literal.chars() {
            self.tree.push_literal(u32::from(letter))?;
        }
        Ok(rest)
    }

    fn escaped(&mut self, text: &'a str) -> Result<&'a str, Fault<'a>> {
        let id = self.tree.node(Op::Class);
        let folds = self.tree.flags.has(Flags::FOLD);
        if let Some((class, rest)) = self.classes.escaped(text, folds)? {
            self.tree.push_class(id, class)?;
            return Ok(rest);
        }
        self.tree.reuse(id);
        let (rune, rest) = escape(text)?;
        self.tree.push_literal(rune)?;
        Ok(rest)
    }

    /// Parses what starts with `(?`: a named group, a group with flags, or flags.
    fn group(&mut self, text: &'a str) -> Result<&'a str, Fault<'a>> {
        // Go requires one more byte after `<`, and else reports an operator.
        let named = text
            .strip_prefix("(?P<")
            .or_else(|| text.strip_prefix("(?<"));
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let Some((name, rest)) = named.split_once('>') else {
                return Err(Fault::Syntax(INVALID_NAMED_CAPTURE, text));
            };
            let is_word = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(Fault::Syntax(INVALID_NAMED_CAPTURE, up_to(text, rest)));
            }
            self.tree.push_op(Op::CaptureGroup)?;
            return Ok(rest);
        }
        self.flags(text)
    }

    /// Parses `(?flags)` and `(?flags:`, where flags after a `-` are removed.
    fn flags(&mut self, text: &'a str) -> Result<&'a str, Fault<'a>> {
        let mut flags = self.tree.flags;
        let mut is_negated = false;
        let mut saw_flag = false;
        let mut rest = &text[2..];
        while !rest.is_empty() {
            let (rune, after) = next_rune(rest);
            rest = after;
            match char::from_u32(rune) {
                Some('i') => flags = flags.with(Flags::FOLD),
                Some('m') => flags = flags.without(Flags::ONE_LINE),
                Some('s') => flags = flags.with(Flags::DOT_NEWLINE),
                Some('U') => flags = flags.with(Flags::NON_GREEDY),
                Some('-') if !is_negated => {
                    is_negated = true;
                    saw_flag = false;
                    flags = flags.inverted();
                    continue;
                }
                Some(end @ (':' | ')')) if saw_flag || !is_negated => {
                    if end == ':' {
                        self.tree.push_op(Op::Group)?;
                    }
                    self.tree.flags = if is_negated { flags.inverted() } else { flags };
                    return Ok(rest);
                }
                _ => break,
            }
            saw_flag = true;
        }
        Err(Fault::Syntax(INVALID_PERL_OPERATOR, up_to(text, rest)))
    }
}

fn simple_repetition(text: &str) -> Repetition<'_> {
    Repetition {
        op: match text.as_bytes()[0] {
            b'*' => Op::Star,
            b'+' => Op::Plus,
            _ => Op::Quest,
        },
        copies: Copies::default(),
        start: text,
        rest: &text[1..],
    }
}

/// Reads `{min}`, `{min,}` or `{min,max}`. Returns `None` if `text` is none of these: `{` is a literal then.
fn counted_repetition(text: &str) -> Result<Option<Repetition<'_>>, Fault<'_>> {
    let Some((min, mut rest)) = integer(&text[1..]) else {
        return Ok(None);
    };
    let mut max = Some(min);
    if let Some(after) = rest.strip_prefix(',') {
        (max, rest) = match integer(after) {
            _ if after.starts_with('}') => (None, after),
            Some((max, rest)) => (Some(max), rest),
            None => return Ok(None),
        };
    }
    let Some(rest) = rest.strip_prefix('}') else {
        return Ok(None);
    };
    if min > COPIES_MAX || max.is_some_and(|max| max > COPIES_MAX || max < min) {
        return Err(Fault::Syntax(INVALID_REPEAT_COUNT, up_to(text, rest)));
    }
    Ok(Some(Repetition {
        op: Op::Repeat,
        copies: Copies { min, max },
        start: text,
        rest,
    }))
}

/// Splits off a decimal integer without leading zeros. A value above the range of `u32` becomes its maximum.
fn integer(text: &str) -> Option<(u32, &str)> {
    let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let digits = up_to(text, rest);
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}
