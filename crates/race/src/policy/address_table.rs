//! The policy table of destination address selection (RFC 6724 §2.1).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

/// Prefix, length, precedence and label of the RFC's table, longest prefix first.
pub(crate) const RFC_6724: [(u128, u8, u32, u32); 9] = [
    (1, 128, 50, 0),               // ::1/128
    (0xffff << 32, 96, 35, 4),     // ::ffff:0:0/96
    (0, 96, 1, 3),                 // ::/96
    (0x2001_0000 << 96, 32, 5, 5), // 2001::/32
    (0x2002 << 112, 16, 30, 2),    // 2002::/16
    (0x3ffe << 112, 16, 1, 12),    // 3ffe::/16
    (0xfec0 << 112, 10, 1, 11),    // fec0::/10
    (0xfc00 << 112, 7, 3, 13),     // fc00::/7
    (0, 0, 40, 1),                 // ::/0
];

/// Precedences, labels and scopes of prefixes, each list with the longest prefix first. IPv4
/// addresses are looked up as IPv4-mapped ones. The default is the table of RFC 6724.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressTable {
    /// The precedence of a destination; greater is preferred.
    pub precedences: Vec<PrefixValue>,
    /// The label; destinations whose source has the same one are preferred.
    pub labels: Vec<PrefixValue>,
    /// The scope of an IPv4 address, as in IPv6 (RFC 4291 §2.7); without a row, that of RFC 6724
    /// §3.2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<PrefixValue>,
}

/// A value for the addresses with a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixValue {
    /// The prefix.
    pub prefix: Ipv6Addr,
    /// Its length in bits.
    pub len: u8,
    /// The precedence or label.
    pub value: u32,
}

impl Default for AddressTable {
    fn default() -> Self {
        let row =
            |prefix, len, value| PrefixValue { prefix: Ipv6Addr::from_bits(prefix), len, value };
        let rows = RFC_6724.iter();
        Self {
            precedences: rows
                .clone()
                .map(|(prefix, len, value, _)| row(*prefix, *len, *value))
                .collect(),
            labels: rows.map(|(prefix, len, _, value)| row(*prefix, *len, *value)).collect(),
            scopes: Vec::new(),
        }
    }
}
