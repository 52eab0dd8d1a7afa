//! Decides whether a text has one of the string formats of `CustomResourceDefinition` schemas.
//!
//! Guarantees:
//! - The formats, and the texts that have a format, are those of kube-apiserver 1.36. This includes texts
//!   that the standard of a format forbids, as the documentation of the child modules states.
//! - The work is linear in the length of the text. No function is recursive.

mod base64;
mod color;
mod duration;
mod encoded_word;
mod identifier;
mod network;
mod number;
mod time;
mod unicode;

mod email;
mod hostname;
mod uri;

use crate::name_syntax::NameRule;

/// Format of a string in a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    K8sShortName,
    K8sLongName,
}

impl Format {
    /// Returns the format that a schema calls `name`, or `None` if kube-apiserver ignores this name.
    ///
    /// Dashes in the name are ignored, so `date-time` and `datetime` are the same format. The case matters.
    pub(crate) fn named(name: &str) -> Option<Format> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Format::BsonObjectId,
            "uri" => Format::Uri,
            "email" => Format::Email,
            "hostname" => Format::Hostname,
            "ipv4" => Format::Ipv4,
            "ipv6" => Format::Ipv6,
            "cidr" => Format::Cidr,
            "mac" => Format::Mac,
            "uuid" => Format::Uuid,
            "uuid3" => Format::Uuid3,
            "uuid4" => Format::Uuid4,
            "uuid5" => Format::Uuid5,
            "isbn" => Format::Isbn,
            "isbn10" => Format::Isbn10,
            "isbn13" => Format::Isbn13,
            "creditcard" => Format::CreditCard,
            "ssn" => Format::Ssn,
            "hexcolor" => Format::HexColor,
            "rgbcolor" => Format::RgbColor,
            "byte" => Format::Byte,
            "password" => Format::Password,
            "date" => Format::Date,
            "duration" => Format::Duration,
            "datetime" => Format::DateTime,
            "k8sshortname" => Format::K8sShortName,
            "k8slongname" => Format::K8sLongName,
            _ => return None,
        })
    }

    /// Returns whether `text` has this format.
    pub(crate) fn matches(self, text: &str) -> bool {
        match self {
            Format::BsonObjectId => identifier::is_bson_object_id(text),
            Format::Uri => uri::is_uri(text),
            Format::Email => email::is_email(text),
            Format::Hostname => hostname::is_hostname(text),
            Format::Ipv4 => network::is_ipv4(text),
            Format::Ipv6 => network::is_ipv6(text),
            Format::Cidr => network::is_cidr(text),
            Format::Mac => network::is_mac(text),
            Format::Uuid => identifier::is_uuid(text, None),
            Format::Uuid3 => identifier::is_uuid(text, Some(b'3')),
            Format::Uuid4 => identifier::is_uuid(text, Some(b'4')),
            Format::Uuid5 => identifier::is_uuid(text, Some(b'5')),
            Format::Isbn => number::is_isbn10(text) || number::is_isbn13(text),
            Format::Isbn10 => number::is_isbn10(text),
            Format::Isbn13 => number::is_isbn13(text),
            Format::CreditCard => number::is_credit_card(text),
            Format::Ssn => number::is_ssn(text),
            Format::HexColor => color::is_hex_color(text),
            Format::RgbColor => color::is_rgb_color(text),
            Format::Byte => !text.is_empty() && base64::is_base64(text.as_bytes()),
            Format::Password => true,
            Format::Date => time::is_date(text),
            Format::Duration => duration::is_duration(text),
            Format::DateTime => time::is_date_time(text),
            Format::K8sShortName => NameRule::Label.faults(text).is_empty(),
            Format::K8sLongName => NameRule::Subdomain.faults(text).is_empty(),
        }
    }
}

#[cfg(test)]
mod tests;
