//! Validates events, which two groups of the API have with different names of fields.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation/events.go` in Kubernetes. Their fields
//! have the names of the core group.

use std::borrow::Cow;

use serde_json::Value;

use super::Hooks;
use super::field::{Field, IMMUTABLE};
use super::report::{Path, Report};
use crate::go_json::to_text;
use crate::name_syntax::{NameRule, key_faults};
use crate::object::Object;
use crate::quote::Quoted;

pub(super) const CORE: Hooks =
    Hooks::checked_by(|event, _, report| check_reference(&Event::of(event, &CORE_FIELDS), report));
pub(super) const HOOKS: Hooks = Hooks::checked_by(|event, old, report| {
    let old = old.map(|old| Event::of(old, &FIELDS));
    check(&Event::of(event, &FIELDS), old.as_ref(), report);
});

/// Maximum length in bytes of the reporting instance, the action and the reason.
const TEXT_MAX: usize = 128;
/// Maximum length in bytes of the message (`NoteLengthLimit`).
const MESSAGE_MAX: usize = 1024;

/// The names of fields that differ between the two groups.
struct Names {
    object: &'static str,
    message: &'static str,
    controller: &'static str,
    source: &'static str,
    first_time: &'static str,
    last_time: &'static str,
    count: &'static str,
}

const CORE_FIELDS: Names = Names {
    object: "involvedObject",
    message: "message",
    controller: "reportingComponent",
    source: "source",
    first_time: "firstTimestamp",
    last_time: "lastTimestamp",
    count: "count",
};

const FIELDS: Names = Names {
    object: "regarding",
    message: "note",
    controller: "reportingController",
    source: "deprecatedSource",
    first_time: "deprecatedFirstTimestamp",
    last_time: "deprecatedLastTimestamp",
    count: "deprecatedCount",
};

/// An event, with the names of its fields.
struct Event<'a> {
    object: &'a Object,
    names: &'static Names,
}

/// Kubernetes' internal type of a field, as errors show it.
#[derive(Clone, Copy)]
enum Shown {
    Plain,
    Count,
    Source,
    Reference,
}

// === impl Event ===

impl<'a> Event<'a> {
    fn of(object: &'a Object, names: &'static Names) -> Event<'a> {
        Event { object, names }
    }

    /// Returns a field, with its path in the core group.
    fn at(&self, name: &'static str, path: &'static str) -> Field<'static, 'a> {
        Field {
            path: Path::root(path),
            value: self.object.get(name).unwrap_or(&Value::Null),
        }
    }

    /// Returns the fields that can't change before the time, in Kubernetes' order.
    fn before_time(&self) -> [(Field<'static, 'a>, Shown); 9] {
        let names = self.names;
        [
            (self.at(names.object, "involvedObject"), Shown::Reference),
            (self.at("reason", "reason"), Shown::Plain),
            (self.at(names.message, "message"), Shown::Plain),
            (self.at(names.source, "source"), Shown::Source),
            (self.at(names.first_time, "firstTimestamp"), Shown::Plain),
            (self.at(names.last_time, "lastTimestamp"), Shown::Plain),
            (self.at(names.count, "count"), Shown::Count),
            (self.at("reason", "reason"), Shown::Plain),
            (self.at("type", "type"), Shown::Plain),
        ]
    }

    fn after_time(&self) -> [(Field<'static, 'a>, Shown); 5] {
        let controller = self.at(self.names.controller, "reportingController");
        [
            (self.at("eventTime", "eventTime"), Shown::Plain),
            (self.at("action", "action"), Shown::Plain),
            (self.at("related", "related"), Shown::Reference),
            (controller, Shown::Plain),
            (
                self.at("reportingInstance", "reportingInstance"),
                Shown::Plain,
            ),
        ]
    }
}

/// Checks an event of the group `events.k8s.io` (`ValidateEventCreate` and `ValidateEventUpdate`).
fn check(event: &Event<'_>, old: Option<&Event<'_>>, report: &mut Report) {
    check_reference(event, report);
    let series = event.at("series", "series");
    let Some(old) = old else {
        check_series(&series, report);
        return check_new(event, report);
    };
    if series.value != old.at("series", "series").value {
        check_series(&series, report);
    }
    for (new, old) in event.before_time().into_iter().zip(old.before_time()) {
        check_unchanged(new, &old.0, report);
    }
    for (new, old) in event.after_time().into_iter().zip(old.after_time()) {
        check_unchanged(new, &old.0, report);
    }
}

fn check_new(event: &Event<'_>, report: &mut Report) {
    let names = event.names;
    let time = event.at("eventTime", "eventTime");
    if !time.exists() {
        time.required(report);
    }
    let kind = event.at("type", "type");
    if !["Normal", "Warning"].contains(&kind.text()) {
        invalid(
            &kind,
            report,
            &format!("has invalid value: {}", kind.text()),
        );
    }
    let first = event.at(names.first_time, "firstTimestamp");
    let last = event.at(names.last_time, "lastTimestamp");
    let (count, source) = (
        event.at(names.count, "count"),
        event.at(names.source, "source"),
    );
    for (field, is_set) in [
        (&first, first.exists()),
        (&last, last.exists()),
        (&count, count.number() != 0),
        (&source, !source.is_empty()),
    ] {
        if is_set {
            invalid(field, report, "needs to be unset");
        }
    }
}

fn check_series(series: &Field<'_, '_>, report: &mut Report) {
    if !series.exists() {
        return;
    }
    let (count, time) = (series.at("count"), series.at("lastObservedTime"));
    if count.number() < 2 {
        invalid(&count, report, "should be at least 2");
    }
    if !time.exists() {
        time.required(report);
    }
}

/// Checks the namespace of the object, and what an event with a time needs (`legacyValidateEvent`).
fn check_reference(event: &Event<'_>, report: &mut Report) {
    let object = event.at(event.names.object, "involvedObject");
    let of_object = object.at("namespace");
    let namespace = event.object.text("namespace");
    let has_time = event.at("eventTime", "eventTime").exists();
    let is_right = match (of_object.text(), has_time) {
        ("", false) => matches!(namespace, "" | "default"),
        ("", true) => matches!(namespace, "default" | "kube-system"),
        (of_object, false) => of_object == namespace,
        (_, true) => true,
    };
    if !is_right {
        let why = "does not match event.namespace";
        report.invalid(&of_object.path, Quoted(of_object.text()), why);
    }
    if has_time {
        check_texts(event, report);
    }
    for fault in NameRule::Subdomain.faults(namespace) {
        report.invalid(&Path::root("namespace"), Quoted(namespace), fault);
    }
}

fn check_texts(event: &Event<'_>, report: &mut Report) {
    let controller = event.at(event.names.controller, event.names.controller);
    if controller.is_empty() {
        controller.required(report);
    }
    for fault in key_faults(controller.text()) {
        report.invalid(&controller.path, Quoted(controller.text()), fault);
    }
    for name in ["reportingInstance", "action", "reason"] {
        let field = event.at(name, name);
        if field.is_empty() {
            field.required(report);
        }
        check_length(&field, TEXT_MAX, report);
    }
    check_length(
        &event.at(event.names.message, "message"),
        MESSAGE_MAX,
        report,
    );
}

fn check_length(field: &Field<'_, '_>, max: usize, report: &mut Report) {
    if field.text().len() > max {
        invalid(field, report, &format!("can have at most {max} characters"));
    }
}

/// Adds an error without the value, as Kubernetes does for events.
fn invalid(field: &Field<'_, '_>, report: &mut Report, why: &str) {
    report.invalid(&field.path, "\"\"", why);
}

fn check_unchanged(
    (field, shown): (Field<'_, '_>, Shown),
    old: &Field<'_, '_>,
    report: &mut Report,
) {
    let is_unset = |field: &Field<'_, '_>| field.is_empty() || field.value == 0;
    if field.value == old.value || is_unset(&field) && is_unset(old) {
        return;
    }
    let text = |name: &str| Quoted(field.at(name).text()).to_string();
    let shown: Cow<'_, str> = match shown {
        Shown::Plain => field.shown().into(),
        Shown::Count => field.number().to_string().into(),
        Shown::Source => {
            let [component, host] = ["component", "host"].map(text);
            format!("{{\"Component\":{component},\"Host\":{host}}}").into()
        }
        Shown::Reference if !field.exists() => "null".into(),
        Shown::Reference => reference(field.value).into(),
    };
    report.invalid(&field.path, shown, IMMUTABLE);
}

/// Returns a reference as Kubernetes' internal type.
fn reference(reference: &Value) -> String {
    let text = |name: &str| to_text(reference.get(name).unwrap_or(&Value::from("")));
    let [kind, namespace, name, uid, version, revision, path] = [
        "kind",
        "namespace",
        "name",
        "uid",
        "apiVersion",
        "resourceVersion",
        "fieldPath",
    ]
    .map(text);
    format!(
        "{{\"Kind\":{kind},\"Namespace\":{namespace},\"Name\":{name},\"UID\":{uid},\"APIVersion\":{version},\"ResourceVersion\":{revision},\"FieldPath\":{path}}}"
    )
}
