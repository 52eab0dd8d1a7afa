//! Checks that the manifests of published packages meet the requirements of crates.io and docs.rs.
//!
//! The names of categories are not checked, because crates.io ignores unknown categories.

use super::packages::Package;

/// Maximum number of keywords, and of categories, that crates.io accepts.
const LABELS_MAX: usize = 5;

/// Returns one line of text for each problem in the manifest of `package`.
pub(super) fn findings(package: &Package) -> Vec<String> {
    let mut findings = Vec::new();
    let fields = [
        ("description", package.description.is_some()),
        ("license", package.license.is_some()),
        ("repository", package.repository.is_some()),
        ("readme", package.readme.is_some()),
        ("keywords", !package.keywords.is_empty()),
        ("categories", !package.categories.is_empty()),
    ];
    let missing = fields.iter().filter(|(_, is_set)| !is_set);
    findings.extend(missing.map(|(field, _)| format!("no `{field}`; add it")));
    for (field, labels) in [
        ("keywords", &package.keywords),
        ("categories", &package.categories),
    ] {
        if labels.len() > LABELS_MAX {
            findings.push(format!(
                "{} `{field}`; crates.io accepts {LABELS_MAX}",
                labels.len()
            ));
        }
    }
    findings.extend(dependencies(package));
    findings.extend(documented(package));
    let name = &package.name;
    let findings = findings.iter();
    findings
        .map(|finding| format!("the manifest of {name}: {finding}"))
        .collect()
}

/// Returns a line for each dependency on a workspace crate whose version requirement is wrong.
///
/// The requirement must be `^` followed by the version of `package`. Dev-dependencies are not checked.
fn dependencies(package: &Package) -> impl Iterator<Item = String> {
    let required = format!("^{}", package.version);
    let own = package.dependencies.iter().filter(move |dependency| {
        let is_dev = dependency.kind.as_deref() == Some("dev");
        dependency.path.is_some() && !is_dev && dependency.req != required
    });
    own.map(|dependency| {
        let (name, version) = (&dependency.name, &package.version);
        format!("it requires {name} {}, and the release is {version}; raise the version of {name} in [workspace.dependencies]", dependency.req)
    })
}

/// Returns a line for each feature that `[package.metadata.docs.rs]` does not list.
///
/// The feature `default` and features whose names start with `__` need not be listed. A package without a
/// library need not list any feature.
fn documented(package: &Package) -> Vec<String> {
    let is_library = package
        .targets
        .iter()
        .any(|target| target.kind.iter().any(|kind| kind == "lib"));
    if !is_library {
        return Vec::new();
    }
    let listed = package.metadata.pointer("/docs/rs/features");
    let listed: Vec<_> = listed
        .and_then(|features| features.as_array())
        .into_iter()
        .flatten()
        .filter_map(|feature| feature.as_str())
        .collect();
    let features = package.features.keys().filter(|feature| {
        // `default` has no API of its own, and a feature that starts with `__` is internal.
        feature.as_str() != "default" && !feature.starts_with("__")
    });
    let missing = features.filter(|feature| !listed.contains(&feature.as_str()));
    missing
        .map(|feature| format!("docs.rs does not document the feature `{feature}`; add it to `features` of [package.metadata.docs.rs]"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::release::packages::{Dependency, Target};

    fn complete() -> Package {
        let text = || Some("text".to_owned());
        let feature = |name: &str| (name.to_owned(), json!([]));
        Package {
            name: "a".to_owned(),
            version: "0.2.0".to_owned(),
            description: text(),
            license: text(),
            repository: text(),
            readme: Some(PathBuf::from("README.md")),
            keywords: vec!["kubernetes".to_owned()],
            categories: vec!["caching".to_owned()],
            features: ["default", "client", "__fuzzing"].map(feature).into(),
            metadata: json!({"docs": {"rs": {"features": ["client", "b/c"]}}}),
            targets: vec![Target {
                kind: vec!["lib".to_owned()],
            }],
            ..Package::default()
        }
    }

    #[test]
    fn a_complete_manifest_has_no_finding() {
        assert_eq!(findings(&complete()), [""; 0]);
    }

    #[test]
    fn a_missing_field_and_too_many_keywords_are_reported() {
        let mut package = complete();
        package.readme = None;
        package.keywords = vec!["k".to_owned(); 6];
        assert_eq!(
            findings(&package),
            [
                "the manifest of a: no `readme`; add it",
                "the manifest of a: 6 `keywords`; crates.io accepts 5",
            ]
        );
    }

    #[test]
    fn a_feature_that_docs_rs_does_not_document_is_reported() {
        let mut package = complete();
        package.features.insert("tls".to_owned(), json!([]));
        let found = findings(&package);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("`tls`"), "{found:?}");
        package.targets[0].kind = vec!["bin".to_owned()];
        assert_eq!(findings(&package), [""; 0]);
    }

    #[test]
    fn an_older_version_of_an_own_crate_is_reported() {
        let dependency = |req: &str, kind: Option<&str>| Dependency {
            name: "b".to_owned(),
            req: req.to_owned(),
            kind: kind.map(str::to_owned),
            path: Some(PathBuf::from("crates/b")),
        };
        let mut package = complete();
        package.dependencies = vec![dependency("^0.2.0", None), dependency("*", Some("dev"))];
        assert_eq!(findings(&package), [""; 0]);
        package.dependencies = vec![dependency("^0.1.0", None)];
        let found = findings(&package);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("requires b ^0.1.0"), "{found:?}");
    }
}
