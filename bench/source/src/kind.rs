//! Defines the Kubernetes kinds whose objects the source can generate and serve.
//!
//! Guarantees: the groups, versions, names and URL paths are those of a real cluster.

use clap::ValueEnum;

/// The kind of the objects that the benchmark's object server generates. One server serves objects of only
/// one kind.
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

/// A Kubernetes kind: its API group, version and names, and whether it has a protobuf encoding.
#[derive(Debug)]
pub struct Kind {
    /// API group of the kind, such as `argoproj.io`. Empty for the core group.
    pub group: &'static str,
    /// API version of the kind within its group, such as `v1`.
    pub version: &'static str,
    /// Plural name of the kind, as in URL paths, such as `pods`.
    pub plural: &'static str,
    /// Singular name of the kind, as in discovery, such as `pod`.
    pub singular: &'static str,
    /// Name of the kind, as in the member `kind` of objects, such as `Pod`.
    pub kind: &'static str,
    /// Short name of the kind for `kubectl`, such as `po`. Empty if the kind has no short name.
    pub short_name: &'static str,
    /// Whether objects of the kind can be encoded as protobuf. This is possible for kinds that are built into
    /// Kubernetes.
    pub has_protobuf: bool,
    /// JSON text that follows the member `metadata` in the object of a bookmark event.
    ///
    /// The text is `spec` and `status` without content if Go writes these members, and otherwise empty.
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

    /// Returns the API group and version of the kind as in the member `apiVersion` of objects, such as
    /// `apps/v1`.
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

    /// Returns the URL path of the kind's API group and version, with a trailing slash, such as `/api/v1/`.
    pub fn folder(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}/", self.version)
        } else {
            format!("/apis/{}/{}/", self.group, self.version)
        }
    }

    /// Returns the URL path at which all objects of the kind are listed and watched, such as `/api/v1/pods`.
    pub fn path(&self) -> String {
        format!("{}{}", self.folder(), self.plural)
    }

    /// Returns the start of each object of the kind in JSON: the opening brace, the members `apiVersion` and
    /// `kind`, and the comma after these members.
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
