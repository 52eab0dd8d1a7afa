//! Tests the decoding of each scalar, and of each message whose JSON form is not an object, such as a time.

use serde_json::Value;

use super::*;
use crate::tests::{bytes, varint};

/// Returns the decoded value as JSON, or the reason why decoding failed.
fn written(result: Result<Scalar<'_>, Reason>) -> String {
    let value = match result {
        Ok(Scalar::Null) => Value::Null,
        Ok(Scalar::Bool(value)) => Value::from(value),
        Ok(Scalar::Integer(value)) => Value::from(value),
        Ok(Scalar::Double(value)) => Value::from(value),
        Ok(Scalar::Text(text)) => Value::from(text),
        Ok(Scalar::Time(time)) => Value::from(time.text()),
        Ok(Scalar::Json(json)) => return String::from_utf8(json.to_vec()).unwrap(),
        Err(reason) => return format!("refused: {reason}"),
    };
    value.to_string()
}

fn one(value_type: Type, value: WireValue<'_>) -> String {
    written(Scalar::of(value_type, value))
}

fn form(form: Form, bytes: &[u8]) -> String {
    written(Scalar::special(form, bytes))
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
    assert_eq!(
        double(f64::NAN),
        "refused: a number that JSON can't represent"
    );
    assert_eq!(
        double(f64::INFINITY),
        "refused: a number that JSON can't represent"
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
fn nanoseconds_outside_of_a_second_count_as_in_go() {
    let micro = |seconds: u64, nanos: u64| {
        form(
            Form::MicroTime,
            &[varint(1, seconds), varint(2, nanos)].concat(),
        )
    };
    assert_eq!(micro(1, 1_500_000_000), r#""1970-01-01T00:00:02.500000Z""#);
    assert_eq!(micro(0, u64::MAX - 999), r#""1969-12-31T23:59:59.999999Z""#);
    let before = u64::MAX - 62_135_596_800;
    assert_eq!(micro(before, 1_000_000_000), "null");
    assert_eq!(
        micro(before, 1_000_001_000),
        r#""0001-01-01T00:00:00.000001Z""#
    );
}
