//! Tests of the rule `foreign-type`: the signatures that the rule checks, and the names that it reports.

use super::*;

const MANIFEST: &str = "[package]\nname = \"kube-informer\"\n[dependencies]\narc-swap.workspace = true\n\
    http = { workspace = true, optional = true }\nkube-core.workspace = true\nserde_json = \"1\"\ntokio = \"1\"\nserde = \"1\"\n\
    [dev-dependencies]\nanyhow = \"1\"\n";

/// Checks the Rust code `text`, and returns each finding as `LINE NAME`.
fn found(text: &str) -> Vec<String> {
    let findings = check(&Source::new("src/a.rs", text), &foreign(MANIFEST));
    findings
        .iter()
        .map(|finding| {
            format!(
                "{} {}",
                finding.line,
                finding.advice.split('`').nth(1).unwrap()
            )
        })
        .collect()
}

#[test]
fn the_manifest_determines_the_foreign_crates() {
    let foreign: Vec<_> = foreign(MANIFEST).into_iter().collect();
    assert_eq!(foreign, ["arc_swap", "http", "serde_json", "tokio"]);
}

#[test]
fn a_public_function_may_not_name_a_foreign_crate() {
    let text = "pub fn a(b: tokio::sync::Notify) {}\npub async fn c<T>(d: T) -> Result<T, serde_json::Error>\nwhere T: kube_core::Resource {}";
    assert_eq!(found(text), ["1 tokio", "2 serde_json"]);
}

#[test]
fn names_imported_from_a_foreign_crate_are_reported() {
    let text = "use tokio::{sync::{mpsc, watch::{self, Ref as R}}, task::JoinSet as _};\n\
                pub fn a(b: mpsc::Sender<u8>, c: R, d: watch::Sender<u8>) {}\n\
                pub fn e(f: JoinSet) {}";
    assert_eq!(found(text), ["2 mpsc", "2 R", "2 watch"]);
}

#[test]
fn bodies_private_items_and_tests_are_not_checked() {
    let text = "use tokio::sync::mpsc;\npub fn a() { let b: mpsc::Sender<u8>; }\nfn c(d: mpsc::Sender<u8>) {}\n\
                pub(crate) fn e(f: mpsc::Sender<u8>) {}\npub struct G { h: mpsc::Sender<u8> }\n\
                #[cfg(test)]\nmod tests { pub fn i(j: tokio::X) {} }";
    assert_eq!(found(text), [""; 0]);
}

#[test]
fn public_fields_are_checked() {
    let text = "pub struct A<T: Fn(u8) -> u8> {\n pub b: BTreeMap<T, serde_json::Value>,\n c: tokio::X,\n}\npub struct D(pub http::Uri, tokio::X);";
    assert_eq!(found(text), ["2 serde_json", "5 http"]);
}

#[test]
fn variants_of_enums_and_items_of_traits_are_checked() {
    let text = "pub enum A {\n B(#[serde_json::from] u8),\n C { d: http::Uri },\n}\n\
                pub trait E {\n type F: tokio::G;\n fn h(&self) -> http::I { const J: tokio::K = 1; }\n}";
    assert_eq!(found(text), ["3 http", "6 tokio", "7 http"]);
}

#[test]
fn re_exports_aliases_and_constants_are_checked() {
    let text = "use http::Uri;\npub use tokio::sync;\npub use serde_json;\npub type A = Uri;\npub const B: Option<Uri> = None;";
    assert_eq!(found(text), ["2 tokio", "3 serde_json", "4 Uri", "5 Uri"]);
}

#[test]
fn a_conversion_from_a_foreign_error_is_reported_unless_the_type_is_private() {
    let text = "pub struct A;\nstruct B;\nimpl From<serde_json::Error> for A {}\nimpl From<serde_json::Error> for B {}\n\
                impl Iterator for A { type Item = http::Uri; }";
    assert_eq!(found(text), ["3 serde_json"]);
}

#[test]
fn a_parameter_may_have_the_name_of_an_imported_module() {
    let text =
        "use tokio::time;\npub fn a(time: u8) -> u8 { time }\npub fn b(c: crate::time::D) {}";
    assert_eq!(found(text), [""; 0]);
}
