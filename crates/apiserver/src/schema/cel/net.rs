//! IP addresses and networks, as Kubernetes' CEL libraries parse them.
//!
//! The messages for texts that are not an IPv6 address don't name the place of the mistake.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::quote::Quoted;

/// An address with the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cidr {
    pub(super) address: IpAddr,
    pub(super) bits: u8,
}

/// Parses an address. Zones and IPv4-mapped IPv6 addresses are rejected.
pub(super) fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let quoted = Quoted(text);
    if let Some((address, _)) = text.split_once('%')
        && address.parse::<Ipv6Addr>().is_ok()
    {
        return Err(format!(
            "IP address {quoted} with zone value is not allowed"
        ));
    }
    let address = parse_address(text).map_err(|error| {
        format!("IP Address {quoted} parse error during conversion from string: {error}")
    })?;
    reject_mapped(text, address)
}

/// Parses a network. The bits after the prefix can be set.
pub(super) fn parse_cidr(text: &str) -> Result<Cidr, String> {
    let quoted = Quoted(text);
    let invalid = |message: String| {
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({quoted}): {message}"
        )
    };
    let (address, bits) = text
        .rsplit_once('/')
        .ok_or_else(|| invalid("no '/'".to_owned()))?;
    let address = parse_address(address).map_err(invalid)?;
    let is_number = bits.bytes().all(|digit| digit.is_ascii_digit());
    let is_canonical = !bits.is_empty() && (bits.len() == 1 || !bits.starts_with('0'));
    let bits_error = || invalid(format!("bad bits after slash: {}", Quoted(bits)));
    if !is_number || !is_canonical || bits.len() > 3 {
        return Err(bits_error());
    }
    let max = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.parse::<u16>().map_err(|_| bits_error())?;
    let in_range = u8::try_from(bits).ok().filter(|bits| *bits <= max);
    let bits = in_range.ok_or_else(|| invalid("prefix length out of range".to_owned()))?;
    let address = reject_mapped(text, address)?;
    Ok(Cidr { address, bits })
}

fn reject_mapped(text: &str, address: IpAddr) -> Result<IpAddr, String> {
    match address {
        IpAddr::V6(mapped) if mapped.to_ipv4_mapped().is_some() => {
            let quoted = Quoted(text);
            Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"))
        }
        other => Ok(other),
    }
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| {
        let message = match text
            .find(['.', ':', '%'])
            .map(|place| text.as_bytes()[place])
        {
            Some(b'.') => ipv4_mistake(text),
            Some(b'%') => "missing IPv6 address".to_owned(),
            _ => "unable to parse IP".to_owned(),
        };
        format!("ParseAddr({}): {message}", Quoted(text))
    })
}

fn ipv4_mistake(text: &str) -> String {
    let at = |message: &str, place: usize| {
        let rest = Quoted(text.get(place..).unwrap_or_default());
        format!("{message} (at {rest})")
    };
    let (mut value, mut digits, mut fields) = (0_u32, 0, 0);
    for (place, letter) in text.char_indices() {
        if let Some(digit) = letter.to_digit(10) {
            if digits == 1 && value == 0 {
                return "IPv4 field has octet with leading zero".to_owned();
            }
            value = value * 10 + digit;
            digits += 1;
            if value > 255 {
                return "IPv4 field has value >255".to_owned();
            }
        } else if letter == '.' {
            if digits == 0 || place + 1 == text.len() {
                return at("IPv4 field must have at least one digit", place);
            }
            if fields == 3 {
                return "IPv4 address too long".to_owned();
            }
            (value, digits, fields) = (0, 0, fields + 1);
        } else {
            return at("unexpected character", place);
        }
    }
    "IPv4 address too short".to_owned()
}

impl Cidr {
    /// Returns the network without the bits after the prefix.
    pub(super) fn masked(self) -> Cidr {
        let Cidr { address, bits } = self;
        let address = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        };
        Cidr { address, bits }
    }

    pub(super) fn contains(self, address: IpAddr) -> bool {
        let Cidr { bits, .. } = self;
        address.is_ipv4() == self.address.is_ipv4()
            && Cidr { address, bits }.masked() == self.masked()
    }

    pub(super) fn contains_cidr(self, other: Cidr) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Returns whether an address can belong to a single host outside of its link.
pub(super) fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(one) if one.is_broadcast());
    !(is_broadcast
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local_unicast(address))
}

pub(super) fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

pub(super) fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}
