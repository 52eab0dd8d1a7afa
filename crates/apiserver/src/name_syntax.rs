//! Checks object names, label keys and label values against Kubernetes' syntax rules.
//!
//! Guarantees: the rules are those of apimachinery's `util/validation`, and the error messages are those of
//! kube-apiserver 1.36.

/// Maximum length of an object's name in bytes, which is Kubernetes' `DNS1123SubdomainMaxLength`.
const NAME_MAX: usize = 253;
/// Maximum length in bytes of a DNS label, a label value, and a label key without prefix.
const LABEL_MAX: usize = 63;

const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const WILDCARD: &str = r"a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Syntax rule for the names of a kind's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    Subdomain,
    /// A DNS label, as for namespaces and services.
    Label,
    /// A segment of a URL path, as for RBAC kinds.
    PathSegment,
}

impl NameRule {
    /// Returns the faults of the start of a name, such as `generateName`. What follows makes a trailing dash valid.
    pub(crate) fn prefix_faults(self, prefix: &str) -> Vec<String> {
        let undashed = prefix.strip_suffix('-');
        match undashed.and_then(|prefix| prefix.char_indices().next_back()) {
            Some((end, _)) => self.faults(&format!("{}a", &prefix[..end])),
            None => self.faults(prefix),
        }
    }

    /// Returns a message for each way in which `name` violates this rule.
    pub(crate) fn faults(self, name: &str) -> Vec<String> {
        match self {
            NameRule::Label => label_faults(name),
            NameRule::PathSegment if matches!(name, "." | "..") => {
                vec![format!("may not be '{name}'")]
            }
            NameRule::PathSegment => {
                let bad = ['/', '%'].into_iter().filter(|bad| name.contains(*bad));
                bad.map(|bad| format!("may not contain '{bad}'")).collect()
            }
            NameRule::Subdomain => {
                let mut faults = Vec::new();
                if name.len() > NAME_MAX {
                    faults.push(format!("must be no more than {NAME_MAX} characters"));
                }
                if !is_subdomain(name) {
                    faults.push(SUBDOMAIN.to_owned());
                }
                faults
            }
        }
    }
}

pub(crate) fn label_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > LABEL_MAX {
        faults.push(format!("must be no more than {LABEL_MAX} characters"));
    }
    if !is_dns_label(name) {
        let why = if is_subdomain(name) {
            "must not contain dots"
        } else {
            LABEL
        };
        faults.push(why.to_owned());
    }
    faults
}

/// Returns a message for each violation of the syntax of `IsDNS1035Label`: a DNS label that starts with a letter.
pub(crate) fn dns_1035_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > LABEL_MAX {
        faults.push(format!("must be no more than {LABEL_MAX} characters"));
    }
    let first = name.bytes().next();
    if !is_dns_label(name) || !first.is_some_and(|byte| byte.is_ascii_lowercase()) {
        faults.push(LABEL_1035.to_owned());
    }
    faults
}

/// Returns a message for each violation of the syntax of `IsWildcardDNS1123Subdomain`, such as `*.example.com`.
pub(crate) fn wildcard_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > NAME_MAX {
        faults.push(format!("must be no more than {NAME_MAX} characters"));
    }
    if !name.strip_prefix("*.").is_some_and(is_subdomain) {
        faults.push(WILDCARD.to_owned());
    }
    faults
}

/// Returns a message for each violation of the label key syntax, as Kubernetes' `IsQualifiedName` does.
pub(crate) fn key_faults(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut faults = Vec::new();
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            faults.push("prefix part must be non-empty".to_owned());
        } else {
            if prefix.len() > NAME_MAX {
                faults.push(format!("prefix part must be no more than {NAME_MAX} bytes"));
            }
            if !is_subdomain(prefix) {
                faults.push(format!("prefix part {SUBDOMAIN}"));
            }
        }
    }
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        faults.push(format!("name part must be no more than {LABEL_MAX} bytes"));
    }
    if !is_name(name) {
        faults.push(format!("name part {KEY}"));
    }
    faults
}

/// Returns a message for each violation of the label value syntax.
pub(crate) fn value_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_MAX {
        faults.push(format!("must be no more than {LABEL_MAX} bytes"));
    }
    if !value.is_empty() && !is_name(value) {
        faults.push(LABEL_VALUE.to_owned());
    }
    faults
}

/// Returns whether `text` has the syntax of a non-empty label value. Does not check the length.
fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    is_edged(text, |byte| byte.is_ascii_alphanumeric()) && text.bytes().all(inner)
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Returns whether `text` has the syntax of a DNS label. Does not check the length.
fn is_dns_label(text: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_edged(text, edge) && text.bytes().all(|byte| edge(byte) || byte == b'-')
}

fn is_edged(text: &str, edge: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (first, last) = (bytes.first(), bytes.last());
    first.is_some_and(|byte| edge(*byte)) && last.is_some_and(|byte| edge(*byte))
}
