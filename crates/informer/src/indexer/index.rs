//! Named indices: which values an object has, and which objects a value has.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use imbl::OrdSet;

use crate::object::{Object, ObjectName};

/// The name of the index by namespace. Every store has it; it needs no function, for objects are
/// kept in the order of namespaces.
#[doc(alias = "NamespaceIndex")]
pub const NAMESPACE: &str = "namespace";

type IndexFunc<K> = Arc<dyn Fn(&Object<K>) -> Result<Vec<Arc<str>>, String> + Send + Sync>;

/// Index functions by name, to begin a store with or to add to one.
///
/// A function says which values an object has: none, one or many. It is called once per state of an
/// object. When it fails or panics, the object is left out of that index and reported; everything
/// else goes on.
#[doc(alias = "Indices")]
pub struct Indexers<K> {
    pub(super) functions: Vec<(Arc<str>, IndexFunc<K>)>,
}

impl<K> Default for Indexers<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Clone for Indexers<K> {
    fn clone(&self) -> Self {
        Self {
            functions: self.functions.clone(),
        }
    }
}

impl<K> fmt::Debug for Indexers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.functions.iter().map(|(name, _)| name))
            .finish()
    }
}

impl<K> Indexers<K> {
    /// No index but [`NAMESPACE`], which is always there.
    pub fn new() -> Self {
        Self {
            functions: Vec::new(),
        }
    }

    /// The same, for readers who look for it: the index by namespace is always there.
    #[doc(alias = "MetaNamespaceIndexFunc")]
    #[doc(alias = "NamespaceIndex")]
    pub fn by_namespace() -> Self {
        Self::new()
    }

    /// Adds an index over the values that `values` says an object has.
    #[doc(alias = "IndexFunc")]
    #[must_use]
    pub fn with<V>(self, name: &str, values: impl Fn(&K) -> V + Send + Sync + 'static) -> Self
    where
        V: IntoIterator,
        V::Item: Into<Arc<str>>,
    {
        self.try_with(name, move |object| Ok::<_, &str>(values(object)))
    }

    /// Adds an index whose function may fail.
    #[doc(alias = "IndexFunc")]
    #[must_use]
    pub fn try_with<V, E>(
        mut self,
        name: &str,
        values: impl Fn(&K) -> Result<V, E> + Send + Sync + 'static,
    ) -> Self
    where
        V: IntoIterator,
        V::Item: Into<Arc<str>>,
        E: ToString,
    {
        let function = move |object: &Object<K>| match object.live() {
            None => Ok(Vec::new()),
            Some(live) => match values(live) {
                Ok(values) => Ok(values.into_iter().map(Into::into).collect()),
                Err(error) => Err(error.to_string()),
            },
        };
        self.functions.push((Arc::from(name), Arc::new(function)));
        self
    }

    /// The names, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|(name, _)| &**name)
    }
}

/// Stands for one index of one store; can't be misspelt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexToken(Arc<str>);

impl IndexToken {
    pub(crate) fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The index's name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// What names an index: its name, or its [`IndexToken`].
pub trait IndexRef {
    /// The index's name.
    fn index_name(&self) -> &str;
}

impl IndexRef for str {
    fn index_name(&self) -> &str {
        self
    }
}

impl IndexRef for String {
    fn index_name(&self) -> &str {
        self
    }
}

impl IndexRef for IndexToken {
    fn index_name(&self) -> &str {
        self.name()
    }
}

/// A store has no index of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index with name {0} does not exist")]
pub struct NoSuchIndex(pub String);

/// A store has an index of that name already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an index with name {0} exists already")]
pub struct DuplicateIndex(pub String);

/// An index function could not say which values an object has; the object is missing from that
/// index, and only from that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object} is not in index {index}: {reason}")]
pub struct IndexError {
    /// The index.
    pub index: Arc<str>,
    /// The object.
    pub object: ObjectName,
    /// What the function said.
    pub reason: String,
}

/// One index of one moment: pairs of value and object, in order. A value without objects is not in
/// it.
pub(super) struct Index<K> {
    pub(super) name: Arc<str>,
    function: IndexFunc<K>,
    pairs: OrdSet<Pair>,
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            function: Arc::clone(&self.function),
            pairs: self.pairs.clone(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    value: Arc<str>,
    object: ObjectName,
}

impl<K> Index<K> {
    pub(super) fn new((name, function): (Arc<str>, IndexFunc<K>)) -> Self {
        Self {
            name,
            function,
            pairs: OrdSet::new(),
        }
    }

    /// The values of an object, sorted, each once.
    ///
    /// # Errors
    /// What the function said, or that it panicked.
    pub(super) fn values(&self, object: &Object<K>) -> Result<Vec<Arc<str>>, IndexError> {
        let values = catch_unwind(AssertUnwindSafe(|| (self.function)(object)));
        let values = values.unwrap_or_else(|_| Err("the index function panicked".to_owned()));
        let mut values = values.map_err(|reason| IndexError {
            index: Arc::clone(&self.name),
            object: object.object_name().clone(),
            reason,
        })?;
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    pub(super) fn insert(&mut self, object: &ObjectName, values: &[Arc<str>]) {
        for value in values {
            self.pairs.insert(Pair {
                value: Arc::clone(value),
                object: object.clone(),
            });
        }
    }

    pub(super) fn remove(&mut self, object: &ObjectName, values: &[Arc<str>]) {
        for value in values {
            self.pairs.remove(&Pair {
                value: Arc::clone(value),
                object: object.clone(),
            });
        }
    }

    /// The names under a value, in order.
    pub(super) fn names<'a>(
        &'a self,
        value: &str,
    ) -> impl Iterator<Item = &'a ObjectName> + use<'a, K> {
        let first = Pair::first_of(value);
        let value = Arc::clone(&first.value);
        let pairs = self.pairs.range(first..);
        pairs
            .take_while(move |pair| pair.value == value)
            .map(|pair| &pair.object)
    }

    /// The values, in order, each once.
    pub(super) fn all_values(&self) -> Vec<Arc<str>> {
        let mut values: Vec<Arc<str>> = Vec::new();
        for pair in &self.pairs {
            if values.last() != Some(&pair.value) {
                values.push(Arc::clone(&pair.value));
            }
        }
        values
    }
}

impl Pair {
    fn first_of(value: &str) -> Self {
        Self {
            value: Arc::from(value),
            // Cluster scope and no text: before every name.
            object: ObjectName::cluster(""),
        }
    }
}
