//! Tests the steps of `cargo xtask release` that write no file. The input is this workspace.

use super::*;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn section(is_dated: bool) -> Section {
    Section {
        notes: "- New.\n".to_owned(),
        is_dated,
    }
}

#[test]
fn the_manifests_of_the_published_crates_are_complete() {
    let metadata = Metadata::read(root()).unwrap();
    check_manifests(&metadata).unwrap();
    let names: Vec<_> = metadata.published().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "kube-informer",
            "kube-informer-apiserver",
            PACKAGE,
            "kube-informer-control-plane",
            "kube-informer-protobuf"
        ]
    );
    assert!(metadata.version().is_ok());
}

#[test]
fn the_bill_of_materials_has_exactly_the_packages_of_the_program() {
    let metadata = Metadata::read(root()).unwrap();
    let resolved = dependencies::resolve(root(), PACKAGE, "x86_64-unknown-linux-gnu").unwrap();
    let has = |name: &str| resolved.linked.keys().any(|(linked, _)| linked == name);
    assert!(has("kube-informer") && has("redb") && has("ring"));
    // Other members of the workspace need zstd; procedural macros and build scripts are not linked.
    assert!(!has("zstd") && !has("serde_derive") && !has("cc"));
    let packages = metadata.by_id();
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let checksums = packages::checksums(&lock);
    for id in resolved.built.keys() {
        let package = packages[id];
        assert!(package.license.is_some(), "{id:?}");
        let is_own = package.folder().starts_with(root());
        assert!(is_own || checksums.contains_key(id), "{id:?}");
    }
}

#[test]
fn publishing_needs_the_dated_section() {
    let undated = next(&section(false), "0.2.0", "abc");
    assert!(undated.contains("rename `## Unreleased` of CHANGELOG.md to `## 0.2.0 - DATE`"));
    assert!(!undated.contains("cargo publish"));
    let dated = next(&section(true), "0.2.0", "abc");
    assert!(dated.contains("git tag --annotate v0.2.0 --message v0.2.0 abc\n"));
    assert!(dated.contains("K8S_OPENAPI_ENABLED_VERSION=1.36 cargo publish --workspace\n"));
}

#[test]
fn the_target_is_that_of_the_machine_and_linux() {
    let target = host("rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\n").unwrap();
    assert_eq!(target, "x86_64-unknown-linux-gnu");
    let failed = host("host: aarch64-apple-darwin\n").unwrap_err();
    assert!(failed.to_string().ends_with("run the command on Linux"));
}

#[test]
fn sizes_have_three_units() {
    assert_eq!(shown(999), "999 B");
    assert_eq!(shown(1_250), "1.2 kB");
    assert_eq!(shown(18_849_000), "18.8 MB");
}
