//! [`FieldPath`], and the cutting of fields out of an object's JSON before anything is made of it.
//!
//! What is cut is never decoded, copied or kept. Only what no controller writes back by mistake can be cut:
//! managed fields, and annotations. JSON that can't be read is left as it is, for whoever
//! reads it next to say what is wrong.

use std::{borrow::Cow, collections::BTreeMap, fmt, ops::Range, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Where a field of an object is: names with dots between them, and keys of maps in brackets, such as
/// `metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']`.
///
/// ```
/// use kube_informer::pruning::FieldPath;
/// let path: FieldPath = "metadata.annotations['example.com/note']".parse()?;
/// assert_eq!(path.to_string(), "metadata.annotations['example.com/note']");
/// assert!("metadata..name".parse::<FieldPath>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<String>);

/// The text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no path of a field, such as metadata.managedFields or metadata.annotations['a.b/c']"
)]
pub struct ParseFieldPathError(String);

/// The field is one that can't be cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} can't be pruned: an object without it could be written back; only metadata.managedFields and metadata.annotations, or some of them, can"
)]
pub struct NotPrunable(FieldPath);

impl FromStr for FieldPath {
    type Err = ParseFieldPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        segments(text)
            .map(Self)
            .ok_or_else(|| ParseFieldPathError(text.to_owned()))
    }
}

fn segments(text: &str) -> Option<Vec<String>> {
    let mut segments = Vec::new();
    let mut rest = text;
    loop {
        if let Some(key) = rest.strip_prefix("['") {
            let (key, behind) = key.split_once("']")?;
            segments.push(key.to_owned());
            rest = behind;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if name.is_empty() || !name.bytes().all(is_plain) {
                return None;
            }
            segments.push(name.to_owned());
            rest = behind;
        }
        match rest.as_bytes().first() {
            None => return Some(segments),
            Some(b'.') => rest = &rest[1..],
            Some(_) if rest.starts_with("['") => {}
            Some(_) => return None,
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            let is_plain = segments(segment).is_some_and(|alone| alone == [segment.as_str()]);
            match (is_plain, at) {
                (true, 0) => f.write_str(segment)?,
                (true, _) => write!(f, ".{segment}")?,
                (false, _) => write!(f, "['{segment}']")?,
            }
        }
        Ok(())
    }
}

/// What is cut out of every object of an informer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruning(Node);

/// The fields below one that have something to cut; those without fields of their own go whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node(BTreeMap<String, Node>);

impl Pruning {
    /// # Errors
    /// One of the fields is none that an object can be without.
    pub(crate) fn new(paths: impl IntoIterator<Item = FieldPath>) -> Result<Self, NotPrunable> {
        let mut pruning = Self::default();
        for path in paths {
            match path.0.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["metadata", "managedFields" | "annotations"] | ["metadata", "annotations", _] => {}
                _ => return Err(NotPrunable(path)),
            }
            pruning.0.add(&path.0);
        }
        Ok(pruning)
    }

    /// The same object without them. Whatever else it is or has, is as it was.
    pub(crate) fn cut<'a>(&self, json: &'a [u8]) -> Cow<'a, [u8]> {
        if self.0.0.is_empty() {
            return Cow::Borrowed(json);
        }
        let Ok(text) = std::str::from_utf8(json) else {
            return Cow::Borrowed(json);
        };
        let mut cuts = Vec::new();
        self.0.find(text, text, &mut cuts);
        if cuts.is_empty() {
            return Cow::Borrowed(json);
        }
        let mut rest = Vec::with_capacity(json.len());
        let mut at = 0;
        for cut in cuts {
            rest.extend_from_slice(&json[at..cut.start]);
            at = cut.end + spaces(&json[cut.end..]);
            if json.get(at) == Some(&b',') {
                at += 1;
            } else {
                // It was the last one, so the comma before it goes with it, if there still is one.
                let kept = rest.trim_ascii_end();
                let kept = kept.strip_suffix(b",").unwrap_or(kept).len();
                rest.truncate(kept);
            }
        }
        rest.extend_from_slice(&json[at..]);
        Cow::Owned(rest)
    }
}

fn spaces(json: &[u8]) -> usize {
    json.len() - json.trim_ascii_start().len()
}

impl Node {
    fn add(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else {
            // All of it goes, whatever was named of it.
            self.0.clear();
            return;
        };
        let is_new = !self.0.contains_key(first);
        let child = self.0.entry(first.clone()).or_default();
        if is_new || rest.is_empty() || !child.0.is_empty() {
            child.add(rest);
        }
    }

    /// Notes where in `whole` the members to cut of the map `part` stand, each from its key to its value's
    /// end, in order.
    fn find<'a>(&self, whole: &'a str, part: &'a str, cuts: &mut Vec<Range<usize>>) {
        let search = Search {
            node: self,
            left: self.0.len(),
            whole,
            cuts,
        };
        let mut deserializer = serde_json::Deserializer::from_str(part);
        // It ends early when all are found. What can't be read has nothing behind it that is cut.
        let _ = search.deserialize(&mut deserializer);
    }
}

/// A look at the members of one map.
struct Search<'s, 'a> {
    node: &'s Node,
    /// So many members have not been found.
    left: usize,
    whole: &'a str,
    cuts: &'s mut Vec<Range<usize>>,
}

/// A key as it stands there, if it is written without escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> DeserializeSeed<'a> for Search<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Search<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = map.next_key()? {
            let value: &'a RawValue = map.next_value()?;
            let Some(node) = self.node.0.get(&*key) else {
                continue;
            };
            if !node.0.is_empty() {
                node.find(self.whole, value.get(), self.cuts);
            } else if let Cow::Borrowed(key) = key {
                let start = offset(self.whole, key) - 1; // its quotation mark
                let end = offset(self.whole, value.get()) + value.get().len();
                self.cuts.push(start..end);
            }
            self.left -= 1;
            if self.left == 0 {
                return Err(A::Error::custom("all are found"));
            }
        }
        Ok(())
    }
}

/// Where a part begins in the whole that it was borrowed from.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}

#[cfg(test)]
mod tests;
