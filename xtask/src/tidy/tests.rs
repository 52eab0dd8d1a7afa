//! Tests that `cargo xtask tidy` runs every rule, and that no rule reports an error in this workspace.

use std::path::Path;

use super::*;

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn the_workspace_is_tidy() {
    let findings: Vec<_> = check(workspace())
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn every_rule_is_part_of_the_check() {
    let tree = Tree::of(&[
        ("ARCHITECTURE.md", "`src/gone.rs`, as requested, [a](b)"),
        ("docs/client-go.md", "| ★1 | x | `no_such_test` |"),
        (
            "crates/apiserver/Cargo.toml",
            "[package]\nname = \"apiserver\"\n",
        ),
        (
            "crates/informer/Cargo.toml",
            "[dependencies]\ntokio = \"1\"\n[dev-dependencies]\napiserver = \"1\"\n",
        ),
        (
            "crates/informer/src/lib.rs",
            "//! Root.\nmod object;\nmod queue;\n",
        ),
        (
            "crates/informer/src/object.rs",
            "//! Object.\nuse crate::queue;\npub fn a(b: tokio::C) { tokio::select! { } } // TODO\n",
        ),
        ("crates/informer/src/queue.rs", "use crate::object;\n"),
        (
            "crates/informer/src/queue/utils.rs",
            &format!("//! Long.\n{}", "\n".repeat(500)),
        ),
        ("xtask/src/tidy/phrases.rs", "//! For whoever reads.\n"),
    ]);
    let rules: Vec<_> = check_tree(&tree)
        .iter()
        .map(|finding| (finding.path.clone(), finding.rule))
        .collect();
    let object = "crates/informer/src/object.rs";
    let expected = [
        ("ARCHITECTURE.md", "dead-link"),
        ("ARCHITECTURE.md", "dead-path"),
        ("ARCHITECTURE.md", "narration"),
        ("crates/informer/Cargo.toml", "dev-version"),
        (object, "import-circle"),
        (object, "import-order"),
        (object, "biased-select"),
        (object, "foreign-type"),
        (object, "unfinished"),
        ("crates/informer/src/queue.rs", "opening"),
        ("crates/informer/src/queue/utils.rs", "file-name"),
        ("crates/informer/src/queue/utils.rs", "size"),
        ("docs/client-go.md", "dead-test"),
        ("xtask/src/tidy/phrases.rs", "phrase"),
    ];
    assert_eq!(rules, expected.map(|(path, rule)| (path.to_owned(), rule)));
}
