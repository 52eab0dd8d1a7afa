//! Defines the Kubernetes kinds whose objects this crate can generate and serve.
//!
//! Guarantees: the groups, versions, names and URL paths are those of a real cluster.

use clap::ValueEnum;

/// The kind of the generated objects; a server serves only one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CorpusKind {
    /// Pods with two containers, a status and managed fields.
    Pods,
    /// `ConfigMaps` with a few kilobytes of configuration.
    Configmaps,
    /// Custom resources that resemble Argo CD's `Application`; they have no protobuf encoding.
    Custom,
    /// Secrets whose data consists of random bytes.
    Secrets,
}

/// A Kubernetes kind: its API group, version and names.
#[derive(Debug)]
pub struct Kind {
    /// API group of the kind, such as `argoproj.io`; empty for the core group.
    pub group: &'static str,
    /// API version of the kind within its group, such as `v1`.
    pub version: &'static str,
    /// Plural name of the kind, as in URL paths, such as `pods`.
    pub plural: &'static str,
    /// Singular name of the kind, as in discovery, such as `pod`.
    pub singular: &'static str,
    /// Name of the kind, as in the member `kind` of objects, such as `Pod`.
    pub kind: &'static str,
    /// Short name of the kind for `kubectl`, such as `po`; empty if it has none.
    pub short_name: &'static str,
    /// Whether objects of the kind have a protobuf encoding, as those of all built-in kinds do.
    pub has_protobuf: bool,
    /// JSON that kube-apiserver writes after `metadata` in the object of a bookmark.
    ///
    /// For example, `,"spec":{"containers":null},"status":{}` for pods. Empty if there is no such JSON.
    pub(crate) empty: &'static str,
}

// === impl CorpusKind ===

impl CorpusKind {
    /// Returns the API group, the version, the names and the encodings of this kind.
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

    /// Returns the value of `apiVersion` in objects of the kind, such as `apps/v1`.
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

    /// Returns the URL path of the API group and version, such as `/api/v1/`.
    pub fn folder(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}/", self.version)
        } else {
            format!("/apis/{}/{}/", self.group, self.version)
        }
    }

    /// Returns the URL path for lists and watches of the kind, such as `/api/v1/pods`.
    pub fn path(&self) -> String {
        format!("{}{}", self.folder(), self.plural)
    }

    /// Returns the start of each object's JSON: `{`, `apiVersion` and `kind` in Go's order, and a comma.
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
