//! Compares the results with those of Kubernetes, and tests the limits.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value as Json, json};

use super::{Budget, Outcome, Validator};

/// The results of `apiextensions-apiserver` 0.36.3, one object per line. A line without a schema has that of
/// the line before.
///
/// Each case has a rule, or null if the schema has all rules, its cost, and its errors and warnings.
/// [`shortened`] describes the abbreviations of errors.
const KUBERNETES: &str = include_str!("kubernetes.jsonl");

#[test]
fn results_and_costs_are_those_of_kubernetes() {
    let mut count = 0;
    let mut schema = Json::Null;
    for line in KUBERNETES.lines() {
        let mut group: Json = serde_json::from_str(line).unwrap();
        match group.get_mut("schema") {
            Some(new) => schema = new.take(),
            None => assert!(schema.is_object()),
        }
        group["schema"] = schema.clone();
        for case in group["cases"].as_array().unwrap() {
            let case = case.as_array().unwrap();
            let expected = json!(case[1..]);
            let actual = run_case(&group, case[0].as_str());
            assert_eq!(actual, expected, "{} of {}", case[0], group["schema"]);
            count += 1;
        }
    }
    assert!(count > 850, "{count}");
}

fn run_case(group: &Json, rule: Option<&str>) -> Json {
    let mut schema = group["schema"].clone();
    if let Some(rule) = rule {
        schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
    }
    let number =
        |name: &str, default: i64| group.get(name).map_or(default, |one| one.as_i64().unwrap());
    let mut budget = Budget::OF_OBJECT;
    budget.cost = number("budget", budget.cost);
    let validator = Validator::new(&schema, group.get("root") != Some(&json!(false)));
    let ratchets = group.get("ratchet").is_some();
    let rules = validator.rules();
    let outcome = rules.validate(&group["obj"], group.get("old"), budget, ratchets);
    let errors = outcome
        .errors
        .iter()
        .map(|error| format!("{}: {}", error.field, error.body));
    let mut errors: Vec<String> = errors.map(|error| shortened(&error, rule)).collect();
    errors.sort();
    let mut warnings = outcome.warnings;
    warnings.sort();
    let mut actual = vec![json!(budget.cost - outcome.left.cost)];
    actual.extend(errors.into_iter().map(Json::from));
    actual.extend(
        warnings
            .iter()
            .map(|warning| json!(format!("warning: {warning}"))),
    );
    Json::from(actual)
}

/// Abbreviates what most errors contain, and the rule itself.
fn shortened(error: &str, rule: Option<&str>) -> String {
    let rule = rule.map(str::trim).filter(|rule| !rule.is_empty());
    let error = rule.map_or(error.to_owned(), |rule| error.replace(rule, "@"));
    let signature =
        "call arguments did not match a supported operator, function or macro signature";
    error
        .replace("<nil>: Invalid value: \"object\": ", "~")
        .replace(
            "rule compile error: compilation failed: ERROR: <input>:",
            "!",
        )
        .replace(&format!("{signature} for rule: "), "%")
}

#[test]
fn problems_name_the_place_of_the_rule() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {
        "type": "string",
        "x-kubernetes-validations": [
            {"rule": "true"},
            {"rule": "self"},
            {"rule": "true", "messageExpression": "1"},
        ],
    }}}});
    let problems = Validator::new(&schema, true).problems("", false);
    let shown: Vec<String> = problems
        .iter()
        .map(|one| format!("{}: {}", one.path, one.message))
        .collect();
    let rules = ".properties[a].items.x-kubernetes-validations";
    assert_eq!(
        shown,
        [
            format!("{rules}[1].rule: cel expression must evaluate to a bool"),
            format!("{rules}[2].messageExpression: messageExpression must evaluate to a string"),
        ]
    );
}

fn check(rule: &str, object: &Json) -> Outcome {
    let schema = json!({
        "type": "object",
        "properties": {
            "s": {"type": "string"},
            "n": {"type": "integer"},
            "l": {"type": "array", "items": {"type": "string"}},
            "x": {"x-kubernetes-int-or-string": true},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "named": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "data": {"type": "string", "format": "byte"},
            "blobs": {"type": "array", "items": {"type": "string", "format": "byte"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        },
        "x-kubernetes-validations": [{"rule": rule}],
    });
    Validator::new(&schema, true).validate(object, None)
}

/// The parts of random rules.
const PARTS: [&str; 60] = [
    "self",
    ".s",
    ".n",
    ".l",
    ".x",
    ".?x",
    "[0]",
    "[?0]",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    "?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    "!",
    " in ",
    "1",
    "2u",
    "1.5",
    "'a'",
    "b'b'",
    "null",
    "true",
    "has(self.x)",
    ".all(v, v)",
    ".exists(v, true)",
    ".map(v, [v])",
    ".filter(v, true)",
    ".exists_one(v, true)",
    ".transformMap(k, v, v)",
    ".optMap(v, v)",
    ".orValue(1)",
    ".sortBy(v, v)",
    "v",
    "size(",
    ".size()",
    "int(",
    "string(",
    "dyn(",
    "duration('1s')",
    ".format([1])",
    ".matches('[a')",
    ".replace('', 'aa')",
    ".flatten()",
    "optional.of(",
    "'%s'",
];

#[test]
fn random_rules_have_a_result() {
    let object = json!({"s": "text", "n": 3, "l": ["a", "b"], "x": 7});
    let mut failed = 0;
    for seed in 0..600 {
        let mut random = fastrand::Rng::with_seed(seed);
        let length = random.usize(1..14);
        let rule: String = (0..length)
            .map(|_| PARTS[random.usize(..PARTS.len())])
            .collect();
        let outcome = check(&rule, &object);
        let body = outcome.errors.first().map_or("", |error| &error.body);
        assert!(!body.contains("unexpected compilation error"), "{rule}");
        failed += usize::from(body.contains("compilation failed"));
    }
    assert!((300..590).contains(&failed), "{failed}");
}

#[test]
fn hostile_rules_exceed_a_limit() {
    let long = "a".repeat(100_000);
    let any = json!({"l": vec![json!({"a": 1}); 10_000]});
    let data = "aaaa".repeat(100_000);
    let named = json!({long.clone(): 1});
    let object = json!({
        "s": long, "n": 1, "l": vec!["a"; 10_000], "x": 1, "any": any, "data": data, "blobs": [data],
        "set": [long], "named": named,
    });
    for rule in [
        "lists.range(1000000000).size() == 1",
        "self.l.all(a, self.l.all(b, self.l.all(c, a == b)))",
        "self.l.map(a, self.l + self.l).size() == 1",
        "self.l.all(a, self.l == self.l)",
        "self.l.map(a, self.l.map(b, b)).flatten().size() == 1",
        "self.s.replace('', self.s).size() == 1",
        "self.l.join(self.s).size() == 1",
        "self.l.all(a, self.s.matches(a + '{1,500}{1,20}' + self.s))",
        "optional.of(self.l).optMap(a, a + a + a + a).optMap(a, a + a + a + a).optMap(a, a + a + a + a + a + a)\
         .optMap(a, a + a + a + a + a + a).optMap(a, a + a + a + a).value().size() == 1",
        "self.l.all(a, self.any == self.any)",
        "self.l.all(a, self.s.size() == 100000)",
        "self.l.all(a, self.s.charAt(99999) == 'a')",
        "self.l.all(a, self.s.lastIndexOf('b') == -1)",
        "self.l.all(a, self.data.size() > 0)",
        "self.l.all(a, has(self.data))",
        "self.l.all(a, self.blobs.all(b, true))",
        "self.l.all(a, self.blobs == self.blobs)",
        "self.l.all(a, self.blobs + self.blobs != [])",
        "self.l.all(a, self.blobs.indexOf(b'') == -1)",
        "self.l.all(a, self.set == self.set)",
        "self.l.all(a, self.named == self.named)",
        "self.l.all(a, 'x'.matches('(' + a + '{1,100}){1,9}') || true)",
        "self.l.distinct().size() == 1 && self.l.sort() == self.l && self.l.all(a, self.l.distinct() == [a])",
    ] {
        let outcome = check(rule, &object);
        assert_eq!(outcome.left.cost, -1, "{rule}");
        let body = &outcome.errors[0].body;
        assert!(
            body.contains("limit") || body.contains("budget"),
            "{rule}: {body}"
        );
    }
}

#[test]
fn extreme_numbers_do_not_panic() {
    let object = json!({"s": "1e2147483647", "n": 1, "l": ["9999999999h"], "x": 1});
    for rule in [
        "quantity(self.s).asInteger() == 1",
        "quantity('1e-2147483648').sub(quantity(self.s)).isInteger()",
        "duration(self.l[0]) > duration('1h')",
        "duration('2562047h47m16.854775807s') + duration('1h') > duration('1h')",
        "self.n - 9223372036854775807 - 9223372036854775807 < 0",
    ] {
        check(rule, &object);
    }
}

#[test]
fn errors_and_work_of_many_items_are_limited() {
    let validate = |rule: &str, object: &Json| {
        let items = json!({"type": "integer", "x-kubernetes-validations": [{"rule": rule}]});
        let map =
            json!({"type": "object", "additionalProperties": {"type": "array", "items": items}});
        Validator::new(&map, false).validate(object, None)
    };
    let long = "k".repeat(100_000);
    let outcome = validate("false", &json!({long: vec![0; 10_000]}));
    assert!(
        outcome.errors.len() < 1000 && outcome.left.cost > 0,
        "{}",
        outcome.errors.len()
    );
    let outcome = validate(
        &vec!["true"; 10_000].join(" && "),
        &json!({"a": vec![0; 100_000]}),
    );
    assert_eq!(outcome.left.cost, -1);
    assert_eq!(outcome.errors.len(), 1);
}

#[test]
fn deep_rules_are_evaluated_or_rejected() {
    let nested = |open: &str, close: &str, depth: usize| {
        format!("{}true{} == true", open.repeat(depth), close.repeat(depth))
    };
    let object = json!({"s": "a", "n": 1, "l": [], "x": 1});
    for rule in [
        nested("(", ")", 100),
        nested("[[1].all(x, ", ")][0]", 32),
        nested("(true ? ", " : false)", 50),
        nested("[1].all(x, ", ")", 95),
        nested("[1].map(x, x > 0 && ", ")[0]", 70),
        nested(
            "optional.of(1).optMap(x, x == 1 ? ",
            " : false).value()",
            48,
        ),
        nested("[[1]].sortBy(y, y[0]).all(x, ", ")", 40),
        format!("{}1{} == []", "[".repeat(99), "]".repeat(99)),
        format!("true{}", " && self.n == 1".repeat(2_000)),
        format!("self.x{} == 1", " + 1".repeat(245)),
        format!("dyn(self){}", ".s".repeat(245)),
    ] {
        let outcome = check(&rule, &object);
        let message = outcome.errors.first().map_or("", |error| &error.body);
        assert!(
            !message.contains("recursion") && !message.contains("unexpected"),
            "{message}"
        );
    }
    for rule in [
        nested("(", ")", 101),
        nested("{'a': ", "}", 10_000),
        format!("self.n{} == 1", " + 1".repeat(10_000)),
        "!".repeat(90_000),
        format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(40)),
    ] {
        let outcome = check(&rule, &object);
        let message = &outcome.errors[0].body;
        assert!(
            message.contains("recursion") || message.contains("size limit"),
            "{message}"
        );
    }
}

/// The estimated costs of `apiextensions-apiserver` 0.36.3: of the rules of its tests, of a sample of random rules,
/// and of rules whose local variables have the same name. Each line has a schema, how often a value fits into a request, and the rules with their costs.
const ESTIMATES: &[u8] = include_bytes!("../estimate/kubernetes.jsonl.gz");

#[test]
fn estimated_costs_are_those_of_kubernetes() {
    let mut text = String::new();
    GzDecoder::new(ESTIMATES).read_to_string(&mut text).unwrap();
    let mut count = 0;
    for line in text.lines() {
        let group: Json = serde_json::from_str(line).unwrap();
        let cases = group["cases"].as_array().unwrap();
        let mut schema = group["schema"].clone();
        let rules = cases.iter().map(|case| json!({"rule": case[0]}));
        schema["x-kubernetes-validations"] = rules.collect();
        let validator = Validator::new(&schema, group.get("root") != Some(&json!(false)));
        let root = validator.root.unwrap();
        assert_eq!(json!(root.max_count), group["maxCount"], "{schema}");
        for (rule, case) in root.rules.iter().zip(cases) {
            let program = rule.program.as_ref().unwrap().as_ref().unwrap();
            assert_eq!(program.max_cost.to_string(), case[1], "{}", case[0]);
            count += 1;
        }
    }
    assert!(count > 900, "{count}");
}
