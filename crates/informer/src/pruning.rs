//! What is kept of an object: [`FieldPath`], [`Pruned`], and the cutting of fields out of an object's JSON
//! before anything is made of it.
//!
//! What is cut is never decoded, copied or kept. Under a type of its own only that is cut without which
//! an object can be written back: managed fields, and annotations. Under [`Pruned`] anything is, but for
//! what says which object it is and what selectors look at. JSON that can't be read is left as it is, for
//! whoever reads it next to say what is wrong.
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
//! assert!(whole.prune(["spec.volumes".parse()?]).is_err()); // somebody could write it back
//! # Ok(()) }
//! ```
//!
//! # What a type has to bear
//!
//! What is cut is missing when the object is decoded. The types of `k8s-openapi` take a default in its
//! place, also for fields that Kubernetes requires. Another type says so itself (`Option`,
//! `#[serde(default)]`); where it does not, the object is a broken one, whose
//! [`DecodeError`](crate::object::DecodeError) names object and field.
//!
//! # Keeping and pruning
//!
//! With a keep-list everything goes that it does not name. Always kept are `apiVersion`, `kind`, and of
//! `metadata` the `name`, `namespace`, `uid`, `resourceVersion` and `labels`; anything else of it is named
//! like other fields, such as `metadata.deletionTimestamp`. A path that is named is kept with all that is
//! below it, and what is pruned besides goes out of that: `keep spec`, `prune spec.volumes` is all of
//! `spec` but the volumes. The maps and arrays around what is kept stay, be they empty.

mod pruned;

pub(crate) use self::pruned::Stored;
pub use self::pruned::{Prunable, Pruned, Storable};

use std::{collections::BTreeMap, fmt, str::FromStr};

use self::pruned::Cuttable;

/// Where a field of an object is: names with dots between them, and keys of maps in brackets, such as
/// `metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']`.
///
/// Below an array a name is of each of its elements that is a map: `spec.containers.env` is the `env` of
/// every container. The `[*]` of Kubernetes' JSONPath may stand between (`spec.containers[*].env`), and
/// changes nothing. Single elements can't be named, nor what is in an array that is in an array.
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

/// The text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no path of a field, such as metadata.managedFields or metadata.annotations['a.b/c']"
)]
pub struct ParseFieldPathError(String);

/// The field is one that can't be cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} can't be pruned: {reason}")]
pub struct NotPrunable {
    field: FieldPath,
    reason: &'static str,
}

const IS_IDENTITY: &str = "it says which object it is, or is what selectors look at";

const IS_WRITTEN_BACK: &str = "an object without it could be written back; of a type that is not `Pruned<K>` only metadata.managedFields and metadata.annotations, or some of them, can";

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

/// What is kept whatever a keep-list names.
const IDENTITY: [&[&str]; 7] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
    &["metadata", "labels"],
];

/// What is cut out of every object of an informer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pruning {
    pruned: Vec<FieldPath>,
    kept: Option<Vec<FieldPath>>,
    /// What the two come to.
    root: Members,
}

/// What becomes of the members of a map, or of each map in an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// Those that fare otherwise than the others.
    named: BTreeMap<String, Fate>,
    cuts_others: bool,
}

/// What becomes of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays, with all that is below it.
    Kept,
    /// It goes, from its key to its value's end.
    Cut,
    /// It stays, with these of its members, if it is a map, or with these of those of its elements that
    /// are maps; else it stays as it is.
    Partly(Members),
}

/// Two are the same if they do the same, however it was said.
impl PartialEq for Pruning {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for Pruning {}

impl Pruning {
    /// The only fields that are kept, if that is limited, and those that are dropped.
    pub(crate) fn fields(&self) -> (Option<&[FieldPath]>, &[FieldPath]) {
        (self.kept.as_deref(), &self.pruned)
    }

    /// Cuts these, and no longer those of an earlier call.
    ///
    /// # Errors
    /// One of them is none that objects of this type can be without. Then nothing has changed.
    pub(crate) fn prune<K: Prunable>(
        &mut self,
        paths: impl IntoIterator<Item = FieldPath>,
    ) -> Result<(), NotPrunable> {
        let checked = |path: FieldPath| path.unless_needed(K::FIELDS.0);
        self.pruned = paths.into_iter().map(checked).collect::<Result<_, _>>()?;
        self.compile();
        Ok(())
    }

    /// Cuts all but these, and no longer keeps those of an earlier call.
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

    /// What becomes of the members of an object.
    pub(crate) fn members(&self) -> &Members {
        &self.root
    }

    /// Whether nothing is cut.
    pub(crate) fn is_empty(&self) -> bool {
        self.root == Members::default()
    }
}

/// The same text for those that are the same, another for others, and none where nothing is cut: `-` before
/// what goes, `=` before that of which only what follows it stays, `+` before what stays of that.
impl fmt::Display for Pruning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = Vec::new();
        self.root.describe(&mut FieldPath(Vec::new()), &mut said);
        f.write_str(&said.join(" "))
    }
}

impl FieldPath {
    /// # Errors
    /// Objects can't be without it.
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
    /// Those that fare otherwise than [`Members::others`].
    pub(crate) fn named(&self) -> &BTreeMap<String, Fate> {
        &self.named
    }

    /// What becomes of one that is not named.
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

    /// Keeps what is at this path, where all that is not kept is cut.
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

    /// Cuts what is at this path, if it is not.
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
