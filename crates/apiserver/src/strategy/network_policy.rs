//! Validates network policies.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/networking/validation` in Kubernetes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::Hooks;
use super::field::Field;
use super::ip::parse_ip;
use super::labels::check_selector;
use super::port::{check_port_number, port_name_faults};
use super::report::Report;
use crate::object::Object;

pub(super) const HOOKS: Hooks = Hooks::checked_by(check);

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
const POLICY_TYPES: [&str; 2] = ["Ingress", "Egress"];

/// The lists of rules, with the members that have the peers.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

fn check(policy: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(policy, "spec");
    check_selector(&spec.at("podSelector"), report);
    // A block that the stored policy has is not validated again.
    let stored_spec = old.map(|old| Field::of(old, "spec"));
    let stored = stored_spec.as_ref().map(blocks_of).unwrap_or_default();
    for (direction, peers) in DIRECTIONS {
        for rule in spec.at(direction).items() {
            for port in rule.at("ports").items() {
                check_port(&port, report);
            }
            for peer in rule.at(peers).items() {
                check_peer(&peer, &stored, report);
            }
        }
    }
    let types = spec.at("policyTypes");
    if types.items().count() > POLICY_TYPES.len() {
        let why = "may not specify more than two policyTypes";
        report.invalid(&types.path, types.shown(), why);
        return;
    }
    for policy_type in types.items() {
        policy_type.check_one_of(report, &POLICY_TYPES);
    }
}

/// Returns all address blocks of a policy.
fn blocks_of<'v>(spec: &Field<'_, 'v>) -> BTreeSet<&'v str> {
    let mut blocks = BTreeSet::new();
    for (direction, peers) in DIRECTIONS {
        for rule in spec.at(direction).items() {
            for peer in rule.at(peers).items() {
                let block = peer.at("ipBlock");
                if block.exists() {
                    blocks.insert(block.at("cidr").text());
                    blocks.extend(block.at("except").items().map(|it| it.text()));
                }
            }
        }
    }
    blocks
}

fn check_port(rule: &Field<'_, '_>, report: &mut Report) {
    let (protocol, port, end) = (rule.at("protocol"), rule.at("port"), rule.at("endPort"));
    if protocol.exists() {
        protocol.check_one_of(report, &PROTOCOLS);
    }
    if !port.exists() {
        if end.exists() {
            end.invalid(report, "may not be specified when `port` is not specified");
        }
    } else if port.value.is_string() {
        if end.exists() {
            end.invalid(report, "may not be specified when `port` is non-numeric");
        }
        port.check_text(report, port_name_faults);
    } else {
        check_port_number(&port, report);
        if end.exists() {
            if end.number() < port.number() {
                let why = "must be greater than or equal to `port`";
                report.invalid(&end.path, port.shown(), why);
            }
            check_port_number(&end, report);
        }
    }
}

fn check_peer(peer: &Field<'_, '_>, stored: &BTreeSet<&str>, report: &mut Report) {
    let selectors = ["podSelector", "namespaceSelector"].map(|name| peer.at(name).exists());
    for name in ["podSelector", "namespaceSelector"] {
        let selector = peer.at(name);
        if selector.exists() {
            check_selector(&selector, report);
        }
    }
    let block = peer.at("ipBlock");
    if block.exists() {
        check_block(&block, stored, report);
    }
    match (block.exists(), selectors.contains(&true)) {
        (false, false) => report.required(&peer.path, "must specify a peer"),
        (true, true) => {
            let why = "may not specify both ipBlock and another peer";
            report.forbidden(&peer.path, why);
        }
        _ => {}
    }
}

fn check_block(block: &Field<'_, '_>, stored: &BTreeSet<&str>, report: &mut Report) {
    let cidr = block.at("cidr");
    if cidr.is_empty() {
        cidr.required(report);
        return;
    }
    check_cidr(&cidr, stored, report);
    let Some(whole) = Cidr::read(cidr.text()) else {
        return;
    };
    for except in block.at("except").items() {
        check_cidr(&except, stored, report);
        if let Some(part) = Cidr::read(except.text())
            && !(whole.contains(part.address) && whole.bits < part.bits)
        {
            except.invalid(report, "must be a strict subset of `cidr`");
        }
    }
}

/// Checks a block of addresses, unless the stored object has it (`IsValidCIDRForLegacyField`).
fn check_cidr(field: &Field<'_, '_>, stored: &BTreeSet<&str>, report: &mut Report) {
    let text = field.text();
    if stored.contains(text) {
        return;
    }
    let Some(cidr) = Cidr::read(text) else {
        let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        field.invalid(report, why);
        return;
    };
    let (address, bits) = text.split_once('/').unwrap_or_default();
    let has_zeros = address.parse::<IpAddr>().is_err() || bits.len() > 1 && bits.starts_with('0');
    let is_mapped =
        matches!(cidr.address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
    if has_zeros {
        field.invalid(report, "must not have leading 0s in IP or prefix length");
    } else if is_mapped {
        field.invalid(report, "must not have an IPv4-mapped IPv6 address");
    } else if cidr.first() != cidr.number() {
        field.invalid(report, "must not have bits set beyond the prefix length");
    }
}

/// A block of addresses: those that begin with the first `bits` bits of `address`.
#[derive(Clone, Copy)]
struct Cidr {
    address: IpAddr,
    bits: u32,
}

impl Cidr {
    /// Reads a block as Kubernetes' `ParseCIDRSloppy`.
    fn read(text: &str) -> Option<Cidr> {
        let (address, bits) = text.split_once('/')?;
        let address = parse_ip(address)?;
        let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = bits.parse().ok().filter(|_| is_number)?;
        let cidr = Cidr { address, bits };
        (bits <= cidr.width()).then_some(cidr)
    }

    fn width(self) -> u32 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    fn number(self) -> u128 {
        match self.address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    /// Returns the first address of the block as a number.
    fn first(self) -> u128 {
        let rest = self.width() - self.bits;
        self.number()
            .checked_shr(rest)
            .and_then(|kept| kept.checked_shl(rest))
            .unwrap_or(0)
    }

    fn contains(self, address: IpAddr) -> bool {
        let bits = self.bits;
        let is_same = address.is_ipv4() == self.address.is_ipv4();
        is_same && Cidr { address, bits }.first() == self.first()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_block_of_the_stored_policy_is_not_validated_again() {
        let policy = |blocks: &[&str]| {
            let peers = blocks.iter().map(|cidr| json!({"ipBlock": {"cidr": cidr}}));
            let peers: Vec<_> = peers.chain([json!({"podSelector": {}})]).collect();
            let policy = json!({"spec": {"ingress": [{"from": peers}]}});
            Object::stored(policy.as_object().cloned().unwrap_or_default())
        };
        let errors = |old: &[&str], new: &[&str]| {
            let mut report = Report::default();
            check(&policy(new), Some(&policy(old)), &mut report);
            report.into_errors().len()
        };
        assert_eq!(errors(&["010.0.0.0/8"], &["010.0.0.0/8"]), 0);
        assert_eq!(errors(&["010.0.0.0/8"], &["010.0.0.0/8", "x"]), 1);
        assert_eq!(errors(&["10.0.0.0/8"], &["010.0.0.0/8"]), 1);
        assert_eq!(errors(&[], &[""]), 1, "a peer without a block allows none");
    }
}
