//! Reads the first document of a YAML text, as `sigs.k8s.io/yaml` converts it to JSON.
//!
//! Guarantees:
//! - scalars, tags, aliases, merge keys and keys that are not texts have the values that Go gives them;
//! - the number, the size and the depth of the values are limited, also if aliases repeat them.
//!
//! Differences from Go:
//! - the parser follows YAML 1.2. It rejects a text in quotes that continues in a line without indentation, and
//!   text after a scalar in quotes at the top level. It accepts a tab before the first key. The lines of a block
//!   after `|` at the top level need no indentation;
//! - many syntax errors have the message of the parser, and some another line. `yaml: ` precedes the message;
//! - a text in UTF-16 is rejected;
//! - a repeated key in a merged mapping has the line of the value of `<<`;
//! - a key such as `1e6`, a number with an exponent and without a fraction, is written as an integer.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, Tag};

use super::key::{Key, key_of};
use super::resolve::{Scalar, resolve, resolve_tagged};
use super::unread::{Unread, syntax_error};
use crate::field_validation::YAML_ERRORS;
use crate::go_base64;
use crate::go_json::float_text;
use crate::object::DEPTH_MAX;

/// Maximum number of values in a document, with those that aliases repeat.
///
/// A JSON text of the maximum size of a request has about twice as many.
const VALUES_MAX: usize = 1_000_000;

/// Maximum total length in bytes of the texts that aliases repeat, equal to the maximum size of an object.
const REPEATED_BYTES_MAX: usize = 3 << 20;

/// Maximum number of repeated keys that are reported.
const REPEATED_KEYS_MAX: usize = 100;

/// A document that was read.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    /// The value, or null for an empty text.
    pub(crate) value: Value,
    /// Go's message about the repeated keys. The last value of such a key is the one in `value`.
    pub(crate) repeated_keys: Option<String>,
}

/// Reads the first document of a text.
pub(crate) fn read(text: &[u8]) -> Result<Document, Unread> {
    let malformed = |why: &str| Unread::Malformed(format!("yaml: {why}"));
    let text = std::str::from_utf8(text).map_err(|_| malformed("invalid leading UTF-8 octet"))?;
    if !text.chars().all(is_allowed) {
        return Err(malformed("control characters are not allowed"));
    }
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut composer = Composer {
        text,
        open: Vec::new(),
        anchors: BTreeMap::new(),
        result: Node::of(Value::Null),
        size: Size::default(),
        anchored: Size::default(),
        aliased: Size::default(),
        fault: None,
        repeated: Vec::new(),
    };
    composer.run(Parser::new_from_str_with_options(text, options))?;
    if let Some(fault) = composer.fault {
        return Err(Unread::Malformed(fault));
    }
    let lines = composer.repeated;
    let message = || format!("{YAML_ERRORS}{}", lines.join("\n"));
    Ok(Document {
        repeated_keys: (!lines.is_empty()).then(message),
        value: composer.result.value,
    })
}

/// Returns whether Go's reader accepts a character.
fn is_allowed(letter: char) -> bool {
    matches!(
        letter,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'
            | '\u{10000}'..
    )
}

/// A complete value, with what the limits need.
#[derive(Clone, Debug)]
struct Node {
    value: Value,
    /// Whether the node is the key `<<`.
    is_merge: bool,
    size: Size,
    /// Number of levels of lists and mappings.
    depth: usize,
}

/// Number of values, and total length in bytes of their texts and keys.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    values: usize,
    bytes: usize,
}

/// A list or a mapping whose end was not read yet.
struct Open {
    node: Node,
    anchor: usize,
    line: usize,
    /// The key whose value comes next.
    key: Option<Key>,
}

/// Builds the value of a document from the events of the parser.
struct Composer<'a> {
    text: &'a str,
    open: Vec<Open>,
    /// The complete nodes with an anchor.
    anchors: BTreeMap<usize, Node>,
    result: Node,
    /// What was read.
    size: Size,
    /// What is kept for later aliases.
    anchored: Size,
    /// What aliases have repeated.
    aliased: Size,
    /// The first error that is not one of syntax. As in Go, errors of syntax take precedence.
    fault: Option<String>,
    /// Messages about repeated keys.
    repeated: Vec<String>,
}

// === impl Node ===

impl Node {
    fn of(value: Value) -> Node {
        let bytes = value.as_str().map_or(0, str::len);
        Node {
            value,
            is_merge: false,
            size: Size { values: 1, bytes },
            depth: 0,
        }
    }
}

// === impl Size ===

impl Size {
    fn add(&mut self, other: Size) {
        self.values += other.values;
        self.bytes += other.bytes;
    }

    fn is_excessive(self) -> bool {
        self.values > VALUES_MAX || self.bytes > REPEATED_BYTES_MAX
    }
}

// === impl Composer ===

impl<'a> Composer<'a> {
    fn run(&mut self, parser: Parser<'a, StrInput<'a>>) -> Result<(), Unread> {
        for event in parser {
            let (event, span) = event.map_err(|error| syntax_error(self.text, &error))?;
            let line = span.start.line();
            match event {
                Event::Scalar(text, style, anchor, tag) => {
                    let text = self.without_added_line_feed(text, style, &span);
                    let node = self.scalar(text, style, tag.as_deref());
                    self.add(node, anchor, line)?;
                }
                Event::SequenceStart(_, anchor, _) => {
                    self.begin(Value::Array(Vec::new()), anchor, line)?;
                }
                Event::MappingStart(_, anchor, _) => {
                    self.begin(Value::Object(Map::new()), anchor, line)?;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let mut ended = self.open.pop().expect("the parser opens what it ends");
                    ended.node.depth += 1;
                    self.add(ended.node, ended.anchor, ended.line)?;
                }
                Event::Alias(anchor) => {
                    let node = self.alias(anchor, &span)?;
                    self.add(node, 0, line)?;
                }
                Event::DocumentEnd => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    fn begin(&mut self, value: Value, anchor: usize, line: usize) -> Result<(), Unread> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Unread::TooDeep);
        }
        self.open.push(Open {
            node: Node::of(value),
            anchor,
            line,
            key: None,
        });
        Ok(())
    }

    fn scalar(&mut self, text: Cow<'a, str>, style: ScalarStyle, tag: Option<&Tag>) -> Node {
        let is_plain = style == ScalarStyle::Plain;
        let resolved = match tag {
            None if is_plain => Ok(resolve(&text)),
            None => Ok(Scalar::Text),
            Some(tag) => {
                let (handle, suffix) = tag.parts();
                let tag = format!("{handle}{suffix}");
                if tag == "tag:yaml.org,2002:binary" {
                    return self.binary(&text);
                }
                resolve_tagged(&text, &tag)
            }
        };
        let is_merge = is_plain && text == "<<";
        let value = resolved
            .map_err(|why| format!("yaml: {why}"))
            .and_then(|scalar| value_of(scalar, text));
        Node {
            is_merge,
            ..Node::of(self.or_fault(value))
        }
    }

    /// Removes the line feed that the parser adds to a block of lines at the end of a text without one.
    ///
    /// As in Go, such a block has no line feed at its end.
    fn without_added_line_feed(
        &self,
        text: Cow<'a, str>,
        style: ScalarStyle,
        span: &Span,
    ) -> Cow<'a, str> {
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        let is_last = span.end.byte_offset() == Some(self.text.len());
        let is_ended = self.text.ends_with(['\n', '\r']);
        match text.strip_suffix('\n') {
            Some(block) if is_block && is_last && !is_ended => Cow::Owned(block.to_owned()),
            _ => text,
        }
    }

    fn binary(&mut self, text: &str) -> Node {
        let decoded = go_base64::decode(text);
        let value = decoded
            .map(|bytes| Value::String(String::from_utf8_lossy(&bytes).into_owned()))
            .map_err(|_| "yaml: !!binary value contains invalid base64 data".to_owned());
        Node::of(self.or_fault(value))
    }

    fn alias(&mut self, anchor: usize, span: &Span) -> Result<Node, Unread> {
        let Some(node) = self.anchors.get(&anchor) else {
            let name = span.slice(self.text).unwrap_or_default();
            let name = name.trim_start_matches('*');
            let why = format!("yaml: anchor '{name}' value contains itself");
            return Err(Unread::Malformed(why));
        };
        self.aliased.add(node.size);
        let all = self.size.values + self.aliased.values;
        // Checked before the node is copied.
        if self.aliased.is_excessive() || is_ratio_excessive(self.aliased.values, all) {
            return Err(excessive_aliasing());
        }
        Ok(Node {
            is_merge: false,
            ..node.clone()
        })
    }

    /// Adds a complete node to the list or mapping that contains it.
    fn add(&mut self, node: Node, anchor: usize, line: usize) -> Result<(), Unread> {
        if self.open.len() + node.depth > DEPTH_MAX {
            return Err(Unread::TooDeep);
        }
        self.size.values += 1;
        if self.size.values > VALUES_MAX {
            let why = format!("yaml: document contains more than {VALUES_MAX} values");
            return Err(Unread::Malformed(why));
        }
        if anchor != 0 {
            self.anchored.add(node.size);
            if self.anchored.is_excessive() {
                return Err(excessive_aliasing());
            }
            self.anchors.insert(anchor, node.clone());
        }
        let Some(mut parent) = self.open.pop() else {
            self.result = node;
            return Ok(());
        };
        parent.node.size.add(node.size);
        parent.node.depth = parent.node.depth.max(node.depth);
        match (&mut parent.node.value, parent.key.take()) {
            (Value::Array(items), _) => items.push(node.value),
            (Value::Object(_), None) => {
                let key = if node.is_merge {
                    Ok(Key::Merge)
                } else {
                    key_of(node.value)
                };
                parent.key = Some(key.unwrap_or_else(|why| {
                    self.fail(why);
                    Key::Invalid
                }));
            }
            (Value::Object(members), Some(Key::Text { text, shown })) => {
                self.insert(members, (text, &shown), node.value, line);
            }
            (Value::Object(members), Some(Key::Merge)) => self.merge(members, node.value, line),
            _ => {}
        }
        self.open.push(parent);
        Ok(())
    }

    /// Sets a member. As in Go, a repeated key replaces the value.
    fn insert(
        &mut self,
        members: &mut Map<String, Value>,
        (key, shown): (String, &str),
        value: Value,
        line: usize,
    ) {
        if members.contains_key(&key) && self.repeated.len() < REPEATED_KEYS_MAX {
            let line = format!("  line {line}: key {shown} already set in map");
            self.repeated.push(line);
        }
        members.insert(key, value);
    }

    /// Sets the members of the value of `<<`, which replace existing ones, as in Go.
    fn merge(&mut self, members: &mut Map<String, Value>, value: Value, line: usize) {
        let merged = match value {
            Value::Array(items) => items,
            other => vec![other],
        };
        // An earlier mapping takes precedence.
        for mapping in merged.into_iter().rev() {
            let Value::Object(mapping) = mapping else {
                let why = "yaml: map merge requires map or sequence of maps as the value";
                return self.fail(why.to_owned());
            };
            for (key, value) in mapping {
                let shown = Key::shown(&key);
                self.insert(members, (key, &shown), value, line);
            }
        }
    }

    fn or_fault(&mut self, value: Result<Value, String>) -> Value {
        value.unwrap_or_else(|why| {
            self.fail(why);
            Value::Null
        })
    }

    fn fail(&mut self, why: String) {
        self.fault.get_or_insert(why);
    }
}

fn excessive_aliasing() -> Unread {
    Unread::Malformed("yaml: document contains excessive aliasing".to_owned())
}

/// Returns whether aliases repeat too large a part of all values (`allowedAliasRatio` in `decode.go`).
fn is_ratio_excessive(repeated: usize, all: usize) -> bool {
    /// Number of values up to which 99 % can be repeated.
    const LOW: usize = 400_000;
    /// Number of values from which on only 10 % can be repeated.
    const HIGH: usize = 4_000_000;
    // In thousandths of a percent, with the share in between proportional to the number of values.
    let position = all.clamp(LOW, HIGH) - LOW;
    let allowed = 99_000 - 89_000 * position / (HIGH - LOW);
    repeated > 100 && all > 1000 && repeated * 100_000 / all > allowed
}

/// Returns the JSON value of a scalar, or the error of Go's `json.Marshal`.
fn value_of(scalar: Scalar, text: Cow<'_, str>) -> Result<Value, String> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::Int(integer) => Value::from(integer),
        Scalar::Uint(integer) => Value::from(integer),
        Scalar::Float(float) if float.is_finite() => {
            // Go writes a float without a fraction as an integer.
            let text = float_text(float);
            let integer = text.parse::<i64>().map(Value::from).ok();
            let integer = integer.or_else(|| text.parse::<u64>().map(Value::from).ok());
            integer.unwrap_or_else(|| Value::from(float))
        }
        Scalar::Float(float) => {
            let shown = match float {
                f64::INFINITY => "+Inf",
                f64::NEG_INFINITY => "-Inf",
                _ => "NaN",
            };
            return Err(format!("json: unsupported value: {shown}"));
        }
        Scalar::Timestamp | Scalar::Text => Value::String(text.into_owned()),
    })
}

#[cfg(test)]
mod tests;
