//! IPv4 address, IPv6 address, supported address types.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.2.1>
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |           Type = 5            |          Length = 8           |
//! +-------------------------------+-------------------------------+
//! |                         IPv4 Address                          |
//! +---------------------------------------------------------------+
//!
//! +-------------------------------+-------------------------------+
//! |           Type = 6            |          Length = 20          |
//! +-------------------------------+-------------------------------+
//! |                   IPv6 Address, 16 bytes                      |
//! +---------------------------------------------------------------+
//!
//! +-------------------------------+-------------------------------+
//! |           Type = 12           |            Length             |
//! +-------------------------------+-------------------------------+
//! |        Address Type #1        |        Address Type #2        |
//! +-------------------------------+-------------------------------+
//! \                              ...                              \
//! ```

use bytes::BytesMut;
use core::net::IpAddr;

use super::{ELEMENT_HEADER, PacketView, ParameterType};
use crate::wire::records::{WireRecord, WireRecords};

/// Parses an address parameter of either family; its length must be correct.
pub(crate) fn parse(parameter: PacketView<'_>) -> Option<IpAddr> {
    let address = parameter.value().bytes();
    match ParameterType(parameter.u16_at(0)?) {
        ParameterType::IPV4_ADDRESS => <[u8; 4]>::try_from(address).ok().map(IpAddr::from),
        ParameterType::IPV6_ADDRESS => <[u8; 16]>::try_from(address).ok().map(IpAddr::from),
        _ => None,
    }
}

/// Returns the length of the parameter for `address`.
pub(crate) const fn encoded_len(address: IpAddr) -> usize {
    ELEMENT_HEADER + if address.is_ipv4() { 4 } else { 16 }
}

/// Address families that a side can use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SupportedAddressTypes {
    /// IPv4.
    pub ipv4: bool,
    /// IPv6.
    pub ipv6: bool,
}

impl SupportedAddressTypes {
    /// Both, which is the meaning of a missing parameter.
    pub const ALL: Self = Self { ipv4: true, ipv6: true };

    /// Returns whether its sender can use `address`.
    #[must_use]
    pub const fn allows(self, address: IpAddr) -> bool {
        if address.is_ipv4() { self.ipv4 } else { self.ipv6 }
    }

    pub(super) fn parse(parameter: PacketView<'_>) -> Self {
        let mut types = Self::default();
        for number in WireRecords::<u16>::new(parameter.value().bytes()) {
            types.ipv4 |= number == ParameterType::IPV4_ADDRESS.0;
            types.ipv6 |= number == ParameterType::IPV6_ADDRESS.0;
        }
        types
    }

    pub(super) fn encode_value(self, buffer: &mut BytesMut) {
        if self.ipv4 {
            ParameterType::IPV4_ADDRESS.0.write(buffer);
        }
        if self.ipv6 {
            ParameterType::IPV6_ADDRESS.0.write(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Parameter;
    use crate::wire::parameter::tests::{parse_one, round_trip};

    #[test]
    fn addresses_of_both_families() {
        let bytes = [0, 5, 0, 8, 192, 0, 2, 1];
        assert_eq!(parse_one(&bytes), Parameter::Address([192, 0, 2, 1].into()));
        round_trip(&bytes);
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&[0, 6, 0, 20]);
        bytes[19] = 1;
        assert_eq!(parse_one(&bytes).address(), Some("::1".parse().expect("an address")));
        round_trip(&bytes);
    }

    #[test]
    fn an_address_of_another_length_is_malformed() {
        for bytes in [&[0, 5, 0, 7, 1, 2, 3][..], &[0, 6, 0, 8, 1, 2, 3, 4], &[0, 5, 0, 4]] {
            assert!(matches!(parse_one(bytes), Parameter::Malformed { .. }), "{bytes:?}");
        }
    }

    #[test]
    fn families_are_listed() {
        let both = SupportedAddressTypes { ipv4: true, ipv6: true };
        let bytes = [0, 12, 0, 8, 0, 5, 0, 6];
        assert_eq!(parse_one(&bytes), Parameter::SupportedAddressTypes(both));
        round_trip(&bytes);
        let six = SupportedAddressTypes { ipv4: false, ipv6: true };
        let with_host_names = [0, 12, 0, 9, 0, 11, 0, 6, 9];
        assert_eq!(parse_one(&with_host_names), Parameter::SupportedAddressTypes(six));
    }
}
