//! Determines when the kubelet pulls an image, by the tag in its name.

/// Maximum length of the name of a repository.
const NAME_MAX: usize = 255;

/// Maximum length of a tag.
const TAG_MAX: usize = 128;

/// Returns the default pull policy of an image: `Always` for the tag `latest`, also if there is neither a tag nor a
/// digest.
///
/// As in Kubernetes, a malformed name has the policy `IfNotPresent`.
pub(super) fn pull_policy(image: &str) -> &'static str {
    match tag(image) {
        Some("latest") => "Always",
        _ => "IfNotPresent",
    }
}

/// Returns the tag of an image, or `None` if the name is malformed. The tag is empty if there is only a digest.
fn tag(image: &str) -> Option<&str> {
    let is_hex = |text: &str| {
        text.bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if image.len() == 64 && is_hex(image) {
        return None;
    }
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return None;
    }
    let colon = rest.rfind(':').filter(|at| !rest[*at..].contains('/'));
    let (name, tag) = match colon {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    if tag.is_some_and(|tag| !is_tag(tag)) || !is_name(name) {
        return None;
    }
    Some(match (tag, digest) {
        (Some(tag), _) => tag,
        (None, Some(_)) => "",
        (None, None) => "latest",
    })
}

/// Returns whether a digest has an algorithm and the hexadecimal digits of the algorithms that Go knows.
fn is_digest(digest: &str) -> bool {
    let Some((algorithm, digits)) = digest.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.len() == length && digits.bytes().all(is_hex)
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let first = tag.as_bytes().first();
    first.is_some_and(is_word)
        && tag.len() <= TAG_MAX
        && tag
            .bytes()
            .all(|byte| is_word(&byte) || matches!(byte, b'.' | b'-'))
}

fn is_name(name: &str) -> bool {
    let (domain, path) = match name.split_once('/') {
        Some((first, path)) if is_domain_like(first) => (Some(first), path),
        _ => (None, name),
    };
    // Without a domain, the name is one of `docker.io`, below `library` if it has no folder.
    let prefix = match domain {
        Some(domain) => domain.len() + 1,
        None if path.contains('/') => "docker.io/".len(),
        None => "docker.io/library/".len(),
    };
    // The grammar also accepts a folder of the path here.
    domain.is_none_or(|domain| is_domain(domain) || is_component(domain))
        && path.split('/').all(is_component)
        && prefix + path.len() <= NAME_MAX
}

/// Returns whether the first part of a name is a domain, not a folder.
fn is_domain_like(first: &str) -> bool {
    first == "localhost"
        || first.contains(['.', ':'])
        || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_domain(domain: &str) -> bool {
    if let Some(rest) = domain.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else {
            return false;
        };
        let is_address = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
        return !address.is_empty() && address.bytes().all(is_address) && is_port(port);
    }
    let (host, port) = match domain.find(':') {
        Some(at) => domain.split_at(at),
        None => (domain, ""),
    };
    let is_part = |part: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(is_letter)
    };
    host.split('.').all(is_part) && is_port(port)
}

fn is_port(port: &str) -> bool {
    let digits = port.strip_prefix(':');
    let is_number =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    port.is_empty() || digits.is_some_and(is_number)
}

/// Returns whether a part of a path has words of lower-case letters and digits, between `.`, `_`, `__` or any number of
/// `-`.
fn is_component(part: &str) -> bool {
    let is_word = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
    let separators =
        part.split(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    let mut separators = separators.filter(|separator| !separator.is_empty());
    let bytes = part.as_bytes();
    bytes.first().copied().is_some_and(is_word)
        && bytes.last().copied().is_some_and(is_word)
        && separators.all(|separator| {
            matches!(separator, "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results are those of `parsers.ParseImageName` in Kubernetes 1.36.
    #[test]
    fn the_tag_decides() {
        let digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        for (image, expected) in [
            ("nginx", Some("latest")),
            ("nginx:latest", Some("latest")),
            ("nginx:1.27", Some("1.27")),
            ("localhost:5000/a", Some("latest")),
            ("localhost:5000/a:1", Some("1")),
            ("registry.k8s.io/pause:3.10", Some("3.10")),
            ("a__b/c---d.e", Some("latest")),
            ("Domain/a", Some("latest")),
            ("[::1]:5000/a", Some("latest")),
            ("", None),
            ("Nginx", None),
            ("a:b c", None),
            ("a_-b", None),
            ("a//b", None),
            ("a:", None),
            ("/a", None),
            ("a@sha256:12", None),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
        assert_eq!(tag(&format!("a@{digest}")), Some(""));
        assert_eq!(tag(&format!("a:latest@{digest}")), Some("latest"));
        assert_eq!(tag(&digest[7..]), None);
        assert_eq!(pull_policy("nginx"), "Always");
    }
}
