//! Tests of the decoding of each scalar, and of each message with its own JSON encoding.

use super::super::tests::{bytes, varint};
use super::*;

fn told(result: Result<Value, Reason>) -> String {
    match result {
        Ok(value) => value.to_string(),
        Err(reason) => format!("refused: {reason}"),
    }
}

fn one(value_type: Type, value: WireValue<'_>) -> String {
    told(scalar(value_type, value))
}

fn form(form: Form, bytes: &[u8]) -> String {
    told(special(form, bytes))
}

#[test]
fn integers_keep_their_sign_and_int32_its_lower_bits() {
    let minus_two = u64::MAX - 1;
    assert_eq!(one(Type::Int32, WireValue::Varint(minus_two)), "-2");
    assert_eq!(one(Type::Int64, WireValue::Varint(minus_two)), "-2");
    assert_eq!(one(Type::Int32, WireValue::Varint((1 << 32) + 7)), "7");
    assert_eq!(
        one(Type::Int64, WireValue::Varint((1 << 32) + 7)),
        "4294967303"
    );
    assert_eq!(one(Type::Bool, WireValue::Varint(0)), "false");
    assert_eq!(one(Type::Bool, WireValue::Varint(2)), "true");
}

#[test]
fn doubles_have_a_fraction_only_where_they_need_one() {
    let double = |number: f64| one(Type::Double, WireValue::Fixed64(number.to_bits()));
    assert_eq!(double(10.0), "10");
    assert_eq!(double(-0.5), "-0.5");
    assert_eq!(double(9_007_199_254_740_992.0), "9007199254740992");
    assert_eq!(double(1e300), "1e+300");
    assert_eq!(double(f64::NAN), "refused: a number that JSON can't say");
    assert_eq!(
        double(f64::INFINITY),
        "refused: a number that JSON can't say"
    );
}

#[test]
fn bytes_are_base64_and_invalid_utf8_is_replaced() {
    assert_eq!(one(Type::Bytes, WireValue::Bytes(b"\0\xff?")), r#""AP8/""#);
    assert_eq!(one(Type::Text, WireValue::Bytes("ä".as_bytes())), r#""ä""#);
    assert_eq!(one(Type::Text, WireValue::Bytes(b"a\xff")), "\"a\u{fffd}\"");
}

#[test]
fn a_scalar_with_the_wrong_wire_type_is_rejected() {
    let wrong = "refused: proto: wrong wireType = ";
    for value_type in [Type::Bool, Type::Int32, Type::Int64, Type::Double] {
        assert_eq!(one(value_type, WireValue::Bytes(b"1")), format!("{wrong}2"));
    }
    for value_type in [Type::Text, Type::Bytes, Type::Double] {
        assert_eq!(one(value_type, WireValue::Varint(1)), format!("{wrong}0"));
    }
    assert_eq!(one(Type::Int64, WireValue::Fixed64(1)), format!("{wrong}1"));
    assert_eq!(one(Type::Int32, WireValue::Fixed32), format!("{wrong}5"));
    assert_eq!(one(Type::Text, WireValue::Group), format!("{wrong}3"));
}

#[test]
fn an_int_or_string_follows_its_type() {
    let read = |parts: &[Vec<u8>]| form(Form::IntOrString, &parts.concat());
    let both = [varint(2, u64::MAX), bytes(3, "25%")];
    assert_eq!(read(&both), "-1");
    assert_eq!(read(&[&[varint(1, 1)], &both[..]].concat()), r#""25%""#);
    assert_eq!(read(&[varint(1, 1)]), r#""""#);
    assert_eq!(read(&[varint(9, 1)]), "0");
    assert_eq!(
        read(&[varint(1, 2)]),
        "refused: impossible IntOrString.Type"
    );
    assert_eq!(read(&[bytes(1, "")]), "refused: proto: wrong wireType = 2");
    assert_eq!(read(&[bytes(2, "")]), "refused: proto: wrong wireType = 2");
    assert_eq!(read(&[varint(3, 1)]), "refused: proto: wrong wireType = 0");
}

#[test]
fn quantities_are_text_and_an_empty_one_is_zero() {
    let read = |bytes: &[u8]| form(Form::Quantity, bytes);
    assert_eq!(read(&bytes(1, "100m")), r#""100m""#);
    assert_eq!(read(&bytes(1, "")), r#""0""#);
    assert_eq!(read(&[]), r#""0""#);
    assert_eq!(read(&varint(1, 1)), "refused: proto: wrong wireType = 0");
}

#[test]
fn embedded_json_is_json_and_absent_is_null() {
    let read = |json: &str| form(Form::Json, &bytes(1, json));
    assert_eq!(read(r#" {"a": [1, null]}"#), r#"{"a":[1,null]}"#);
    assert_eq!(read(""), "null");
    assert_eq!(form(Form::Json, &[]), "null");
    assert_eq!(
        read("{]"),
        "refused: json parse error: key must be a string at line 1 column 2"
    );
}

#[test]
fn times_have_seconds_and_micro_times_six_fraction_digits() {
    let at = |seconds: i64, nanos: i64| {
        [
            varint(1, seconds.cast_unsigned()),
            varint(2, nanos.cast_unsigned()),
        ]
        .concat()
    };
    let time = |seconds, nanos| form(Form::Time, &at(seconds, nanos));
    let micro = |seconds, nanos| form(Form::MicroTime, &at(seconds, nanos));
    assert_eq!(
        time(1_700_000_000, 999_999_999),
        r#""2023-11-14T22:13:20Z""#
    );
    assert_eq!(
        micro(1_700_000_000, 999_999_999),
        r#""2023-11-14T22:13:20.999999Z""#
    );
    assert_eq!(micro(0, 0), r#""1970-01-01T00:00:00.000000Z""#);
    assert_eq!(micro(0, -1_000), r#""1969-12-31T23:59:59.999999Z""#);
    assert_eq!(time(253_402_207_200, 0), r#""9999-12-30T22:00:00Z""#);
    assert_eq!(time(-62_135_596_799, 0), r#""0001-01-01T00:00:01Z""#);
}

#[test]
fn the_zero_time_is_null_and_an_out_of_range_time_is_rejected() {
    let time = |seconds: i64| form(Form::Time, &varint(1, seconds.cast_unsigned()));
    assert_eq!(form(Form::Time, &[]), "null");
    assert_eq!(form(Form::MicroTime, &[]), "null");
    assert_eq!(time(-62_135_596_800), "null");
    for seconds in [-62_135_596_801, 253_402_207_201, i64::MAX, i64::MIN] {
        assert_eq!(time(seconds), "refused: a time that RFC 3339 can't say");
    }
    assert_eq!(
        form(Form::Time, &bytes(1, "")),
        "refused: proto: wrong wireType = 2"
    );
    assert_eq!(
        form(Form::MicroTime, &bytes(2, "")),
        "refused: proto: wrong wireType = 2"
    );
}

#[test]
fn empty_values_are_the_ones_go_omits() {
    for empty in ["null", "false", "0", "\"\"", "[]", "{}"] {
        assert!(is_zero(&serde_json::from_str(empty).unwrap()), "{empty}");
    }
    for full in ["true", "1", "-1", "0.5", "\"0\"", "[null]", "{\"a\":0}"] {
        assert!(!is_zero(&serde_json::from_str(full).unwrap()), "{full}");
    }
}
