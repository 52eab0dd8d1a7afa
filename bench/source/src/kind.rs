//! The kinds that a corpus can have.
//!
//! Guarantees: names are those that a cluster has, so clients find each where they look for it.

use clap::ValueEnum;

/// What the objects of a corpus are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CorpusKind {
    /// Pods with two containers, a status and managed fields.
    Pods,
    /// `ConfigMaps` with a few kilobytes of configuration.
    Configmaps,
    /// A custom resource like Argo CD's `Application`, which has no protobuf.
    Custom,
    /// Secrets whose data is random.
    Secrets,
}

/// How a kind is found and shown.
#[derive(Debug)]
pub struct Kind {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The version within the group.
    pub version: &'static str,
    /// The name in paths.
    pub plural: &'static str,
    /// The name of one for people.
    pub singular: &'static str,
    /// The name in objects.
    pub kind: &'static str,
    /// What `kubectl` may call it.
    pub short_name: &'static str,
    /// Whether it is a built-in kind, which has protobuf.
    pub has_protobuf: bool,
    /// What Go writes behind the metadata of an object that has nothing else, as in a bookmark.
    pub(crate) empty: &'static str,
}

// === impl CorpusKind ===

impl CorpusKind {
    /// How the kind is found and shown.
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

    /// Group and version, as objects have them.
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

    /// The folder of the group and version, with a slash at its end.
    pub fn folder(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}/", self.version)
        } else {
            format!("/apis/{}/{}/", self.group, self.version)
        }
    }

    /// The path of all objects of the kind.
    pub fn path(&self) -> String {
        format!("{}{}", self.folder(), self.plural)
    }

    /// The start of an object with `apiVersion` and `kind`, up to its other members.
    pub(crate) fn json_start(&self) -> String {
        if self.has_protobuf {
            // Go's order for types that it knows; others are maps, whose keys it sorts.
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
