//! Converts autoscalers between `autoscaling/v1` and `v2`.
//!
//! Version 1 has only a target for the CPU. Other metrics, the behavior and the conditions are JSON in annotations, with
//! the fields of version 1 as Go writes them. An annotation that is malformed is ignored.

mod text;

use serde_json::{Map, Value, json};

use self::text::to_text;
use super::{Members, Rules};
use crate::quantity::Quantity;
use crate::typed::{self, ValueType};

pub(super) const RULES: Rules = Rules {
    shown: ("autoscaling/v1", "HorizontalPodAutoscaler"),
    stored: "autoscaling/v2",
    store: to_v2,
    show: to_v1,
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The annotations that no version returns unless the conversion has set them.
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// The members of a metric that contain its source.
const SOURCES: [&str; 5] = [
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
];

/// The fields of the internal type of the behavior, which its annotation contains, and their names in version 2.
const BEHAVIOR_FIELDS: [(&str, &str); 9] = [
    ("ScaleUp", "scaleUp"),
    ("ScaleDown", "scaleDown"),
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
    ("Type", "type"),
    ("Value", "value"),
    ("PeriodSeconds", "periodSeconds"),
];

/// The part of an autoscaler that has metrics.
#[derive(Clone, Copy, PartialEq)]
enum Metrics {
    /// The targets in `spec`.
    Target,
    /// The measured values in `status`.
    Current,
}

impl Metrics {
    /// The member of a source in version 2, and the start of the names of the values in version 1.
    fn name(self) -> &'static str {
        match self {
            Metrics::Target => "target",
            Metrics::Current => "current",
        }
    }
}

/// Returns whether an autoscaler has the form of version 2, which always has metrics.
#[cfg(feature = "persistence")]
pub(super) fn is_stored_form(object: &Members) -> bool {
    let metrics = object.get("spec").and_then(|spec| spec.get("metrics"));
    metrics.is_some_and(|metrics| !metrics.is_null())
}

// === from version 1 to version 2 ===

fn to_v2(object: &mut Members) {
    let annotations = take_annotations(object);
    let read = |name| -> Option<Value> {
        let text = annotations.get(name)?.as_str()?;
        serde_json::from_str(text).ok()
    };
    if let Some(spec) = part(object, "spec") {
        let others = read(METRICS).and_then(|metrics| metrics_to_v2(Metrics::Target, metrics));
        let mut metrics = others.unwrap_or_default();
        if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
            let target = json!({"type": "Utilization", "averageUtilization": percent});
            metrics.push(cpu(Metrics::Target, &target));
        }
        if !metrics.is_empty() {
            spec.insert("metrics".to_owned(), Value::Array(metrics));
        }
        if let Some(behavior) = read(BEHAVIOR).and_then(behavior_to_v2) {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = part(object, "status") {
        let cpu_only = status
            .remove("currentCPUUtilizationPercentage")
            .map(|percent| {
                let current = json!({"averageUtilization": percent});
                vec![cpu(Metrics::Current, &current)]
            });
        let metrics = read(CURRENT_METRICS).and_then(|all| metrics_to_v2(Metrics::Current, all));
        if let Some(metrics) = metrics.or(cpu_only) {
            status.insert("currentMetrics".to_owned(), Value::Array(metrics));
        }
        let conditions = read(CONDITIONS).and_then(|all| decoded("status", "conditions", &all));
        if let Some(conditions) = conditions {
            status.insert("conditions".to_owned(), conditions);
        }
    }
}

/// Returns the metric of the CPU with a target or a measured value.
fn cpu(metrics: Metrics, value: &Value) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", metrics.name(): value}})
}

/// Returns `spec` or `status`, which is added if it is absent.
fn part<'a>(object: &'a mut Members, name: &str) -> Option<&'a mut Members> {
    let part = object.entry(name).or_insert_with(|| json!({}));
    part.as_object_mut()
}

/// Removes the annotations of the conversion, and returns them.
fn take_annotations(object: &mut Members) -> Members {
    let mut taken = Map::new();
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return taken;
    };
    let Some(Value::Object(all)) = metadata.get_mut("annotations") else {
        return taken;
    };
    let removed = ANNOTATIONS.map(|name| all.remove_entry(name));
    taken.extend(removed.into_iter().flatten());
    if all.is_empty() {
        metadata.remove("annotations");
    }
    taken
}

/// Converts the metrics of an annotation. Returns `None` if Go can't decode them.
fn metrics_to_v2(metrics: Metrics, list: Value) -> Option<Vec<Value>> {
    let items = match list {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        _ => return None,
    };
    let mut converted = Vec::with_capacity(items.len());
    for mut item in items {
        if item.is_null() {
            item = json!({});
        }
        let members = item.as_object_mut()?;
        for name in SOURCES {
            let Some(source) = members.get_mut(name).filter(|source| !source.is_null()) else {
                continue;
            };
            *source = source_to_v2(metrics, name, source.as_object_mut()?);
        }
        converted.push(item);
    }
    let (part, list) = match metrics {
        Metrics::Target => ("spec", "metrics"),
        Metrics::Current => ("status", "currentMetrics"),
    };
    match decoded(part, list, &Value::Array(converted))? {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// Returns a value of version 2 as Go decodes it. Returns `None` if a type is wrong.
fn decoded(part: &str, member: &str, value: &Value) -> Option<Value> {
    let autoscaler = ValueType::named(RULES.stored, RULES.shown.1);
    let mut decoded = typed::decode(json!({part: {member: value}}), autoscaler);
    if decoded.fault.is_some() {
        return None;
    }
    Some(decoded.value[part][member].take())
}

fn source_to_v2(metrics: Metrics, name: &str, source: &mut Members) -> Value {
    let names = Names::of(metrics, name);
    let mut take = |member: &str| source.remove(member).filter(|value| !value.is_null());
    let utilization = take(&names.utilization);
    let value = take(&names.value).or_else(|| names.needs_value.then(zero));
    let average = take(&names.average).or_else(|| names.needs_average.then(zero));
    let mut values = Map::new();
    if metrics == Metrics::Target {
        let (is_average, target) = match name {
            "object" => (average.is_some(), "Value"),
            "external" => (value.is_none(), "Value"),
            "pods" => (true, ""),
            _ => (utilization.is_none(), "Utilization"),
        };
        let target = if is_average { "AverageValue" } else { target };
        values.insert("type".to_owned(), json!(target));
    }
    // Version 1 can't omit this value.
    let is_unset = metrics == Metrics::Target && name == "object" && average.is_some();
    let value = value.filter(|value| !(is_unset && is_zero(value)));
    let all = [
        ("averageUtilization", utilization),
        ("averageValue", average),
        ("value", value),
    ];
    set_all(&mut values, all);
    let described = (name == "object").then(|| take("target").unwrap_or_else(|| json!({})));
    let mut converted = Map::new();
    if Names::has_metric(name) {
        let metric_name = take("metricName").unwrap_or_else(|| json!(""));
        let mut metric = Map::from_iter([("name".to_owned(), metric_name)]);
        set_all(&mut metric, [("selector", take(names.selector))]);
        converted.insert("metric".to_owned(), Value::Object(metric));
    }
    let own = ["name", "container"].map(|member| (member, take(member)));
    set_all(&mut converted, own);
    set_all(&mut converted, [("describedObject", described)]);
    converted.insert(metrics.name().to_owned(), Value::Object(values));
    Value::Object(converted)
}

/// Converts the behavior of an annotation, in which names are as in Go and upper and lower case are equal.
///
/// Returns `None` if Go can't decode it, or if it is empty.
fn behavior_to_v2(mut behavior: Value) -> Option<Value> {
    rename_all(&mut behavior, &|name| {
        let mut fields = BEHAVIOR_FIELDS.iter();
        fields.find_map(|(go, field)| go.eq_ignore_ascii_case(name).then_some(*field))
    });
    let behavior = decoded("spec", "behavior", &behavior)?;
    let rules = behavior.as_object()?;
    let is_set = rules.values().any(|rules| !rules.is_null());
    is_set.then_some(behavior)
}

// === from version 2 to version 1 ===

fn to_v1(object: &mut Members) {
    drop(take_annotations(object));
    let mut annotations = Vec::new();
    if let Some(spec) = part(object, "spec") {
        let metrics = spec.remove("metrics");
        let metrics = metrics.as_ref().and_then(Value::as_array);
        let (cpu, others): (Vec<_>, Vec<_>) = metrics
            .into_iter()
            .flatten()
            .partition(|metric| cpu_utilization(Metrics::Target, metric).is_some());
        if let Some(first) = cpu.first() {
            let percent = cpu_utilization(Metrics::Target, first);
            set_all(spec, [("targetCPUUtilizationPercentage", percent.cloned())]);
        }
        if !others.is_empty() {
            let others = others.into_iter();
            let others = others.map(|metric| metric_to_v1(Metrics::Target, metric));
            annotations.push((METRICS, others.collect()));
        }
        if let Some(mut behavior) = spec.remove("behavior").filter(|it| !it.is_null()) {
            behavior_to_v1(&mut behavior);
            annotations.push((BEHAVIOR, behavior));
        }
    }
    if let Some(status) = part(object, "status") {
        if let Some(Value::Array(metrics)) = status.remove("currentMetrics")
            && !metrics.is_empty()
        {
            let shares = metrics.iter();
            let mut shares = shares.filter_map(|metric| cpu_utilization(Metrics::Current, metric));
            let last = (
                "currentCPUUtilizationPercentage",
                shares.next_back().cloned(),
            );
            set_all(status, [last]);
            let metrics = metrics.iter();
            let metrics = metrics.map(|metric| metric_to_v1(Metrics::Current, metric));
            annotations.push((CURRENT_METRICS, metrics.collect()));
        }
        if let Some(Value::Array(mut conditions)) = status.remove("conditions")
            && !conditions.is_empty()
        {
            for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
                let time = condition.entry("lastTransitionTime");
                time.or_insert(Value::Null);
            }
            annotations.push((CONDITIONS, Value::Array(conditions)));
        }
    }
    if annotations.is_empty() {
        return;
    }
    let metadata = part(object, "metadata");
    if let Some(all) = metadata.and_then(|metadata| part(metadata, "annotations")) {
        let texts = annotations.into_iter();
        all.extend(texts.map(|(name, value)| (name.to_owned(), json!(to_text(&value)))));
    }
}

/// Returns the utilization of the CPU that a metric requires or measures, if any.
fn cpu_utilization(metrics: Metrics, metric: &Value) -> Option<&Value> {
    let resource = &metric["resource"];
    let is_cpu = metric["type"] == "Resource" && resource["name"] == "cpu";
    let share = &resource[metrics.name()]["averageUtilization"];
    Some(share).filter(|share| is_cpu && !share.is_null())
}

fn metric_to_v1(metrics: Metrics, metric: &Value) -> Value {
    let mut metric = metric.clone();
    if let Some(members) = metric.as_object_mut() {
        for name in SOURCES {
            if let Some(source) = members.get_mut(name).filter(|source| !source.is_null()) {
                *source = source_to_v1(metrics, name, source);
            }
        }
    }
    metric
}

fn source_to_v1(metrics: Metrics, name: &str, source: &Value) -> Value {
    let names = Names::of(metrics, name);
    let get = |value: &Value| Some(value.clone()).filter(|value| !value.is_null());
    let values = &source[metrics.name()];
    let utilization = get(&values["averageUtilization"]).filter(|_| !Names::has_metric(name));
    let value = get(&values["value"]).or_else(|| names.needs_value.then(zero));
    let value = value.filter(|_| names.has_value);
    let average = get(&values["averageValue"]).or_else(|| names.needs_average.then(zero));
    let mut converted = Map::new();
    let all = [
        (&*names.utilization, utilization),
        (&*names.value, value),
        (&*names.average, average),
        ("name", get(&source["name"])),
        ("container", get(&source["container"])),
        (names.selector, get(&source["metric"]["selector"])),
        ("target", get(&source["describedObject"])),
    ];
    set_all(&mut converted, all);
    if Names::has_metric(name) {
        let metric_name = get(&source["metric"]["name"]).unwrap_or_else(|| json!(""));
        converted.insert("metricName".to_owned(), metric_name);
    }
    Value::Object(converted)
}

/// Writes the behavior with the names of Go, and every optional field.
fn behavior_to_v1(behavior: &mut Value) {
    let optional = [
        "stabilizationWindowSeconds",
        "selectPolicy",
        "policies",
        "tolerance",
    ];
    let Some(members) = behavior.as_object_mut() else {
        return;
    };
    for name in ["scaleUp", "scaleDown"] {
        let rules = members.entry(name).or_insert(Value::Null);
        if let Some(rules) = rules.as_object_mut() {
            for name in optional {
                rules.entry(name).or_insert(Value::Null);
            }
        }
    }
    rename_all(behavior, &|name| {
        let mut fields = BEHAVIOR_FIELDS.iter();
        fields.find_map(|(go, field)| (*field == name).then_some(*go))
    });
}

// === both directions ===

/// The names of the values of a source in version 1.
struct Names {
    utilization: String,
    value: String,
    average: String,
    selector: &'static str,
    /// Whether the source has a value that is no average.
    has_value: bool,
    /// Whether version 1 can't omit the value.
    needs_value: bool,
    /// Whether version 1 can't omit the average.
    needs_average: bool,
}

impl Names {
    fn of(metrics: Metrics, source: &str) -> Names {
        let is_current = metrics == Metrics::Current;
        let prefixed = |name: &str| format!("{}{name}", metrics.name());
        Names {
            utilization: prefixed("AverageUtilization"),
            value: prefixed("Value"),
            average: match source {
                "object" => "averageValue".to_owned(),
                _ => prefixed("AverageValue"),
            },
            selector: match source {
                "external" => "metricSelector",
                _ => "selector",
            },
            has_value: matches!(source, "object" | "external"),
            needs_value: source == "object" || (is_current && source == "external"),
            needs_average: source == "pods" || (is_current && !Names::has_metric(source)),
        }
    }

    /// Returns whether a source names a metric. The other sources name a resource.
    fn has_metric(source: &str) -> bool {
        !matches!(source, "resource" | "containerResource")
    }
}

/// Sets the members that have a value.
fn set_all<'a>(members: &mut Members, all: impl IntoIterator<Item = (&'a str, Option<Value>)>) {
    let present = all
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    members.extend(present);
}

/// Renames the members of all objects in a value. Drops those without a new name.
fn rename_all(value: &mut Value, new: &dyn Fn(&str) -> Option<&'static str>) {
    match value {
        Value::Object(members) => {
            let renamed = std::mem::take(members).into_iter();
            members.extend(renamed.filter_map(|(name, mut value)| {
                rename_all(&mut value, new);
                Some((new(&name)?.to_owned(), value))
            }));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_all(item, new)),
        _ => {}
    }
}

/// Returns the quantity that Go writes if none is set.
fn zero() -> Value {
    json!("0")
}

fn is_zero(quantity: &Value) -> bool {
    let quantity = match quantity {
        Value::String(text) => Quantity::parse(text).ok(),
        number => number.as_i64().map(Quantity::from_integer),
    };
    quantity.is_some_and(|quantity| quantity.sign() == 0)
}
