//! Removes fields from objects before the objects are decoded.
//!
//! A [`FieldPath`] names a field, and [`Pruned`] is an object that may lack fields.
//!
//! A pruned field is never decoded, copied or stored. For [`Pruned<K>`](Pruned), any field can be pruned
//! except those that identify the object or that selectors read. For a plain type `K`, only managed fields
//! and annotations can be pruned: a client could write a pruned object back to the server with an update
//! (PUT), which can delete the missing fields on the server. An update deletes missing annotations too, so a
//! program that prunes annotations must write with patches.
//!
//! If the bytes of an object are invalid, they are left unchanged, and the decoder reports the error.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::{InformerOptions, pruning::Pruned};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scheduling = InformerOptions::<Pruned<Pod>>::new()
//!     .keep([
//!         "metadata.ownerReferences".parse()?,
//!         "spec.nodeName".parse()?,
//!         "spec.containers[*].resources".parse()?,
//!     ])
//!     .lazy();
//! let all_but = InformerOptions::<Pruned<Pod>>::new()
//!     .prune(["spec.volumes".parse()?, "status.conditions".parse()?])?;
//! let whole = InformerOptions::<Pod>::new();
//! assert!(whole.prune(["spec.volumes".parse()?]).is_err()); // a write of the object would lose the volumes
//! # Ok(()) }
//! ```
//!
//! # Requirements on types
//!
//! A pruned field is missing when the object is decoded. The types of `k8s-openapi` use a default value for a
//! missing field, even for fields that Kubernetes requires. Other types must declare fields that may be
//! pruned as `Option` or `#[serde(default)]`. Otherwise, the object fails to decode, and the
//! [`DecodeError`](crate::object::DecodeError) names the object and the field.
//!
//! # Keeping and pruning
//!
//! A keep-list prunes all fields that it does not name. Every keep-list keeps `apiVersion` and `kind`, and
//! the `name`, `namespace`, `uid`, `resourceVersion` and `labels` in `metadata`. Other metadata must be
//! named, such as `metadata.deletionTimestamp`. A named path is kept with everything below it, except pruned
//! paths: `keep spec` with `prune spec.volumes` keeps all of `spec` except the volumes. The maps and arrays
//! on the path to a named field are kept even without the field, for example as `spec: {}`.

mod pruned;

pub(crate) use self::pruned::Stored;
pub use self::pruned::{Prunable, Pruned, Storable};

use std::{collections::BTreeMap, fmt, str::FromStr};

use self::pruned::Cuttable;

/// The path of a field in an object, such as `spec.nodeName`.
///
/// Names are separated by dots. A map key can be written in brackets, as in
/// `metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']`.
///
/// A name below an array selects that field in each element that is a map: `spec.containers.env` is the `env`
/// of every container. The `[*]` of Kubernetes' JSONPath is optional (`spec.containers[*].env`). A path can't
/// select a single element of an array, or a field in an array of arrays.
///
/// ```
/// use kube_informer::pruning::FieldPath;
/// let path: FieldPath = "metadata.annotations['example.com/note']".parse()?;
/// assert_eq!(path.to_string(), "metadata.annotations['example.com/note']");
/// assert_eq!("spec.containers[*].env".parse::<FieldPath>()?, "spec.containers.env".parse()?);
/// assert!("metadata..name".parse::<FieldPath>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<String>);

/// The error returned when a text is not a valid field path; contains the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid path of a field: {0:?}; write it as metadata.managedFields or metadata.annotations['a.b/c']"
)]
pub struct ParseFieldPathError(String);

/// The error returned when a field can't be pruned from objects of the requested type. The error contains the
/// path of the field and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} can't be pruned: {reason}")]
pub struct NotPrunable {
    field: FieldPath,
    reason: &'static str,
}

const IS_IDENTITY: &str = "it identifies the object, or selectors use it";

const IS_WRITTEN_BACK: &str = "an object without it could be written back; prune only metadata.managedFields and metadata.annotations, or use `Pruned<K>`";

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
        let is_of_each = rest.starts_with("[*]");
        while let Some(behind) = rest.strip_prefix("[*]") {
            rest = behind;
        }
        match rest.as_bytes().first() {
            None => return (!is_of_each).then_some(segments),
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

/// Fields that every keep-list keeps: those that identify the object, and the labels, which selectors read.
const IDENTITY: [&[&str]; 7] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
    &["metadata", "labels"],
];

/// Rules for the fields that are removed from every object before decoding.
///
/// `pruned` lists fields to remove. `kept`, if set, lists the only fields to keep, besides [`IDENTITY`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Pruning {
    pruned: Vec<FieldPath>,
    kept: Option<Vec<FieldPath>>,
    /// Rules for the top-level members of an object, computed from `pruned` and `kept`.
    root: Members,
}

/// Rules for the members of a JSON map, or of each map in a JSON array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members {
    named: BTreeMap<String, Fate>,
    /// Whether all members that `named` does not contain are removed. If false, they are kept.
    cuts_others: bool,
}

/// Whether pruning keeps, removes, or partly keeps one member of a JSON map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The member is kept with its whole value.
    Kept,
    /// The member is removed: its key and its value.
    Cut,
    /// The member is kept. If its value is a map or an array of maps, these rules remove members of the maps.
    Partly(Members),
}

/// Two `Pruning` values are equal if they prune the same fields, even if their lists of paths differ.
impl PartialEq for Pruning {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for Pruning {}

impl Pruning {
    /// Returns the keep-list, if one is set, and the list of pruned paths.
    pub(crate) fn fields(&self) -> (Option<&[FieldPath]>, &[FieldPath]) {
        (self.kept.as_deref(), &self.pruned)
    }

    /// Replaces the list of pruned paths.
    ///
    /// # Errors
    /// Returns an error, and changes nothing, if a path can't be pruned from a `K`.
    pub(crate) fn prune<K: Prunable>(
        &mut self,
        paths: impl IntoIterator<Item = FieldPath>,
    ) -> Result<(), NotPrunable> {
        let checked = |path: FieldPath| path.unless_needed(K::FIELDS.0);
        self.pruned = paths.into_iter().map(checked).collect::<Result<_, _>>()?;
        self.compile();
        Ok(())
    }

    /// Replaces the keep-list; fields that identify objects are always kept.
    pub(crate) fn keep(&mut self, paths: impl IntoIterator<Item = FieldPath>) {
        self.kept = Some(paths.into_iter().collect());
        self.compile();
    }

    fn compile(&mut self) {
        let mut root = Members::default();
        if let Some(kept) = &self.kept {
            root.cuts_others = true;
            for path in IDENTITY {
                root.keep(path);
            }
            for path in kept {
                root.keep(&path.0);
            }
        }
        for path in &self.pruned {
            root.cut(&path.0);
        }
        self.root = root;
    }

    pub(crate) fn members(&self) -> &Members {
        &self.root
    }

    /// Returns whether no field is pruned from any object.
    pub(crate) fn is_empty(&self) -> bool {
        self.root == Members::default()
    }
}

/// Writes the pruning rules as text. Two `Pruning` values have the same text only if they are equal.
///
/// `-path` prunes a field. `+path` keeps a field with its whole value. `=path` prunes all fields of a map
/// that have no rule at or below them. The empty path means the top-level map.
impl fmt::Display for Pruning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = Vec::new();
        self.root.describe(&mut FieldPath(Vec::new()), &mut said);
        f.write_str(&said.join(" "))
    }
}

impl FieldPath {
    /// Returns this path if the field can be pruned.
    ///
    /// Managed fields and annotations can always be pruned. All other fields require
    /// [`Cuttable::AllButIdentity`].
    ///
    /// # Errors
    /// Returns an error if `cuttable` excludes the field, or if the field is, contains, or is inside one of
    /// the fields in `IDENTITY`.
    fn unless_needed(self, cuttable: Cuttable) -> Result<Self, NotPrunable> {
        let names: Vec<_> = self.0.iter().map(String::as_str).collect();
        let says_which =
            |identity: &&[&str]| identity.starts_with(&names) || names.starts_with(identity);
        let reason = match names[..] {
            ["metadata", "managedFields" | "annotations"] | ["metadata", "annotations", _] => {
                return Ok(self);
            }
            _ if IDENTITY.iter().any(says_which) => IS_IDENTITY,
            _ if cuttable == Cuttable::AllButIdentity => return Ok(self),
            _ => IS_WRITTEN_BACK,
        };
        Err(NotPrunable {
            field: self,
            reason,
        })
    }
}

impl Members {
    /// Returns the rules by member name; [`Members::others`] applies to all other members.
    pub(crate) fn named(&self) -> &BTreeMap<String, Fate> {
        &self.named
    }

    /// Returns the rule for all members that [`Members::named`] does not contain.
    pub(crate) fn others(&self) -> &Fate {
        if self.cuts_others {
            &Fate::Cut
        } else {
            &Fate::Kept
        }
    }

    pub(crate) fn cuts_others(&self) -> bool {
        self.cuts_others
    }

    /// Adds a rule that keeps the value at this path. Has no effect if a rule already keeps this value.
    ///
    /// For example, the path `spec.nodeName` keeps the member `nodeName` of `spec`. Pruning then removes
    /// every member of `spec` that has no rule of its own.
    fn keep(&mut self, path: &[impl AsRef<str>]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let nothing = Self {
            named: BTreeMap::new(),
            cuts_others: true,
        };
        let fate = self.named.entry(first.as_ref().to_owned());
        let fate = fate.or_insert(Fate::Partly(nothing));
        if rest.is_empty() {
            *fate = Fate::Kept;
        } else if let Fate::Partly(members) = fate {
            members.keep(rest);
        }
    }

    /// Adds a rule that prunes the value at this path. Has no effect if a rule already prunes this value.
    fn cut(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        if self.cuts_others && !self.named.contains_key(first) {
            return;
        }
        if rest.is_empty() {
            self.named.remove(first);
            if !self.cuts_others {
                self.named.insert(first.clone(), Fate::Cut);
            }
            return;
        }
        let fate = self.named.entry(first.clone()).or_insert(Fate::Kept);
        if *fate == Fate::Kept {
            *fate = Fate::Partly(Self::default());
        }
        if let Fate::Partly(members) = fate {
            members.cut(rest);
        }
    }

    fn describe(&self, path: &mut FieldPath, said: &mut Vec<String>) {
        if self.cuts_others {
            said.push(format!("={path}"));
        }
        for (name, fate) in &self.named {
            path.0.push(name.clone());
            match fate {
                Fate::Kept => said.push(format!("+{path}")),
                Fate::Cut => said.push(format!("-{path}")),
                Fate::Partly(members) => members.describe(path, said),
            }
            path.0.pop();
        }
    }
}

#[cfg(test)]
mod tests;
