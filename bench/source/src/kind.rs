//! The kinds of a corpus.
//!
//! Guarantees: groups, versions, names and paths are those of a real cluster.

use clap::ValueEnum;

/// The kind of the objects of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CorpusKind {
    /// Pods with two containers, a status and managed fields.
    Pods,
    /// `ConfigMaps` with a few kilobytes of configuration.
    Configmaps,
    /// Custom resources like Argo CD's `Application`, without protobuf.
    Custom,
    /// Secrets with random data.
    Secrets,
}

/// The names and properties of a kind.
#[derive(Debug)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version of the group.
    pub version: &'static str,
    /// The plural name, as in paths.
    pub plural: &'static str,
    /// The singular name.
    pub singular: &'static str,
    /// The name of the kind, as in objects.
    pub kind: &'static str,
    /// The short name for `kubectl`; may be empty.
    pub short_name: &'static str,
    /// Whether the kind is built-in and therefore supports protobuf.
    pub has_protobuf: bool,
    /// The JSON that Go writes after the metadata of an object without other fields, as in a bookmark.
    pub(crate) empty: &'static str,
}

// === impl CorpusKind ===

impl CorpusKind {
    /// Returns the names and properties of the kind.
    pub fn kind(self) -> &'static Kind {
        match self {
            CorpusKind::Pods => &Kind::PODS,
            CorpusKind::Configmaps => &Kind::CONFIG_MAPS,
            CorpusKind::Custom => &Kind::APPLICATIONS,
            CorpusKind::Secrets => &Kind::SECRETS,
        }
    }
}

// === impl Kind ===

impl Kind {
    const PODS: Kind = Kind {
        empty: r#","spec":{"containers":null},"status":{}"#,
        ..Kind::core("pods", "pod", "Pod", "po")
    };
    const CONFIG_MAPS: Kind = Kind::core("configmaps", "configmap", "ConfigMap", "cm");
    const SECRETS: Kind = Kind::core("secrets", "secret", "Secret", "");
    const APPLICATIONS: Kind = Kind {
        group: "argoproj.io",
        version: "v1alpha1",
        plural: "applications",
        singular: "application",
        kind: "Application",
        short_name: "app",
        has_protobuf: false,
        empty: "",
    };

    const fn core(
        plural: &'static str,
        singular: &'static str,
        kind: &'static str,
        short_name: &'static str,
    ) -> Kind {
        Kind {
            group: "",
            version: "v1",
            plural,
            singular,
            kind,
            short_name,
            has_protobuf: true,
            empty: "",
        }
    }

    /// Returns the group and version, as in `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn api_version_and_kind(&self) -> String {
        format!("{}/{}", self.api_version(), self.kind)
    }

    /// Returns the path of the group and version, with a trailing slash.
    pub fn folder(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}/", self.version)
        } else {
            format!("/apis/{}/{}/", self.group, self.version)
        }
    }

    /// Returns the path of all objects of the kind.
    pub fn path(&self) -> String {
        format!("{}{}", self.folder(), self.plural)
    }

    /// Returns the start of an object in JSON: `apiVersion` and `kind`, up to the other members.
    pub(crate) fn json_start(&self) -> String {
        if self.has_protobuf {
            // Go writes typed objects in declaration order, and sorts the keys of untyped ones.
            return format!(
                r#"{{"kind":"{}","apiVersion":"{}","#,
                self.kind,
                self.api_version()
            );
        }
        format!(
            r#"{{"apiVersion":"{}","kind":"{}","#,
            self.api_version(),
            self.kind
        )
    }
}
