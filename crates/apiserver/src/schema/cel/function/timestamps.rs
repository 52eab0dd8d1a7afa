//! The parts of timestamps and durations.

use super::super::time::SECOND;
use super::super::value::Value;
use super::Outcome;

pub(super) fn call<'a>(name: &str, arguments: &[Value<'a>]) -> Option<Outcome<'a>> {
    match arguments {
        [Value::Duration(duration)] => Some(Ok(Value::Int(match name {
            "getHours" => duration / (3600 * SECOND),
            "getMinutes" => duration / (60 * SECOND),
            "getSeconds" => duration / SECOND,
            "getMilliseconds" => duration / 1_000_000,
            _ => return None,
        }))),
        [Value::Timestamp(timestamp), zone @ ..] => {
            if !name.starts_with("get") {
                return None;
            }
            let offset = match zone {
                [] => Ok(0),
                [Value::String(zone)] => timestamp.offset_in(zone),
                _ => return None,
            };
            let civil = match offset {
                Ok(offset) => timestamp.civil(offset),
                Err(error) => return Some(Err(error.into())),
            };
            Some(Ok(Value::Int(match name {
                "getFullYear" => civil.year,
                "getMonth" => civil.month - 1,
                "getDayOfYear" => civil.day_of_year - 1,
                "getDate" => civil.day,
                "getDayOfMonth" => civil.day - 1,
                "getDayOfWeek" => civil.day_of_week,
                "getHours" => civil.second_of_day / 3600,
                "getMinutes" => civil.second_of_day / 60 % 60,
                "getSeconds" => civil.second_of_day % 60,
                "getMilliseconds" => i64::from(timestamp.nanoseconds / 1_000_000),
                _ => return None,
            })))
        }
        _ => None,
    }
}
