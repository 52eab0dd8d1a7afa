//! Semantic versions, as `github.com/blang/semver/v4` parses and compares them.

use std::cmp::Ordering;

use crate::quote::Quoted;

/// A version. Build metadata has no effect.
#[derive(Clone, Debug)]
pub(super) struct Version {
    /// Major, minor and patch.
    pub(super) numbers: [u64; 3],
    prerelease: Vec<Identifier>,
}

#[derive(Clone, Debug)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Version {
    /// Parses a version, with `normalize` also with a prefix `v`, leading zeros, or without minor and patch.
    pub(super) fn parse(text: &str, normalize: bool) -> Result<Version, String> {
        if normalize {
            parse(&normalized(text)?)
        } else {
            parse(text)
        }
    }

    pub(super) fn compare(&self, other: &Version) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        let prerelease = || match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => compare_identifiers(&self.prerelease, &other.prerelease),
        };
        numbers.then_with(prerelease)
    }
}

fn compare_identifiers(one: &[Identifier], other: &[Identifier]) -> Ordering {
    let pairs = one.iter().zip(other).map(|pair| match pair {
        (Identifier::Number(one), Identifier::Number(other)) => one.cmp(other),
        (Identifier::Text(one), Identifier::Text(other)) => one.cmp(other),
        (Identifier::Number(_), Identifier::Text(_)) => Ordering::Less,
        (Identifier::Text(_), Identifier::Number(_)) => Ordering::Greater,
    });
    let different = pairs.into_iter().find(|order| order.is_ne());
    different.unwrap_or_else(|| one.len().cmp(&other.len()))
}

fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let stripped = part.trim_start_matches('0');
    if stripped.starts_with(|first: char| first.is_ascii_digit()) {
        stripped.to_owned()
    } else {
        format!("0{stripped}")
    }
}

fn parse(text: &str) -> Result<Version, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let [major, minor, rest] = parts.as_slice() else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (*rest, None),
    };
    let (patch, prerelease) = match rest.split_once('-') {
        Some((patch, prerelease)) => (patch, Some(prerelease)),
        None => (rest, None),
    };
    let numbers = [
        number("Major", major)?,
        number("Minor", minor)?,
        number("Patch", patch)?,
    ];
    let prerelease = prerelease.map(|all| all.split('.').map(identifier).collect());
    let prerelease = prerelease.unwrap_or_else(|| Ok(Vec::new()))?;
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !is_identifier(part) {
            return Err(format!(
                "Invalid character(s) found in build meta data {}",
                Quoted(part)
            ));
        }
    }
    Ok(Version {
        numbers,
        prerelease,
    })
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    let quoted = Quoted(text);
    if text.bytes().any(|one| !one.is_ascii_digit()) {
        let name = name.to_lowercase();
        return Err(format!(
            "Invalid character(s) found in {name} number {quoted}"
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!(
            "{name} number must not contain leading zeroes {quoted}"
        ));
    }
    let problem = if text.is_empty() {
        "invalid syntax"
    } else {
        "value out of range"
    };
    text.parse()
        .map_err(|_| format!("strconv.ParseUint: parsing {quoted}: {problem}"))
}

fn identifier(text: &str) -> Result<Identifier, String> {
    let quoted = Quoted(text);
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|one| one.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            let message = "Numeric PreRelease version must not contain leading zeroes";
            return Err(format!("{message} {quoted}"));
        }
        let problem = "value out of range";
        let parsed = text.parse().map(Identifier::Number);
        return parsed.map_err(|_| format!("strconv.ParseUint: parsing {quoted}: {problem}"));
    }
    if is_identifier(text) {
        Ok(Identifier::Text(text.to_owned()))
    } else {
        Err(format!("Invalid character(s) found in prerelease {quoted}"))
    }
}

fn is_identifier(text: &str) -> bool {
    text.bytes()
        .all(|one| one.is_ascii_alphanumeric() || one == b'-')
}
