//! The named formats of the CEL library `format`.

use super::super::format::Format;
use super::url;
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
    let unless = |format: Format, message: &str| {
        if format.matches(text) {
            Vec::new()
        } else {
            vec![message.to_owned()]
        }
    };
    match format {
        "byte" => unless(Format::Byte, "invalid base64"),
        "date" => unless(Format::Date, "invalid date"),
        "datetime" => unless(Format::DateTime, "invalid datetime"),
        "dns1035Label" => dns_1035_faults(text),
        "dns1123Label" => NameRule::Label.faults(text),
        "dns1123Subdomain" => NameRule::Subdomain.faults(text),
        "labelValue" => value_faults(text),
        "qualifiedName" => key_faults(text),
        "uri" => url::check_request_uri(text).err().into_iter().collect(),
        "uuid" => unless(Format::Uuid, "does not match the UUID format"),
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
