//! Validates flow schemas and priority levels.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/flowcontrol/validation` in Kubernetes.

use serde_json::Value;

use super::Hooks;
use super::field::Field;
use super::report::Report;
use crate::go_json::to_text;
use crate::name_syntax::{NameRule, label_faults};
use crate::object::Object;
use crate::quote::Quoted;

pub(super) const FLOW_SCHEMA: Hooks = Hooks::checked_by(check_schema);
pub(super) const PRIORITY_LEVEL: Hooks = Hooks::checked_by(check_level);

const EXEMPT: &str = "exempt";
const CATCH_ALL: &str = "catch-all";

/// The flow schemas that each cluster has, with their specs.
pub(crate) const MANDATORY_SCHEMAS: [(&str, &str); 2] = [
    (
        EXEMPT,
        r#"{"priorityLevelConfiguration":{"name":"exempt"},"matchingPrecedence":1,"rules":[{"subjects":[{"kind":"Group","group":{"name":"system:masters"}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]}"#,
    ),
    (
        CATCH_ALL,
        r#"{"priorityLevelConfiguration":{"name":"catch-all"},"matchingPrecedence":10000,"distinguisherMethod":{"type":"ByUser"},"rules":[{"subjects":[{"kind":"Group","group":{"name":"system:unauthenticated"}},{"kind":"Group","group":{"name":"system:authenticated"}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]}"#,
    ),
];

/// The priority levels that each cluster has, with their specs.
pub(crate) const MANDATORY_LEVELS: [(&str, &str); 2] = [
    (
        EXEMPT,
        r#"{"type":"Exempt","exempt":{"nominalConcurrencyShares":0,"lendablePercent":0}}"#,
    ),
    (
        CATCH_ALL,
        r#"{"type":"Limited","limited":{"nominalConcurrencyShares":5,"limitResponse":{"type":"Reject"},"lendablePercent":0}}"#,
    ),
];

/// Maximum of `matchingPrecedence` (`FlowSchemaMaxMatchingPrecedence`).
const PRECEDENCE_MAX: i64 = 10_000;
/// Maximum number of queues (`priorityLevelConfigurationQueuingMaxQueues`).
const QUEUES_MAX: i64 = 10_000_000;
/// Number of bits of a hash from which a hand of queues is dealt (`MaxHashBits`).
const HASH_BITS: f64 = 60.0;

const VERBS: [&str; 9] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

/// The kinds of subjects, and the members that describe them.
const SUBJECTS: [(&str, &str); 3] = [
    ("ServiceAccount", "serviceAccount"),
    ("User", "user"),
    ("Group", "group"),
];

fn fixed_spec(known: &[(&str, &str)], name: &str) -> Option<Value> {
    let (_, spec) = known.iter().find(|(known, _)| *known == name)?;
    Some(serde_json::from_str(spec).expect("the fixed specs are JSON"))
}

fn check_schema(schema: &Object, _old: Option<&Object>, report: &mut Report) {
    let (name, spec) = (schema.text("name"), Field::of(schema, "spec"));
    check_precedence(&spec.at("matchingPrecedence"), name, report);
    let method = spec.at("distinguisherMethod");
    let kind = method.at("type");
    let methods = ["ByNamespace", "ByUser"];
    if method.exists() && !methods.contains(&kind.text()) {
        let shown = format!("{{\"Type\":{}}}", kind.shown());
        report.unsupported(&kind.path, shown, &methods);
    }
    let level = spec.at("priorityLevelConfiguration");
    let level = level.at("name");
    if level.is_empty() {
        report.required(&level.path, "must reference a priority level");
    } else {
        level.check_text(report, |name| NameRule::Subdomain.faults(name));
    }
    for rule in spec.at("rules").items() {
        check_rule(&rule, report);
    }
    let fixed = fixed_spec(&MANDATORY_SCHEMAS, name);
    if fixed.is_some_and(|fixed| fixed != *spec.value) {
        let why = format!("spec of '{name}' must equal the fixed value");
        report.invalid(&spec.path, spec.shown(), why);
    }
}

fn check_precedence(precedence: &Field<'_, '_>, name: &str, report: &mut Report) {
    let number = precedence.number();
    if number <= 0 {
        precedence.invalid(report, "must be a positive value");
    }
    if number > PRECEDENCE_MAX {
        let why = format!("must not be greater than {PRECEDENCE_MAX}");
        precedence.invalid(report, why);
    }
    if number == 1 && name != EXEMPT {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        precedence.invalid(report, why);
    }
}

fn check_rule(rule: &Field<'_, '_>, report: &mut Report) {
    let subjects = rule.at("subjects");
    if subjects.is_empty() {
        report.required(&subjects.path, "subjects must contain at least one value");
    }
    for subject in subjects.items() {
        check_subject(&subject, report);
    }
    let (resources, urls) = (rule.at("resourceRules"), rule.at("nonResourceRules"));
    if resources.is_empty() && urls.is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        report.required(&rule.path, why);
    }
    for rule in resources.items() {
        check_resources(&rule, report);
    }
    for rule in urls.items() {
        check_urls(&rule, report);
    }
}

fn check_subject(subject: &Field<'_, '_>, report: &mut Report) {
    let kind = subject.at("kind");
    let known = SUBJECTS.iter().find(|(known, _)| kind.is(known));
    let Some((_, member)) = known else {
        return kind.unsupported(report, &["Group", "ServiceAccount", "User"]);
    };
    let chosen = subject.at(member);
    let name = chosen.at("name");
    if !chosen.exists() {
        let why = format!(
            "{member} is required when subject kind is '{}'",
            kind.text()
        );
        report.required(&chosen.path, why);
    } else if name.is_empty() {
        name.required(report);
    } else if *member == "serviceAccount" && !name.is("*") {
        name.check_text(report, |name| NameRule::Subdomain.faults(name));
    }
    if chosen.exists() && *member == "serviceAccount" {
        let namespace = chosen.at("namespace");
        if namespace.is_empty() {
            let why = "must specify namespace for service account";
            report.required(&namespace.path, why);
        } else {
            namespace.check_text(report, label_faults);
        }
    }
    for (other_kind, other) in SUBJECTS.iter().filter(|(_, other)| other != member) {
        let field = subject.at(other);
        if field.exists() {
            let why = format!("{other} is forbidden when subject kind is not '{other_kind}'");
            field.forbidden(report, why);
        }
    }
}

fn has_wildcard(list: &Field<'_, '_>) -> bool {
    list.items().any(|item| item.is("*"))
}

/// Checks that a list with `*` has no other items, and returns whether it has `*`.
fn check_wildcard(list: &Field<'_, '_>, what: &str, report: &mut Report) -> bool {
    let has_wildcard = has_wildcard(list);
    if has_wildcard && list.items().count() > 1 {
        let why = format!("if '*' is present, must not specify other {what}");
        list.invalid(report, why);
    }
    has_wildcard
}

fn check_verbs(verbs: &Field<'_, '_>, report: &mut Report) {
    if verbs.is_empty() {
        report.required(&verbs.path, "verbs must contain at least one value");
    } else if !check_wildcard(verbs, "verbs", report)
        && verbs.items().any(|verb| !VERBS.contains(&verb.text()))
    {
        report.unsupported(&verbs.path, verbs.shown(), &VERBS);
    }
}

fn check_resources(rule: &Field<'_, '_>, report: &mut Report) {
    check_verbs(&rule.at("verbs"), report);
    for (member, one, several) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let list = rule.at(member);
        if list.is_empty() {
            let why = format!("resource rules must supply at least one {one}");
            report.required(&list.path, why);
        }
        check_wildcard(&list, several, report);
    }
    let namespaces = rule.at("namespaces");
    let is_cluster_wide = rule.value["clusterScope"] == true;
    if namespaces.is_empty() && !is_cluster_wide {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        report.required(&namespaces.path, why);
    } else if !check_wildcard(&namespaces, "namespaces", report) {
        for namespace in namespaces.items() {
            for fault in label_faults(namespace.text()) {
                let why = "each member of this list must be '*' or a DNS-1123 label; ";
                namespace.invalid(report, format!("{why}{fault}"));
            }
        }
    }
}

fn check_urls(rule: &Field<'_, '_>, report: &mut Report) {
    check_verbs(&rule.at("verbs"), report);
    let urls = rule.at("nonResourceURLs");
    if urls.is_empty() {
        let why = "nonResourceURLs must contain at least one value";
        report.required(&urls.path, why);
    } else if !check_wildcard(&urls, "non-resource URLs", report) {
        for url in urls.items() {
            if let Some(why) = url_fault(url.text()) {
                url.invalid(report, why);
            }
        }
    }
}

fn url_fault(url: &str) -> Option<&'static str> {
    let wildcards = url.bytes().filter(|byte| *byte == b'*').count();
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if wildcards > 1 || wildcards == 1 && !url.ends_with("/*") => {
            Some("wildcard can only do suffix matching")
        }
        _ => None,
    }
}

fn check_level(level: &Object, _old: Option<&Object>, report: &mut Report) {
    let (name, spec) = (level.text("name"), Field::of(level, "spec"));
    let kind = spec.at("type");
    if (name == EXEMPT) != kind.is("Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        kind.invalid(report, why);
    }
    let (limited, exempt) = (spec.at("limited"), spec.at("exempt"));
    match kind.text() {
        "Exempt" => {
            if limited.exists() {
                limited.forbidden(report, "must be nil if the type is not Limited");
            }
            check_shares(&exempt, report);
            check_lendable(&exempt, report);
        }
        "Limited" => {
            if exempt.exists() {
                exempt.forbidden(report, "must be nil if the type is Limited");
            }
            if limited.exists() {
                check_limited(&limited, report);
            } else {
                let why = "must not be empty when type is Limited";
                report.required(&limited.path, why);
            }
        }
        _ => kind.check_required_one_of(report, &["Exempt", "Limited"]),
    }
    let Some(fixed) = fixed_spec(&MANDATORY_LEVELS, name) else {
        return;
    };
    let has = |spec: &Value, member: &str| spec.get(member).cloned().unwrap_or_default();
    let is_fixed = |member: &str| has(&fixed, member) == has(spec.value, member);
    let is_equal = is_fixed("type") && is_fixed("limited");
    if !is_equal || name != EXEMPT && !is_fixed("exempt") {
        let part = if name == EXEMPT {
            " except the 'spec.exempt' field"
        } else {
            ""
        };
        let why = format!("spec of '{name}'{part} must equal the fixed value");
        report.invalid(&spec.path, shown_level(&spec), why);
    }
}

fn check_shares(part: &Field<'_, '_>, report: &mut Report) {
    let shares = part.at("nominalConcurrencyShares");
    if shares.number() < 0 {
        shares.invalid(report, "must be a non-negative integer");
    }
}

fn check_lendable(part: &Field<'_, '_>, report: &mut Report) {
    let percent = part.at("lendablePercent");
    if !(0..=100).contains(&percent.number()) {
        percent.invalid(report, "must be between 0 and 100, inclusive");
    }
}

fn check_limited(limited: &Field<'_, '_>, report: &mut Report) {
    check_shares(limited, report);
    let response = limited.at("limitResponse");
    let (kind, queuing) = (response.at("type"), response.at("queuing"));
    match (kind.text(), queuing.exists()) {
        ("Reject", true) => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            queuing.forbidden(report, why);
        }
        ("Queue", true) => check_queuing(&queuing, report),
        ("Queue", false) => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            report.required(&queuing.path, why);
        }
        _ => kind.check_required_one_of(report, &["Queue", "Reject"]),
    }
    check_lendable(limited, report);
    let percent = limited.at("borrowingLimitPercent");
    if percent.number() < 0 {
        percent.invalid(report, "if specified, must be a non-negative integer");
    }
}

fn check_queuing(queuing: &Field<'_, '_>, report: &mut Report) {
    let [limit, queues, hand] =
        ["queueLengthLimit", "queues", "handSize"].map(|name| queuing.at(name));
    for field in [&limit, &queues] {
        if field.number() <= 0 {
            field.invalid(report, "must be positive");
        }
    }
    if queues.number() > QUEUES_MAX {
        queues.invalid(report, format!("must not be greater than {QUEUES_MAX}"));
    }
    let (all, dealt) = (queues.number(), hand.number());
    if dealt <= 0 {
        hand.invalid(report, "must be positive");
    } else if dealt > all {
        hand.invalid(report, format!("should not be greater than queues ({all})"));
    } else if entropy(all, dealt) > HASH_BITS {
        let why = format!(
            "required entropy bits of deckSize {all} and handSize {dealt} should not be greater than {HASH_BITS}"
        );
        hand.invalid(report, why);
    }
}

/// Returns the number of bits that choose a hand of queues.
#[expect(clippy::cast_precision_loss, reason = "the numbers have 32 bits")]
fn entropy(queues: i64, hand: i64) -> f64 {
    ((queues as f64).log2() * hand as f64).ceil()
}

/// Returns the spec of a priority level as Kubernetes' internal type.
fn shown_level(spec: &Field<'_, '_>) -> String {
    let (limited, exempt) = (spec.at("limited"), spec.at("exempt"));
    let json = |field: &Field<'_, '_>, name: &str| to_text(&field.value[name]);
    let shown_limited = if limited.exists() {
        let response = limited.at("limitResponse");
        let queuing = response.at("queuing");
        let shown_queuing = if queuing.exists() {
            let [queues, hand, limit] =
                ["queues", "handSize", "queueLengthLimit"].map(|name| json(&queuing, name));
            format!("{{\"Queues\":{queues},\"HandSize\":{hand},\"QueueLengthLimit\":{limit}}}")
        } else {
            "null".to_owned()
        };
        let kind = Quoted(response.at("type").text()).to_string();
        let [shares, lendable, borrowing] = [
            "nominalConcurrencyShares",
            "lendablePercent",
            "borrowingLimitPercent",
        ]
        .map(|name| json(&limited, name));
        format!(
            "{{\"NominalConcurrencyShares\":{shares},\"LimitResponse\":{{\"Type\":{kind},\"Queuing\":{shown_queuing}}},\"LendablePercent\":{lendable},\"BorrowingLimitPercent\":{borrowing}}}"
        )
    } else {
        "null".to_owned()
    };
    let shown_exempt = if exempt.exists() {
        let [shares, lendable] =
            ["nominalConcurrencyShares", "lendablePercent"].map(|name| json(&exempt, name));
        format!("{{\"NominalConcurrencyShares\":{shares},\"LendablePercent\":{lendable}}}")
    } else {
        "null".to_owned()
    };
    let kind = Quoted(spec.at("type").text()).to_string();
    format!("{{\"Type\":{kind},\"Limited\":{shown_limited},\"Exempt\":{shown_exempt}}}")
}
