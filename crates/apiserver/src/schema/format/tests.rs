//! Texts with and without each format, as Kubernetes decides.

use std::collections::BTreeMap;

use serde_json::Deserializer;

use super::Format;

const TEXTS: &str = include_str!("tests/texts.txt");

const NAMES: &[&str] = &[
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

#[test]
fn texts_match_as_in_kubernetes() {
    // The number of accepted and of rejected texts.
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let mut failures = Vec::new();
    for line in TEXTS.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.splitn(3, '\t').collect();
        let [name, result, texts] = columns[..] else {
            panic!("{line}");
        };
        let format = Format::named(name).expect(name);
        let accepted = match result {
            "accepted" => true,
            "rejected" => false,
            _ => panic!("{line}"),
        };
        for text in Deserializer::from_str(texts).into_iter::<String>() {
            let text = text.expect(line);
            counts.entry(name).or_default()[usize::from(!accepted)] += 1;
            if format.matches(&text) != accepted {
                failures.push(format!("{name} {result} {text:?}"));
            }
        }
    }
    assert_eq!(failures, Vec::<String>::new());
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), NAMES);
    for (name, [accepted, rejected]) in counts {
        assert!(accepted > 0, "{name}");
        // Every text is a password.
        assert_eq!(rejected > 0, name != "password", "{name}");
    }
}

#[test]
fn names_are_compared_without_dashes() {
    for (name, format) in [
        ("date-time", Some(Format::DateTime)),
        ("-d-a-t-e-", Some(Format::Date)),
        ("k8sshortname", Some(Format::K8sShortName)),
        ("k8s-longname", Some(Format::K8sLongName)),
        ("Date", None),
        ("date_time", None),
        ("int32", None),
        ("double", None),
        ("uuid6", None),
        ("", None),
        ("-", None),
    ] {
        assert_eq!(Format::named(name), format, "{name}");
    }
}

/// With these texts, quadratic work takes minutes, and a recursive function overflows the stack.
#[test]
fn long_texts_are_matched_in_linear_time() {
    let many = |text: &str| text.repeat(100_000);
    for (format, text, expected) in [
        (
            Format::Email,
            format!("a@b {}{}", many("("), many(")")),
            true,
        ),
        (Format::Email, format!("a@b {}", many("(")), false),
        (Format::Email, format!("g:{}a@b;", many("a@b,")), false),
        (Format::Email, format!("{}<a@b>", many("=?a?q??=b ")), true),
        (Format::Email, format!("{}<a@b>", many("\"a\" (b) ")), true),
        (
            Format::Email,
            format!("a@b ({})", many("=?a?b?=a?= ")),
            true,
        ),
        (Format::Duration, format!("1s {}", many("1 ")), true),
        (Format::Duration, many("1"), false),
        (Format::Uri, format!("http://{}", many("@")), true),
        (Format::Uri, format!("http://[::1%25{}]", many("%25")), true),
        (Format::Ipv4, format!("{}1.2.3.4", many("0")), true),
        (Format::Cidr, format!("1.2.3.4/{}8", many("0")), true),
        (Format::CreditCard, many("a1"), false),
        (Format::DateTime, many("2014-12-15T19:30:20ZT"), true),
        (
            Format::DateTime,
            format!("2014-12-15T19:30:20.{}Z", many("0")),
            true,
        ),
        (Format::RgbColor, format!("rgb({})", many("1,")), false),
        (Format::Byte, many("AAAA"), true),
        (Format::Hostname, many("a."), false),
        (Format::K8sLongName, many("a."), false),
    ] {
        let start: String = text.chars().take(40).collect();
        assert_eq!(format.matches(&text), expected, "{format:?} {start}");
    }
}
