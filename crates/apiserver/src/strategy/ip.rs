//! Reads and validates IP addresses in the fields of an object.

use std::net::{IpAddr, Ipv4Addr};

use super::field::Field;
use super::report::Report;

/// Reads an address as Kubernetes' `ParseIPSloppy`: numbers of IPv4 can begin with zeros.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| {
        let parts: Vec<u8> = text
            .split('.')
            .map(|part| {
                let digits = part.trim_start_matches('0');
                let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
                match (part, digits) {
                    ("", _) => None,
                    (_, "") => Some(0),
                    _ => digits.parse().ok().filter(|_| is_number),
                }
            })
            .collect::<Option<_>>()?;
        let octets: [u8; 4] = parts.try_into().ok()?;
        Some(IpAddr::from(octets))
    })
}

/// Returns whether an address is one of IPv4, perhaps in IPv6.
pub(super) fn is_v4(ip: IpAddr) -> bool {
    to_v4(ip).is_some()
}

fn to_v4(ip: IpAddr) -> Option<Ipv4Addr> {
    match ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(ip) => ip.to_ipv4_mapped(),
    }
}

/// Checks that a text is an address without leading zeros, and not one of IPv4 in IPv6 (`IsValidIPForLegacyField`).
///
/// Returns the address if there is no error.
pub(super) fn check_ip(field: &Field<'_, '_>, report: &mut Report) -> Option<IpAddr> {
    let text = field.text();
    let Some(ip) = parse_ip(text) else {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        field.invalid(report, why);
        return None;
    };
    let fault = match ip {
        IpAddr::V4(_) if text.parse::<IpAddr>().is_err() => "must not have leading 0s",
        IpAddr::V6(_) if is_v4(ip) => "must not be an IPv4-mapped IPv6 address",
        _ => return Some(ip),
    };
    field.invalid(report, fault);
    None
}

/// Checks that an endpoint can have an address (`ValidateEndpointIP`).
pub(super) fn check_endpoint(field: &Field<'_, '_>, ip: IpAddr, report: &mut Report) {
    if ip.is_unspecified() {
        let why = format!("may not be unspecified ({})", field.text());
        field.invalid(report, why);
    }
    let ip = to_v4(ip).map_or(ip, IpAddr::V4);
    let (is_local, is_local_group) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (
            ip.is_unicast_link_local(),
            ip.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    for (is_wrong, why) in [
        (
            ip.is_loopback(),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ),
        (
            is_local,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        ),
        (
            is_local_group,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    ] {
        if is_wrong {
            field.invalid(report, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_address_can_begin_with_zeros() {
        for (text, ip) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("010.000.0.01", Some("10.0.0.1")),
            ("10.0.0.0256", None),
            ("10.0.0", None),
            ("10.0.0.", None),
            ("10.0.0.+1", None),
            ("a.b", None),
            ("", None),
            ("::1", Some("::1")),
        ] {
            let expected = ip.map(|ip| ip.parse().unwrap());
            assert_eq!(parse_ip(text), expected, "{text}");
        }
    }
}
