//! The named formats of the CEL library `format`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{time, url};
use crate::name_syntax::{NameRule, dns_1035_faults, key_faults, value_faults};

/// The names of all formats, with the size of their patterns in the unit of costs.
const FORMATS: [(&str, u64); 13] = [
    ("byte", 84),
    ("date", 71),
    ("datetime", 71),
    ("dns1035Label", 30),
    ("dns1035LabelPrefix", 30),
    ("dns1123Label", 30),
    ("dns1123LabelPrefix", 30),
    ("dns1123Subdomain", 60),
    ("dns1123SubdomainPrefix", 60),
    ("labelValue", 40),
    ("qualifiedName", 60),
    ("uri", 1103),
    ("uuid", 70),
];

/// Returns the format of a name as a static text.
pub(super) fn find(name: &str) -> Option<&'static str> {
    FORMATS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(known, _)| *known)
}

pub(super) fn pattern_size(format: &str) -> u64 {
    let known = FORMATS.iter().find(|(known, _)| *known == format);
    known.map_or(0, |(_, size)| *size)
}

/// Returns a message for each way in which a text violates a format.
pub(super) fn faults(format: &str, text: &str) -> Vec<String> {
    if let Some(unprefixed) = format.strip_suffix("Prefix") {
        return faults(unprefixed, &without_trailing_dash(text));
    }
    let unless = |is_valid: bool, message: &str| {
        if is_valid {
            Vec::new()
        } else {
            vec![message.to_owned()]
        }
    };
    match format {
        "byte" => unless(is_base64(text), "invalid base64"),
        "date" => unless(time::parse_date(text).is_ok(), "invalid date"),
        "datetime" => unless(is_date_time(text), "invalid datetime"),
        "dns1035Label" => dns_1035_faults(text),
        "dns1123Label" => NameRule::Label.faults(text),
        "dns1123Subdomain" => NameRule::Subdomain.faults(text),
        "labelValue" => value_faults(text),
        "qualifiedName" => key_faults(text),
        "uri" => url::check_request_uri(text).err().into_iter().collect(),
        "uuid" => unless(is_uuid(text), "does not match the UUID format"),
        _ => Vec::new(),
    }
}

/// Replaces a trailing dash, and the character before it, by a letter, as Kubernetes does for prefixes.
fn without_trailing_dash(name: &str) -> String {
    let before = name.strip_suffix('-').filter(|before| !before.is_empty());
    match before {
        Some(before) => {
            let mut letters = before.chars();
            letters.next_back();
            format!("{}a", letters.as_str())
        }
        None => name.to_owned(),
    }
}

fn is_base64(text: &str) -> bool {
    !text.is_empty() && STANDARD.decode(text).is_ok()
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let Some((date, rest)) = text.split_once('t') else {
        return false;
    };
    if rest.contains('t') {
        return false;
    }
    let Some((time, rest)) = rest.split_at_checked(8) else {
        return false;
    };
    let digits = |text: &str| text.len() == 2 && text.bytes().all(|one| one.is_ascii_digit());
    let parts: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = parts.as_slice() else {
        return false;
    };
    let is_time = digits(hour) && digits(minute) && digits(second);
    let in_range = *hour <= "23" && *minute <= "59" && *second <= "59";
    // Any character can start the fraction.
    let mut after = rest.chars();
    let fraction = match after.next() {
        Some(first)
            if after.as_str().starts_with(|one: char| one.is_ascii_digit())
                && first != '+'
                && first != '-' =>
        {
            after
                .as_str()
                .trim_start_matches(|one: char| one.is_ascii_digit())
        }
        _ => rest,
    };
    let is_offset = fraction == "z"
        || fraction.strip_prefix(['+', '-']).is_some_and(|offset| {
            let parts = offset.split_once(':');
            parts.is_some_and(|(hours, minutes)| digits(hours) && digits(minutes))
        });
    time::parse_date(date).is_ok() && is_time && in_range && is_offset
}

fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((digits, after)) = rest.split_at_checked(length) else {
            return false;
        };
        if !digits.bytes().all(|one| one.is_ascii_hexdigit()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}
