//! Parses expressions with the crate `cel`, and replaces its macros by those of Kubernetes.

use cel::common::ast::{IdedExpr, SourceInfo};

use super::issue::{Issue, Location, NOWHERE};
use super::nesting;

/// A parsed expression.
pub(super) struct Parsed {
    pub(super) expression: IdedExpr,
    letters: Vec<char>,
    info: SourceInfo,
    /// The offsets of the lines' starts, in the unit of the parser.
    lines: Vec<usize>,
}

/// Stack size of the thread that parses and checks an expression.
///
/// A nested list uses some 320 KB per level in a debug build, so the limits of [`nesting`] need 32 MB.
/// The system provides only the memory that is used.
pub(super) const STACK_BYTES: usize = 48 << 20;

/// Parses an expression. All macros remain calls.
pub(super) fn parse(source: &str) -> Result<Parsed, Vec<Issue>> {
    if let Err(message) = nesting::check(source) {
        let location = NOWHERE;
        return Err(vec![Issue { location, message }]);
    }
    let parser = cel::Env::default().parser();
    let parsed = parser
        .enable_optional_syntax(true)
        .parse_with_source_info(source);
    match parsed {
        Ok((expression, info)) => {
            let starts = source.char_indices().enumerate();
            let starts = starts.filter(|(_, (_, letter))| *letter == '\n');
            let lines = [0].into_iter().chain(starts.map(|(index, _)| index + 1));
            Ok(Parsed {
                expression,
                letters: source.chars().collect(),
                info,
                lines: lines.collect(),
            })
        }
        Err(errors) => Err(issues(errors.errors)),
    }
}

fn issues(errors: Vec<cel::ParseError>) -> Vec<Issue> {
    let is_syntax = |error: &cel::ParseError| error.msg.starts_with("Syntax error");
    // The parser also reports the parts that are missing because of a syntax error.
    let is_consequence = |error: &cel::ParseError| {
        error.msg.starts_with("No `") || error.msg.starts_with("Incomplete `")
    };
    let has_syntax_error = errors.iter().any(is_syntax);
    let relevant = errors
        .into_iter()
        .filter(|error| !has_syntax_error || !is_consequence(error));
    relevant.map(issue).collect()
}

fn issue(error: cel::ParseError) -> Issue {
    let line = usize::try_from(error.pos.0).unwrap_or(0);
    let mut column = usize::try_from(error.pos.1 - 1).unwrap_or(0);
    // The parser reports the place of the dot.
    if error.msg == "unsupported syntax: '`'" {
        column += 1;
    }
    Issue {
        location: Location { line, column },
        message: message(error.msg),
    }
}

/// The operators that can follow a complete expression.
const OPERATORS: [&str; 17] = [
    "'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'", "'&&'", "'||'", "'['", "'.'", "'-'",
    "'?'", "'+'", "'*'", "'/'", "'%'",
];

/// Returns the message of cel-go's parser, which expects no operators after a complete expression.
fn message(text: String) -> String {
    if text.contains("InvalidUnicode") {
        return "invalid unicode code point".to_owned();
    }
    if let Some(input) = text.strip_prefix("Syntax error: no viable alternative at input '.")
        && input.starts_with(|first: char| first.is_alphanumeric())
    {
        return format!("Syntax error: mismatched input '{input} expecting IDENTIFIER");
    }
    let Some((problem, expected)) = text.split_once(" expecting {") else {
        return text;
    };
    let expected: Vec<&str> = expected.trim_end_matches('}').split(", ").collect();
    if !OPERATORS.iter().all(|operator| expected.contains(operator)) {
        return text;
    }
    let others: Vec<&str> = expected
        .into_iter()
        .filter(|one| !OPERATORS.contains(one))
        .collect();
    match others.as_slice() {
        [] => text,
        [only] => format!("{problem} expecting {only}"),
        several => format!("{problem} expecting {{{}}}", several.join(", ")),
    }
}

impl Parsed {
    /// Returns the place of a part of the expression.
    pub(super) fn location(&self, id: u64) -> Location {
        match self.info.offset_for(id) {
            Some((offset, _)) => self.location_at(offset as usize),
            None => NOWHERE,
        }
    }

    /// Returns the place of the sign of a negative number. The parser reports the place of the digits.
    pub(super) fn sign_location(&self, id: u64) -> Location {
        let Some((offset, _)) = self.info.offset_for(id) else {
            return NOWHERE;
        };
        let before = self.letters.get(..offset as usize).unwrap_or_default();
        let sign = before.iter().rposition(|letter| !letter.is_whitespace());
        self.location_at(sign.unwrap_or(offset as usize))
    }

    fn location_at(&self, offset: usize) -> Location {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        Location {
            line,
            column: offset - start,
        }
    }
}
