//! Writes YAML as `go.yaml.in/yaml/v2` does, which Kubernetes uses.
//!
//! The structure follows `emitterc.go`, and names without other explanation are those of that file.
//!
//! Guarantees:
//! - keys are sorted as by [`order`](super::order), lists are not indented, and long texts are folded at the
//!   first space after 80 columns;
//! - the text has at most [`TEXT_BYTES_MAX`] bytes.
//!
//! Kubernetes writes JSON first and parses it as YAML, which fails for some values. This module writes them:
//! control characters, U+FFFE and U+FFFF are escaped, U+0085 is kept, and a key can have more than 1,024
//! characters.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::order;
use super::resolve::{Scalar, is_base_60, resolve};
use super::style::{Style, Traits};
use crate::go_json::float_text;
use crate::quote::go_float;

/// Maximum length of a text in bytes. Kubernetes has no such limit.
///
/// The indentation of deeply nested lists can make a text a hundred times as long as the JSON of its value. The
/// text of an object of 3 MiB with the usual nesting is shorter than this.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// Number of columns after which a text is folded.
const WIDTH: usize = 80;

/// Maximum length in bytes of a key that is written without `?`.
const SIMPLE_KEY_MAX: usize = 128;

/// Error: the text would be longer than [`TEXT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// What contains a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The whole text, or an item of a list.
    Alone,
    Mapping,
}

/// The text so far, and the position in it.
pub(super) struct Emitter<'a> {
    out: &'a mut String,
    start: usize,
    column: usize,
    /// Number of columns by which the next line is indented. Negative outside of the first node.
    indent: isize,
    /// Whether the last character was white space or an indicator that needs none after it.
    whitespace: bool,
    /// Whether the line so far has only indentation, `-`, `?` and `:`.
    indention: bool,
    /// Whether the text was cut because it is too long.
    is_full: bool,
}

impl<'a> Emitter<'a> {
    /// Returns an emitter that appends to `out`, which is empty or ends with a line feed.
    pub(super) fn new(out: &'a mut String) -> Emitter<'a> {
        Emitter {
            start: out.len(),
            out,
            column: 0,
            indent: -1,
            whitespace: true,
            indention: true,
            is_full: false,
        }
    }

    /// Writes a document, and ends its last line.
    pub(super) fn document(&mut self, value: &Value) -> Result<(), TooLong> {
        self.node(value, Place::Alone)?;
        self.end()
    }

    /// Writes an item of a list that is a member of the document, and ends its last line.
    pub(super) fn item(&mut self, value: &Value) -> Result<(), TooLong> {
        self.indent = 0;
        self.list_item(value)?;
        self.end()
    }

    fn node(&mut self, value: &Value, place: Place) -> Result<(), TooLong> {
        if self.is_full {
            return Err(TooLong);
        }
        match value {
            Value::Null => self.plain("null"),
            Value::Bool(true) => self.plain("true"),
            Value::Bool(false) => self.plain("false"),
            Value::Number(number) => self.plain(&number_text(number)),
            Value::String(text) => self.text(text, false),
            Value::Array(items) if items.is_empty() => self.indicator("[]"),
            Value::Object(members) if members.is_empty() => self.indicator("{}"),
            Value::Array(items) => return self.list(items, place),
            Value::Object(members) => return self.mapping(members),
        }
        Ok(())
    }

    fn list(&mut self, items: &[Value], place: Place) -> Result<(), TooLong> {
        let outer = self.indent;
        if place == Place::Alone || self.indention {
            self.increase_indent();
        }
        for item in items {
            self.list_item(item)?;
        }
        self.indent = outer;
        Ok(())
    }

    fn list_item(&mut self, item: &Value) -> Result<(), TooLong> {
        self.write_indent();
        self.indenting("-");
        self.node(item, Place::Alone)
    }

    fn mapping(&mut self, members: &Map<String, Value>) -> Result<(), TooLong> {
        let outer = self.indent;
        self.increase_indent();
        for (key, value) in order::sort(members.iter().collect(), |(key, _)| key.as_str()) {
            self.write_indent();
            if key.len() <= SIMPLE_KEY_MAX && !Traits::of(key).line_breaks {
                self.text(key, true);
                self.adjacent(":");
            } else {
                self.indenting("?");
                self.text(key, false);
                self.write_indent();
                self.indenting(":");
            }
            self.node(value, Place::Mapping)?;
        }
        self.indent = outer;
        Ok(())
    }

    fn increase_indent(&mut self) {
        self.indent = if self.indent < 0 { 0 } else { self.indent + 2 };
    }

    fn text(&mut self, text: &str, is_simple_key: bool) {
        let outer = self.indent;
        self.indent = self.indent.max(0) + 2;
        let can_be_plain = resolve(text) == Scalar::Text && !is_base_60(text);
        let traits = Traits::of(text);
        let style = if is_simple_key {
            traits.style_of_key(can_be_plain)
        } else {
            traits.style(can_be_plain)
        };
        match style {
            Style::Plain => self.folded(text, None, !is_simple_key),
            Style::SingleQuoted => self.folded(text, Some('\''), !is_simple_key),
            Style::DoubleQuoted => self.double_quoted(text, !is_simple_key),
            Style::Literal => self.literal(text),
        }
        self.indent = outer;
    }

    /// Writes a text without quotes that is not folded.
    fn plain(&mut self, text: &str) {
        self.folded(text, None, false);
    }

    /// Writes a text without quotes, or in single quotes.
    fn folded(&mut self, text: &str, quote: Option<char>, folds: bool) {
        match quote {
            Some(_) => self.indicator("'"),
            None if !self.whitespace => self.put(' '),
            None => {}
        }
        let (mut spaces, mut breaks) = (false, false);
        for (at, letter) in text.char_indices() {
            if letter == ' ' {
                let next = text.as_bytes().get(at + 1);
                let is_inner = at > 0 && next.is_some_and(|next| *next != b' ');
                if folds && !spaces && self.column > WIDTH && is_inner {
                    self.write_indent();
                } else {
                    self.put(letter);
                }
                spaces = true;
            } else if Traits::is_break(letter) {
                self.put_break(letter);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if quote == Some(letter) {
                    self.put(letter);
                }
                self.put(letter);
                self.indention = false;
                (spaces, breaks) = (false, false);
            }
        }
        if quote.is_some() {
            self.adjacent("'");
        }
        (self.whitespace, self.indention) = (false, false);
    }

    fn double_quoted(&mut self, text: &str, folds: bool) {
        self.indicator("\"");
        // Go's `is_bom` looks at the start of the text for every character.
        let escapes_all = text.starts_with('\u{feff}');
        let mut spaces = false;
        for (at, letter) in text.char_indices() {
            if letter == ' ' && !escapes_all {
                let next = text.as_bytes().get(at + 1);
                if folds && !spaces && self.column > WIDTH && at > 0 && next.is_some() {
                    self.write_indent();
                    if next == Some(&b' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(letter);
                }
                spaces = true;
                continue;
            }
            spaces = false;
            if escapes_all || Traits::is_escaped(letter) {
                escape(letter).chars().for_each(|letter| self.put(letter));
            } else {
                self.put(letter);
            }
        }
        self.adjacent("\"");
        (self.whitespace, self.indention) = (false, false);
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|");
        if text.starts_with(|letter| letter == ' ' || Traits::is_break(letter)) {
            self.adjacent("2");
        }
        let mut last = text.chars().rev().map(Traits::is_break);
        match (last.next(), last.next()) {
            (Some(false), _) => self.adjacent("-"),
            (_, None | Some(true)) => self.adjacent("+"),
            (_, Some(false)) => {}
        }
        self.put_break('\n');
        (self.whitespace, self.indention) = (true, true);
        let mut breaks = true;
        for letter in text.chars() {
            if Traits::is_break(letter) {
                self.put_break(letter);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(letter);
                self.indention = false;
                breaks = false;
            }
        }
    }

    fn write_indent(&mut self) {
        let indent = usize::try_from(self.indent).unwrap_or(0);
        let is_used = self.column == indent && !self.whitespace;
        if !self.indention || self.column > indent || is_used {
            self.put_break('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        (self.whitespace, self.indention) = (true, true);
    }

    /// Writes an indicator after a space, unless white space precedes it.
    fn indicator(&mut self, indicator: &str) {
        if !self.whitespace {
            self.put(' ');
        }
        self.adjacent(indicator);
    }

    /// Writes an indicator after which the line counts as indented, such as `-`.
    fn indenting(&mut self, indicator: &str) {
        let indention = self.indention;
        self.indicator(indicator);
        self.indention = indention;
    }

    /// Writes an indicator without white space before it.
    fn adjacent(&mut self, indicator: &str) {
        indicator.chars().for_each(|letter| self.put(letter));
        (self.whitespace, self.indention) = (false, false);
    }

    fn put(&mut self, letter: char) {
        self.push(letter);
        self.column += 1;
    }

    fn put_break(&mut self, letter: char) {
        self.push(letter);
        self.column = 0;
    }

    fn push(&mut self, letter: char) {
        if self.out.len() - self.start < TEXT_BYTES_MAX {
            self.out.push(letter);
        } else {
            self.is_full = true;
        }
    }

    fn end(&mut self) -> Result<(), TooLong> {
        self.write_indent();
        if self.is_full { Err(TooLong) } else { Ok(()) }
    }
}

/// Returns a number as Go writes it after parsing the number in Go's JSON.
fn number_text(number: &Number) -> Cow<'static, str> {
    let float = match number.as_f64() {
        Some(float) if number.is_f64() => float,
        _ => return number.to_string().into(),
    };
    if float == 0.0 {
        return "0".into();
    }
    let text = float_text(float);
    if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() {
        return text.into();
    }
    go_float(float).into()
}

/// Returns the escape sequence of a character in double quotes.
fn escape(letter: char) -> Cow<'static, str> {
    let short = match letter {
        '\0' => "\\0",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\t' => "\\t",
        '\n' => "\\n",
        '\u{b}' => "\\v",
        '\u{c}' => "\\f",
        '\r' => "\\r",
        '\u{1b}' => "\\e",
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{85}' => "\\N",
        '\u{a0}' => "\\_",
        '\u{2028}' => "\\L",
        '\u{2029}' => "\\P",
        _ => {
            return match u32::from(letter) {
                code @ 0..=0xFF => format!("\\x{code:02X}"),
                code @ 0x100..=0xFFFF => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            }
            .into();
        }
    };
    short.into()
}
