//! Finds the addresses and node ports that the other services have.

use std::net::Ipv4Addr;

use crate::services::{Allocated, Held};

/// First address that is allocated: those before it are for addresses that clients set.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 96, 1, 0]);

/// Number of addresses that can be allocated: `10.96.1.0` to `10.96.255.254`.
const ADDRESSES: u32 = 0xff00 - 1;

/// What all services have, except one that has `own`.
pub(super) struct Used<'a> {
    pub(super) all: &'a Allocated,
    pub(super) own: Held,
}

impl Used<'_> {
    pub(super) fn has_address(&self, address: &str) -> bool {
        self.all.has_address(address, &self.own)
    }

    /// Returns the first free address from a place that the uid of the service determines.
    pub(super) fn free_address(&self, uid: &str) -> Option<String> {
        let place = uid.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        let mut all = (0..ADDRESSES).map(|step| {
            let offset = (place % ADDRESSES + step) % ADDRESSES;
            Ipv4Addr::from_bits(FIRST_ADDRESS + offset).to_string()
        });
        all.find(|address| !self.has_address(address))
    }

    /// Returns whether a port is the node port of a port, or one of health checks.
    pub(super) fn has_port(&self, port: i64) -> bool {
        self.all.has_port(port, &self.own)
    }
}
