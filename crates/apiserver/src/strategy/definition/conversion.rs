//! Checks the conversion of a definition.
//!
//! Guarantees: the errors and their order are those of `validateCustomResourceConversion` in Kubernetes.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::ca_bundle;
use super::member::Form;
use super::requirement::{Requirement, Requirements};
use super::shown::{JsonText, Shown};
use super::url::Url;
use crate::name_syntax::{NameRule, dns_1035_faults};
use crate::quote::{Quoted, quoted_bytes};
use crate::strategy::report::{Path, Report};

/// The versions of `ConversionReview` that an API server sends.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

const STRATEGIES: [&str; 2] = ["None", "Webhook"];

/// The member `conversion` of a definition.
#[derive(Clone, Copy)]
pub(super) struct Conversion<'a>(&'a Value);

impl<'a> Conversion<'a> {
    /// Returns the conversion in the `spec` of a definition, if there is one.
    pub(super) fn of(spec: &'a Value) -> Option<Conversion<'a>> {
        let conversion = spec.get("conversion").filter(|value| value.is_object());
        conversion.map(Conversion)
    }

    pub(super) fn strategy(self) -> &'a str {
        self.0["strategy"].as_str().unwrap_or_default()
    }

    pub(super) fn review_versions(self) -> &'a [Value] {
        let versions = self.0["webhook"]["conversionReviewVersions"].as_array();
        versions.map_or(&[], Vec::as_slice)
    }

    fn client(self) -> Option<&'a Value> {
        let client = &self.0["webhook"]["clientConfig"];
        client.is_object().then_some(client)
    }

    /// Returns the decoded CA bundle, if there is one that is not empty.
    pub(super) fn ca_bundle(self) -> Option<Vec<u8>> {
        let bundle = ca_bundle::decode(self.client()?["caBundle"].as_str()?.as_bytes())?;
        (!bundle.is_empty()).then_some(bundle)
    }
}

/// Returns whether a server that knows [`REVIEW_VERSIONS`] can call a webhook with these versions.
///
/// A webhook without versions is not called.
pub(super) fn has_accepted_version(versions: &[Value]) -> bool {
    let mut texts = versions.iter().map(Value::as_str);
    let is_accepted =
        |version: Option<&str>| version.is_some_and(|it| REVIEW_VERSIONS.contains(&it));
    versions.is_empty() || texts.any(is_accepted)
}

/// Adds the errors of a conversion.
pub(super) fn check(
    conversion: Conversion<'_>,
    requirements: &Requirements<'_>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let strategy = conversion.strategy();
    match strategy {
        "" => report.required(&path.child("strategy"), ""),
        known if STRATEGIES.contains(&known) => {}
        other => report.unsupported(&path.child("strategy"), Quoted(other), &STRATEGIES),
    }
    let (client_path, versions_path) = (
        path.child("webhookClientConfig"),
        path.child("conversionReviewVersions"),
    );
    let client = conversion.client();
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            report.forbidden(&client_path, why);
        }
        if !conversion.review_versions().is_empty() {
            report.forbidden(&versions_path, why);
        }
        return;
    }
    match client {
        None => report.required(&client_path, "required when strategy is set to Webhook"),
        Some(client) => {
            check_client(client, &client_path, report);
            let bundle = conversion.ca_bundle();
            if let Some(bundle) = bundle.filter(|_| requirements.include(Requirement::CaBundle))
                && let Some(why) = ca_bundle::fault(&bundle)
            {
                let value = STANDARD.encode(&bundle);
                report.invalid(&client_path.child("caBundle"), JsonText(&value), why);
            }
        }
    }
    let versions = conversion.review_versions();
    check_versions(versions, &versions_path, report);
    let is_known = versions.is_empty() || has_accepted_version(versions);
    if requirements.include(Requirement::ReviewVersion) && !is_known {
        let value = Shown {
            value: Some(&conversion.0["webhook"]["conversionReviewVersions"]),
            form: Form::Texts,
        };
        let why = "must include at least one of v1, v1beta1";
        report.invalid(&versions_path, value, why);
    }
}

fn check_versions(versions: &[Value], path: &Path<'_>, report: &mut Report) {
    if versions.is_empty() {
        report.required(path, "");
    }
    let mut seen = BTreeSet::new();
    for (at, version) in versions.iter().enumerate() {
        let version = version.as_str().unwrap_or_default();
        let path = path.index(at);
        if !seen.insert(version) {
            report.invalid(&path, Quoted(version), "duplicate version");
            continue;
        }
        for fault in dns_1035_faults(version) {
            report.invalid(&path, Quoted(version), fault);
        }
    }
}

/// Checks the address of a webhook.
fn check_client(client: &Value, path: &Path<'_>, report: &mut Report) {
    let service = client.get("service").filter(|value| value.is_object());
    match (client["url"].as_str(), service) {
        (Some(url), None) => check_url(url, &path.child("url"), report),
        (None, Some(service)) => check_service(service, &path.child("service"), report),
        _ => report.required(path, "exactly one of url or service is required"),
    }
}

/// Follows `ValidateWebhookURL` in Kubernetes.
fn check_url(text: &str, path: &Path<'_>, report: &mut Report) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(why) => {
            let why = format_args!("url must be a valid URL: {why}{FORM}");
            report.required(path, why);
            return;
        }
    };
    if url.scheme != "https" {
        let why = format_args!("'https' is the only allowed URL scheme{FORM}");
        report.invalid(path, Quoted(&url.scheme), why);
    }
    if url.host.is_empty() {
        let why = format_args!("host must be specified{FORM}");
        report.invalid(path, Quoted(""), why);
    }
    if let Some(user) = &url.user {
        let why = "user information is not permitted in the URL";
        report.invalid(path, Quoted(user), why);
    }
    if !url.fragment.is_empty() {
        let why = "fragments are not permitted in the URL";
        report.invalid(path, quoted_bytes(&url.fragment), why);
    }
    if !url.query.is_empty() {
        let why = "query parameters are not permitted in the URL";
        report.invalid(path, Quoted(&url.query), why);
    }
}

/// Follows `ValidateWebhookService` in Kubernetes.
fn check_service(service: &Value, path: &Path<'_>, report: &mut Report) {
    let text = |member: &str| service[member].as_str().unwrap_or_default();
    // As in Kubernetes, which confuses the two.
    for (member, shown) in [("namespace", "name"), ("name", "namespace")] {
        if text(member).is_empty() {
            report.required(&path.child(shown), "");
        }
    }
    let port = service["port"].as_i64().unwrap_or(0);
    if !(1..=65_535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        report.invalid(&path.child("port"), port, why);
    }
    let path = path.child("path");
    let found = text("path");
    if matches!(found, "" | "/") {
        return;
    }
    if found == "//" {
        report.invalid(&path, Quoted(found), "segment[0] may not be empty");
        return;
    }
    if !found.starts_with('/') {
        report.invalid(&path, Quoted(found), "must start with a '/'");
    }
    // As in Kubernetes, the first byte is skipped even if it is no slash.
    let steps = found.get(1..).unwrap_or(found);
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (at, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            let why = format_args!("segment[{at}] may not be empty");
            report.invalid(&path, Quoted(found), why);
            continue;
        }
        for fault in NameRule::Subdomain.faults(step) {
            let why = format_args!("segment[{at}]: {fault}");
            report.invalid(&path, Quoted(found), why);
        }
    }
}
