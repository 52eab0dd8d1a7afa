//! Tests that selectors are parsed and matched as in Kubernetes.

use serde_json::{Value, json};

use super::label::{LabelSelector, Labels};

fn labels(labels: &Value) -> Labels {
    Labels::of(&json!({ "labels": labels }))
}

#[test]
fn label_requirements_match_as_in_apimachinery() {
    let object = labels(&json!({"app": "web", "rank": "5", "empty": ""}));
    for (selector, expected) in [
        ("", true),
        ("app", true),
        ("!app", false),
        ("!none", true),
        ("app=web", true),
        ("app==web", true),
        ("app = web , rank", true),
        ("app!=web", false),
        ("none!=web", true),
        ("none=", false),
        ("empty=", true),
        ("app in (db, web)", true),
        ("app in ()", false),
        ("empty in (,a)", true),
        ("empty in (a,)", true),
        ("empty in (a,,b)", true),
        ("empty in (,)", true),
        ("empty in (,,a)", true),
        ("empty in (,,,)", true),
        ("empty in (a,b)", false),
        ("app notin (db)", true),
        ("none notin (db)", true),
        ("app notin (web)", false),
        ("rank>4", true),
        ("rank>5", false),
        ("rank<6", true),
        ("app>1", false),
        ("example.com/app!=x,app=web", true),
    ] {
        let parsed =
            LabelSelector::parse(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
        assert_eq!(parsed.matches(&object), expected, "{selector}");
    }
}

#[test]
fn a_malformed_label_selector_is_rejected() {
    for selector in [
        ",",
        "a,",
        "a,,b",
        "=a",
        "a=b=c",
        "a in",
        "a in b",
        "a in (b",
        "a in (b c)",
        "a in (b,,=)",
        "a in (",
        "a in (=)",
        "!a=b",
        "a>x",
        "a>-1",
        "a<+5",
        "\u{c}",
        "a\u{a0}=b",
        "a b",
        "-a",
        "a/b/c",
        "a=-",
        "a=b c",
        "(a)",
    ] {
        assert!(LabelSelector::parse(selector).is_err(), "{selector}");
    }
}

#[test]
fn commas_without_a_value_between_them_are_an_empty_value() {
    for (selector, values) in [
        ("a in (b,,)", vec!["", "b"]),
        ("a in (,,b)", vec!["", "b"]),
        ("a in (b,,,c)", vec!["", "b", "c"]),
        ("a in (,)", vec![""]),
        ("a in ()", vec![""]),
        ("a in (c,b,c)", vec!["b", "c"]),
    ] {
        let parsed = LabelSelector::parse(selector).unwrap();
        let expected = format!("In({values:?})");
        assert!(format!("{parsed:?}").contains(&expected), "{parsed:?}");
    }
}

#[test]
fn all_invalid_values_of_a_requirement_are_reported_in_their_order() {
    let message = LabelSelector::parse("a in (x_,-y)").unwrap_err();
    let first = message.find("[values[0][a]: Invalid value: \"-y\": ");
    let second = message.find(", values[1][a]: Invalid value: \"x_\": ");
    assert!(first.is_some() && first < second, "{message}");
    let message = LabelSelector::parse("a>x_").unwrap_err();
    assert!(
        message.contains("must be an integer, values[0][a]: "),
        "{message}"
    );
}

mod fields {
    use std::sync::Arc;

    use super::super::FieldSelector;
    use super::json;
    use crate::kinds::Kinds;
    use crate::resource::{Registry, Resource};
    use crate::storage::Entry;

    fn pods() -> Arc<Resource> {
        let registry = Registry::new(&Kinds::builtin());
        Arc::clone(
            registry
                .by_path("", "v1", "pods")
                .expect("pods are built in"),
        )
    }

    fn selects(selector: &str) -> bool {
        let pods = pods();
        let object = json!({
            "metadata": {"namespace": "ns", "name": "a"},
            "spec": {"nodeName": "n=1", "hostNetwork": true},
            "status": {"phase": "Running"},
        });
        let entry = Entry::new(&pods, "ns/a".into(), object.as_object().unwrap(), 1);
        FieldSelector::parse(pods.strategy.fields, selector)
            .unwrap()
            .matches(entry.selectable())
    }

    #[test]
    fn fields_are_compared_with_the_objects_value_or_the_default() {
        for (selector, expected) in [
            ("", true),
            ("metadata.name=a,metadata.namespace==ns", true),
            ("metadata.name!=a", false),
            (r"spec.nodeName=n\=1", true),
            (r"spec.host=n\=1", true),
            ("spec.nodeName=", false),
            ("spec.hostNetwork=true", true),
            ("status.podIP=", true),
            ("status.phase!=Running", false),
        ] {
            assert_eq!(selects(selector), expected, "{selector}");
        }
    }

    #[test]
    fn a_malformed_field_selector_is_a_bad_request() {
        let pods = pods();
        for selector in [
            "metadata.name",
            "metadata.name=a=b",
            r"metadata.name=\x",
            "spec.unknown=1",
            "!a",
        ] {
            let error = FieldSelector::parse(pods.strategy.fields, selector).unwrap_err();
            assert_eq!(error.code(), 400, "{selector}");
        }
    }

    #[test]
    fn the_required_name_of_a_selector_is_found() {
        let pods = pods();
        let parse = |text: &str| FieldSelector::parse(pods.strategy.fields, text).unwrap();
        assert_eq!(parse("metadata.name=a").required_name(), Some("a"));
        assert_eq!(parse("metadata.name!=a").required_name(), None);
    }
}
