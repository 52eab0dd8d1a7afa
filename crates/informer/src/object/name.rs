//! [`ObjectName`] is the namespace and name of an object, stored in one shared allocation.

use std::{cmp::Ordering, fmt, hash::Hash, str::FromStr, sync::Arc};

use crate::{
    codec::{Identity, IdentityMetadata},
    limits::NAME_BYTES,
};

/// The namespace and name of an object. `Display` prints `namespace/name`, or `name` for a cluster-scoped
/// object.
///
/// Names are ordered by namespace, then by name. Cluster-scoped names come before all namespaced ones.
/// Cloning increments one reference count.
#[doc(alias = "NamespacedName")]
#[doc(alias = "ExplicitKey")]
#[doc(alias = "KeyFunc")]
#[derive(Clone, PartialEq, Eq, Hash)]
#[doc(alias = "MetaNamespaceKeyFunc")]
pub struct ObjectName {
    text: Arc<str>,
    /// Byte position in `text` at which the name begins; 0 for a cluster-scoped object.
    name_at: u32,
}

impl ObjectName {
    /// Creates an object name. The object is cluster-scoped if `namespace` is `None` or empty.
    #[doc(alias = "NewObjectName")]
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace.filter(|namespace| !namespace.is_empty()) {
            None => Self {
                text: Arc::from(name),
                name_at: 0,
            },
            Some(namespace) => {
                let mut text = String::with_capacity(namespace.len() + 1 + name.len());
                text.push_str(namespace);
                text.push('/');
                text.push_str(name);
                Self {
                    name_at: u32::try_from(namespace.len() + 1).unwrap_or(u32::MAX),
                    text: Arc::from(text),
                }
            }
        }
    }

    /// Creates the object name of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self::new(None, name)
    }

    /// Creates the object name of a namespaced object.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self::new(Some(namespace), name)
    }

    /// Returns the object's `metadata.name`.
    pub fn name(&self) -> &str {
        &self.text[self.name_at as usize..]
    }

    /// Returns the object's `metadata.namespace`; `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.text.get(..(self.name_at as usize).checked_sub(1)?)
    }

    pub(crate) fn of(identity: &Identity<'_>) -> Option<Self> {
        let IdentityMetadata {
            name, namespace, ..
        } = &identity.metadata;
        (!name.is_empty()).then(|| Self::new(namespace.as_deref(), name))
    }

    /// Returns whether namespace and name have at most [`NAME_BYTES`] bytes each and no control characters.
    pub(crate) fn is_fit(&self) -> bool {
        let namespace = self.namespace().unwrap_or_default();
        // A shortcut for printable ASCII, which nearly all names are.
        let is_plain = |byte: u8| (b' '..=b'~').contains(&byte);
        self.name().len() <= NAME_BYTES
            && namespace.len() <= NAME_BYTES
            && (self.text.bytes().all(is_plain) || !self.text.contains(char::is_control))
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the text `namespace/name`, or `name` for a cluster-scoped object.
    #[doc(alias = "AsNamespacedName")]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Ord for ObjectName {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.name_at == other.name_at {
            // With the slash at the same position, text order is the order by namespace and name.
            return self.text.as_bytes().cmp(other.text.as_bytes());
        }
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

impl PartialOrd for ObjectName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ObjectName {
    type Err = NameError;

    /// Parses `namespace/name` or `name`.
    #[doc(alias = "SplitMetaNamespaceKey")]
    #[doc(alias = "ParseObjectName")]
    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.split_once('/') {
            None if !text.is_empty() => Ok(Self::cluster(text)),
            Some((namespace, name))
                if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
            {
                Ok(Self::namespaced(namespace, name))
            }
            _ => Err(NameError(text.to_owned())),
        }
    }
}

/// Error for a text that is neither `name` nor `namespace/name`. The error contains the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected key format: {0:?} is neither NAME nor NAMESPACE/NAME")]
#[non_exhaustive]
pub struct NameError(pub String);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_name_round_trips_or_is_rejected(text in "[^/]{0,6}(/[^/]{0,6}){0,3}") {
            let parts: Vec<&str> = text.split('/').collect();
            let named = parts.len() <= 2 && parts.iter().all(|part| !part.is_empty());
            match text.parse::<ObjectName>() {
                Ok(name) => {
                    prop_assert!(named);
                    prop_assert_eq!(name.to_string(), text.clone());
                    prop_assert_eq!(Some(name.name()), parts.last().copied());
                    prop_assert_eq!(name.namespace().is_some(), parts.len() == 2);
                    let again = ObjectName::new(name.namespace(), name.name());
                    prop_assert_eq!(again, name);
                }
                Err(error) => {
                    prop_assert!(!named);
                    prop_assert_eq!(error, NameError(text));
                }
            }
        }
    }

    #[test]
    fn parse_and_format_are_inverse() {
        for text in ["a", "ns/a", "kube-system/coredns-5d78c9869d-abcde"] {
            assert_eq!(text.parse::<ObjectName>().unwrap().to_string(), text);
        }
        for text in ["", "/", "a/", "/a", "a/b/c"] {
            assert_eq!(text.parse::<ObjectName>(), Err(NameError(text.to_owned())));
        }
    }

    #[test]
    fn order_is_by_namespace_and_then_by_name() {
        let name = |text: &str| text.parse::<ObjectName>().unwrap();
        // As plain text "a-b/x" would be before "a/x", because '-' is less than '/'.
        assert!(name("a/x") < name("a-b/x"));
        assert!(name("z") < name("a/a"));
        assert_eq!(name("a/x").namespace(), Some("a"));
        assert_eq!(name("x").namespace(), None);
        assert_eq!(name("a/x").name(), "x");
    }
}
