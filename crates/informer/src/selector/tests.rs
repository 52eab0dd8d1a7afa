//! Tests the parsing, printing, matching and conversion of selectors.

use std::error::Error as _;

use expect_test::{Expect, expect};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube_core::Expression;
use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Selector {
    text.parse()
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn set(values: &[&str]) -> BTreeSet<String> {
    values.iter().map(ToString::to_string).collect()
}

fn requirement(key: &str, operator: Operator) -> Requirement {
    Requirement::new(key, operator).expect("a valid requirement")
}

/// Parses labels such as `a=1,b`, where `b` has an empty value.
fn labels(text: &str) -> BTreeMap<String, String> {
    text.split(',')
        .filter(|label| !label.is_empty())
        .map(|label| label.split_once('=').unwrap_or((label, "")))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn valid_selectors_parse_and_print_in_canonical_form() {
    for (text, printed) in [
        ("", ""),
        (" \t\r\n", ""),
        ("x=a,y=b,z=c", "x=a,y=b,z=c"),
        ("z=c,y=b,x=a", "x=a,y=b,z=c"),
        ("x!=a,y=b", "x!=a,y=b"),
        ("x==a", "x=a"),
        ("x = a , y != b", "x=a,y!=b"),
        ("x=", "x="),
        ("x= ", "x="),
        ("x!=", "x!="),
        ("x=,z= ", "x=,z="),
        ("x= ,z= ", "x=,z="),
        ("!x", "!x"),
        ("! x", "!x"),
        ("x", "x"),
        ("x,!y", "x,!y"),
        ("x>1", "x>1"),
        ("x>1,z<5", "x>1,z<5"),
        ("x > 007", "x>7"),
        ("x in (b,a)", "x in (a,b)"),
        ("x in(b , a)", "x in (a,b)"),
        ("x notin (abc)", "x notin (abc)"),
        ("x in ()", "x in ()"),
        ("x in (,)", "x in ()"),
        ("x in (,a)", "x in (,a)"),
        ("x in (a,)", "x in (,a)"),
        ("x in (a,,b)", "x in (,a,b)"),
        ("x in (a,,)", "x in (,a)"),
        ("x in (a,,,b)", "x in (,a,b)"),
        ("x in (a,a)", "x in (a)"),
        (
            "x notin (abc,,def),bar,z in (),w",
            "bar,w,x notin (,abc,def),z in ()",
        ),
        ("in in (in,notin),notin", "in in (in,notin),notin"),
        ("notin=in", "notin=in"),
        ("x=a,x=a", "x=a"),
        ("x!=b,x!=a", "x!=a,x!=b"),
        ("app.kubernetes.io/name=web", "app.kubernetes.io/name=web"),
        ("a_b.c-d=E_f.g-h", "a_b.c-d=E_f.g-h"),
    ] {
        assert_eq!(parse(text).to_string(), printed, "{text:?}");
        assert_eq!(parse(printed), parse(text), "{text:?}");
    }
}

#[test]
fn the_longest_keys_and_values_are_accepted() {
    let name = "n".repeat(63);
    let prefix = format!("{}.{}", "p".repeat(189), "q".repeat(63));
    parse(&format!("{prefix}/{name}={name}"));
    for (text, position) in [
        (format!("{name}n"), 0),
        (format!("x={name}n"), 2),
        (format!("{prefix}q/x"), 0),
    ] {
        let error = text.parse::<Selector>().expect_err("one too long");
        assert_eq!(error.position(), position);
        assert!(error.invalid_label().is_some());
    }
}

fn refused(texts: &[&str], expected: &Expect) {
    let errors: String = texts
        .iter()
        .map(|text| match text.parse::<Selector>() {
            Ok(selector) => panic!("{text:?} was parsed as {selector:?}"),
            Err(error) => {
                assert!(error.position() <= text.len());
                assert!(error.source().is_none(), "the error has no source");
                format!("{text:?} {error}\n")
            }
        })
        .collect();
    expected.assert_eq(&errors);
}

#[test]
fn a_parse_error_has_a_position_and_the_expectation() {
    refused(
        &[
            ",",
            "x,",
            "x,,y",
            "=a",
            "!",
            "!!x",
            "!x=a",
            "x y",
            "x==a==b",
            "x=a b",
            "x=(a)",
            "x in",
            "x in a",
            "x in (a",
            "x in (a b)",
            "x in (a=b)",
            "x in (a))",
            "x notin",
            "x (a)",
            "x ! a",
            "x=!a",
            "(x)",
            "x>",
            "x>a",
            "x<1.5",
            "x>9223372036854775808",
            "x=a,y;",
        ],
        &expect![[r#"
            "," invalid selector at byte 0: found ",", expected a key or '!'
            "x," invalid selector at byte 2: found the end, expected a key or '!'
            "x,,y" invalid selector at byte 2: found ",", expected a key or '!'
            "=a" invalid selector at byte 0: found "=", expected a key or '!'
            "!" invalid selector at byte 1: found the end, expected a key
            "!!x" invalid selector at byte 1: found "!", expected a key
            "!x=a" invalid selector at byte 2: found "=", expected ',' or the end
            "x y" invalid selector at byte 2: found "y", expected one of =, ==, !=, in, notin, >, <, ',' or the end
            "x==a==b" invalid selector at byte 4: found "==", expected ',' or the end
            "x=a b" invalid selector at byte 4: found "b", expected ',' or the end
            "x=(a)" invalid selector at byte 2: found "(", expected a value
            "x in" invalid selector at byte 4: found the end, expected '('
            "x in a" invalid selector at byte 5: found "a", expected '('
            "x in (a" invalid selector at byte 7: found the end, expected ',' or ')'
            "x in (a b)" invalid selector at byte 8: found "b", expected ',' or ')'
            "x in (a=b)" invalid selector at byte 7: found "=", expected ',' or ')'
            "x in (a))" invalid selector at byte 8: found ")", expected ',' or the end
            "x notin" invalid selector at byte 7: found the end, expected '('
            "x (a)" invalid selector at byte 2: found "(", expected one of =, ==, !=, in, notin, >, <, ',' or the end
            "x ! a" invalid selector at byte 2: found "!", expected one of =, ==, !=, in, notin, >, <, ',' or the end
            "x=!a" invalid selector at byte 2: found "!", expected a value
            "(x)" invalid selector at byte 0: found "(", expected a key or '!'
            "x>" invalid selector at byte 2: "" is not a 64-bit integer
            "x>a" invalid selector at byte 2: "a" is not a 64-bit integer
            "x<1.5" invalid selector at byte 2: "1.5" is not a 64-bit integer
            "x>9223372036854775808" invalid selector at byte 2: "9223372036854775808" is not a 64-bit integer
            "x=a,y;" invalid selector at byte 4: "y;" is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
        "#]],
    );
}

#[test]
fn keys_and_values_are_validated_as_on_the_server() {
    refused(
        &[
            "x=a||y=b",
            "-x",
            "x-",
            "x.",
            "_x=a",
            "a/b/c",
            "/x",
            "a/",
            "A.b/x",
            "a..b/x",
            "-a/x",
            "a_b/x",
            "ä",
            "x=ä",
            "x=-a",
            "x=a-",
            "x in (a,b.)",
            "x>-1",
            "x\0y",
        ],
        &expect![[r#"
            "x=a||y=b" invalid selector at byte 2: "a||y" is not a label value: it must be at most 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "-x" invalid selector at byte 0: "-x" is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "x-" invalid selector at byte 0: "x-" is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "x." invalid selector at byte 0: "x." is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "_x=a" invalid selector at byte 0: "_x" is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "a/b/c" invalid selector at byte 0: "a/b/c" is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "/x" invalid selector at byte 0: "/x" is not a label key: its prefix before the '/' must be a DNS subdomain, in lower case and of at most 253 characters
            "a/" invalid selector at byte 0: "a/" is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "A.b/x" invalid selector at byte 0: "A.b/x" is not a label key: its prefix before the '/' must be a DNS subdomain, in lower case and of at most 253 characters
            "a..b/x" invalid selector at byte 0: "a..b/x" is not a label key: its prefix before the '/' must be a DNS subdomain, in lower case and of at most 253 characters
            "-a/x" invalid selector at byte 0: "-a/x" is not a label key: its prefix before the '/' must be a DNS subdomain, in lower case and of at most 253 characters
            "a_b/x" invalid selector at byte 0: "a_b/x" is not a label key: its prefix before the '/' must be a DNS subdomain, in lower case and of at most 253 characters
            "ä" invalid selector at byte 0: "ä" is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "x=ä" invalid selector at byte 2: "ä" is not a label value: it must be at most 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "x=-a" invalid selector at byte 2: "-a" is not a label value: it must be at most 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "x=a-" invalid selector at byte 2: "a-" is not a label value: it must be at most 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "x in (a,b.)" invalid selector at byte 8: "b." is not a label value: it must be at most 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "x>-1" invalid selector at byte 2: "-1" is not a label value: it must be at most 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
            "x\0y" invalid selector at byte 0: "x\0y" is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
        "#]],
    );
}

#[test]
fn labels_match_as_on_the_server() {
    for (selector, wanted, unwanted) in [
        ("", &["", "x=1"][..], &[][..]),
        ("x=a", &["x=a", "x=a,y=b"], &["", "x=b", "x", "y=a"]),
        ("x=", &["x"], &["", "x=a"]),
        ("x!=a", &["", "x=b", "x"], &["x=a"]),
        ("x in (a,b)", &["x=a", "x=b"], &["", "x=c", "x"]),
        ("x in ()", &["x"], &["", "x=a"]),
        ("x notin (a,b)", &["", "x=c", "x"], &["x=a", "x=b"]),
        ("x", &["x", "x=a"], &["", "y"]),
        ("!x", &["", "y"], &["x", "x=a"]),
        (
            "x>5",
            &["x=6", "x=10", "x=006"],
            &["", "x=5", "x=4", "x=a", "x"],
        ),
        ("x<5", &["x=4", "x=-4"], &["", "x=5", "x=6", "x=a", "x=4.5"]),
        ("x>1,x<4", &["x=2", "x=3"], &["x=1", "x=4"]),
        ("x=a,y!=b", &["x=a", "x=a,y=c"], &["x=a,y=b", "y=c"]),
    ] {
        let selector = parse(selector);
        for text in wanted {
            assert!(
                selector.matches_labels(&labels(text)),
                "{selector} wants {text:?}"
            );
        }
        for text in unwanted {
            assert!(
                !selector.matches_labels(&labels(text)),
                "{selector} refuses {text:?}"
            );
        }
    }
}

#[test]
fn everything_selects_all_objects_and_nothing_selects_none() {
    assert!(Selector::everything().is_everything());
    assert_eq!(Selector::everything(), parse(""));
    assert_eq!(Selector::everything(), Selector::default());
    assert!(Selector::everything().matches(|_| None));

    let nothing = Selector::nothing();
    assert!(!nothing.is_everything());
    for labels in [labels(""), labels("nothing"), labels("x=a")] {
        assert!(!nothing.matches_labels(&labels));
    }
    assert_eq!(nothing.to_string(), "nothing,!nothing");
    assert_eq!(parse("nothing,!nothing"), nothing);
}

#[test]
fn requirements_can_be_created_and_inspected() {
    let selector: Selector = [
        requirement("tier", Operator::NotIn(set(&["db", "cache"]))),
        requirement("app", Operator::Equals("web".to_owned())),
    ]
    .into_iter()
    .collect();
    assert_eq!(selector, parse("app=web,tier notin (cache,db)"));
    let [app, tier] = selector.requirements() else {
        panic!("two requirements")
    };
    assert_eq!((app.key(), tier.key()), ("app", "tier"));
    assert_eq!(*app.operator(), Operator::Equals("web".to_owned()));
}

#[test]
fn invalid_requirements_are_rejected() {
    let invalid = |key: &str, operator| Requirement::new(key, operator).expect_err("impossible");
    assert_eq!(
        invalid("a b", Operator::Exists),
        InvalidLabel::KeyName("a b".to_owned())
    );
    assert_eq!(
        invalid("A/b", Operator::DoesNotExist),
        InvalidLabel::KeyPrefix("A/b".to_owned())
    );
    assert_eq!(
        invalid("a", Operator::NotEquals("b,c".to_owned())),
        InvalidLabel::Value("b,c".to_owned())
    );
    assert_eq!(
        invalid("a", Operator::In(set(&["b", "c d"]))),
        InvalidLabel::Value("c d".to_owned())
    );
    assert_eq!(
        invalid("a", Operator::NotIn(set(&[]))),
        InvalidLabel::NoValues
    );
    assert_eq!(
        invalid("a", Operator::GreaterThan(-1)),
        InvalidLabel::Value("-1".to_owned())
    );
}

#[test]
fn kubes_selector_keeps_its_meaning() {
    let kube: kube_core::Selector = [
        Expression::NotIn("tier".into(), set(&["db", "cache"])),
        Expression::Equal("app".into(), "web".into()),
        Expression::NotEqual("b".into(), "c".into()),
        Expression::In("d".into(), set(&["e"])),
        Expression::Exists("f".into()),
        Expression::DoesNotExist("g".into()),
    ]
    .into_iter()
    .collect();
    assert_eq!(
        Selector::from(kube).to_string(),
        "app=web,b!=c,d in (e),f,!g,tier notin (cache,db)"
    );
    assert_eq!(
        Selector::from(kube_core::Selector::default()),
        Selector::everything()
    );
    let in_no_set = Expression::In("a".into(), set(&[]));
    assert_eq!(Selector::from(in_no_set), Selector::nothing());
    let not_in_no_set = Expression::NotIn("a".into(), set(&[]));
    assert_eq!(Selector::from(not_in_no_set), Selector::everything());
}

fn label_selector(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
    LabelSelector {
        match_labels: None,
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: (!values.is_empty()).then(|| values.iter().map(ToString::to_string).collect()),
        }]),
    }
}

#[test]
fn a_label_selector_converts_as_on_the_server() {
    assert_eq!(
        Selector::try_from(LabelSelector::default()),
        Ok(Selector::everything())
    );
    for (operator, values, printed) in [
        ("In", &["b", "a"][..], "x in (a,b)"),
        ("NotIn", &["a"], "x notin (a)"),
        ("Exists", &[], "x"),
        ("DoesNotExist", &[], "!x"),
    ] {
        let mut selector = label_selector("x", operator, values);
        selector.match_labels = Some(labels("app=web"));
        let selector = Selector::try_from(selector).expect("a valid selector");
        assert_eq!(selector.to_string(), format!("app=web,{printed}"));
    }
}

#[test]
fn an_invalid_label_selector_is_rejected() {
    let refused = |selector: LabelSelector| {
        let error = Selector::try_from(selector).expect_err("impossible");
        match error.source() {
            Some(source) => format!("{error} <- {source}\n"),
            None => format!("{error}\n"),
        }
    };
    let equality = LabelSelector {
        match_labels: Some(labels("x=a b")),
        match_expressions: None,
    };
    let errors = [
        label_selector("x", "Near", &["a"]),
        label_selector("x", "Gt", &["1"]),
        label_selector("x", "Exists", &["a"]),
        label_selector("x", "In", &[]),
        label_selector("x y", "Exists", &[]),
        equality,
    ]
    .map(refused)
    .concat();
    expect![[r#"
        invalid operator "Near" for the label "x"; use In, NotIn, Exists or DoesNotExist
        invalid operator "Gt" for the label "x"; use In, NotIn, Exists or DoesNotExist
        operator Exists for the label "x" accepts no values; remove them
        the requirement for the label "x" is invalid <- the operators In and NotIn need at least one value
        the requirement for the label "x y" is invalid <- "x y" is not a label key: its name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
        the requirement for the label "x" is invalid <- "a b" is not a label value: it must be at most 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit
    "#]].assert_eq(&errors);
}

fn any_requirement() -> impl Strategy<Value = Requirement> {
    let key = "([a-z0-9]{1,4}(\\.[a-z0-9]([a-z0-9-]{0,3}[a-z0-9])?){0,2}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,6}[A-Za-z0-9])?";
    let value = "([A-Za-z0-9]([A-Za-z0-9_.-]{0,4}[A-Za-z0-9])?)?";
    let values = prop::collection::btree_set(value, 1..4);
    let operator = prop_oneof![
        Just(Operator::Exists),
        Just(Operator::DoesNotExist),
        value.prop_map(Operator::Equals),
        value.prop_map(Operator::NotEquals),
        values.clone().prop_map(Operator::In),
        values.prop_map(Operator::NotIn),
        (0..=i64::MAX).prop_map(Operator::GreaterThan),
        (0..=i64::MAX).prop_map(Operator::LessThan),
    ];
    (key, operator).prop_map(|(key, operator)| requirement(&key, operator))
}

proptest! {
    #[test]
    fn a_printed_selector_parses_to_the_same_selector(
        requirements in prop::collection::vec(any_requirement(), 0..5),
    ) {
        let selector: Selector = requirements.into_iter().collect();
        prop_assert_eq!(selector.to_string().parse(), Ok(selector));
    }

    #[test]
    fn the_parser_never_panics_and_accepted_texts_round_trip(
        text in "([a-zA/ =!<>(),.\u{e4}\t0-9_-]|in|notin){0,24}",
    ) {
        match text.parse::<Selector>() {
            Ok(selector) => prop_assert_eq!(selector.to_string().parse(), Ok(selector)),
            Err(error) => prop_assert!(error.position() <= text.len()),
        }
    }
}
