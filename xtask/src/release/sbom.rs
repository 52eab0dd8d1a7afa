//! Generates the software bill of materials (SBOM) of `kubectl-informer`, as CycloneDX 1.5 in JSON.
//!
//! The same commit produces the same bytes. The SBOM contains all packages that the build needs. A package
//! has the scope `required` if the program contains its code, and otherwise `excluded`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::dependencies::Resolved;
use super::packages::{Id, Package};

/// The program that the bill of materials describes.
pub(super) struct Subject<'a> {
    pub(super) program: &'a str,
    /// Package that the program is built from.
    pub(super) package: &'a Package,
    pub(super) target: &'a str,
    /// Commit time in RFC 3339 format.
    pub(super) time: &'a str,
}

/// Returns the bill of materials of `subject` as a CycloneDX document.
///
/// # Errors
///
/// Returns an error if `packages` lacks a package of `resolved`.
pub(super) fn document(
    subject: &Subject<'_>,
    resolved: &Resolved,
    packages: &BTreeMap<Id, &Package>,
    checksums: &BTreeMap<Id, String>,
) -> Result<Value> {
    let root = subject.package.id();
    let mut components = Vec::new();
    for id in resolved.built.keys().filter(|id| **id != root) {
        let package = packages.get(id).with_context(|| {
            format!(
                "cargo tree has {} {}, and cargo metadata does not",
                id.0, id.1
            )
        })?;
        let is_linked = resolved.linked.contains_key(id);
        let scope = if is_linked { "required" } else { "excluded" };
        let mut component = described(package, "library");
        component["scope"] = json!(scope);
        if let Some(checksum) = checksums.get(id) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        components.push(component);
    }
    let dependencies: Vec<_> = resolved
        .built
        .iter()
        .map(|(id, needed)| {
            let needed: Vec<_> = needed.iter().map(reference).collect();
            json!({"ref": reference(id), "dependsOn": needed})
        })
        .collect();
    let mut program = described(subject.package, "application");
    program["name"] = json!(subject.program);
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": subject.time,
            "component": program,
            "properties": [{"name": "cdx:rustc:sbom:target:triple", "value": subject.target}],
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn described(package: &Package, kind: &str) -> Value {
    let id = package.id();
    let mut component = json!({
        "type": kind,
        "bom-ref": reference(&id),
        "name": package.name,
        "version": package.version,
        "purl": reference(&id),
    });
    if let Some(description) = &package.description {
        let words: Vec<_> = description.split_whitespace().collect();
        component["description"] = json!(words.join(" "));
    }
    if let Some(license) = &package.license {
        // Old manifests separate alternatives by a slash, which SPDX does not support.
        let expression = license.replace(" / ", "/").replace('/', " OR ");
        component["licenses"] = json!([{"expression": expression}]);
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

/// Returns the package URL of a package, which is also its `bom-ref`.
fn reference((name, version): &Id) -> String {
    // `+` is the only character of names and versions that a package URL escapes.
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::release::dependencies::Tree;

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some("MIT/Apache-2.0".to_owned()),
            ..Package::default()
        }
    }

    #[test]
    fn a_component_has_its_scope_checksum_and_dependencies() {
        let tool = package("tool", "0.1.0");
        let (linked, built) = (package("linked", "1.0.0+2"), package("built", "2.0.0"));
        let ids = [tool.id(), linked.id(), built.id()];
        let [tool_id, linked_id, built_id] = ids.clone();
        let none = BTreeSet::new();
        let needed = BTreeSet::from([linked_id.clone(), built_id.clone()]);
        let resolved = Resolved {
            built: Tree::from([
                (tool_id.clone(), needed),
                (linked_id.clone(), none.clone()),
                (built_id.clone(), none.clone()),
            ]),
            linked: Tree::from([(tool_id, none.clone()), (linked_id.clone(), none)]),
        };
        let packages = ids.into_iter().zip([&tool, &linked, &built]).collect();
        let checksums = BTreeMap::from([(linked_id, "0a".to_owned())]);
        let subject = Subject {
            program: "kubectl-tool",
            package: &tool,
            target: "x86_64-unknown-linux-gnu",
            time: "2026-11-24T12:00:00+00:00",
        };
        let document = document(&subject, &resolved, &packages, &checksums).unwrap();
        let program = &document["metadata"]["component"];
        assert_eq!(program["name"], "kubectl-tool");
        assert_eq!(program["purl"], "pkg:cargo/tool@0.1.0");
        assert_eq!(
            document["components"],
            json!([
                {
                    "type": "library", "name": "built", "version": "2.0.0", "scope": "excluded",
                    "bom-ref": "pkg:cargo/built@2.0.0", "purl": "pkg:cargo/built@2.0.0",
                    "licenses": [{"expression": "MIT OR Apache-2.0"}],
                },
                {
                    "type": "library", "name": "linked", "version": "1.0.0+2", "scope": "required",
                    "bom-ref": "pkg:cargo/linked@1.0.0%2B2", "purl": "pkg:cargo/linked@1.0.0%2B2",
                    "licenses": [{"expression": "MIT OR Apache-2.0"}],
                    "hashes": [{"alg": "SHA-256", "content": "0a"}],
                },
            ])
        );
        assert_eq!(
            document["dependencies"][2],
            json!({
                "ref": "pkg:cargo/tool@0.1.0",
                "dependsOn": ["pkg:cargo/built@2.0.0", "pkg:cargo/linked@1.0.0%2B2"],
            })
        );
    }
}
