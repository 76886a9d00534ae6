//! Converts socket addresses to and from the kernel's byte layout.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use nix::libc;

/// Bytes of a `struct sockaddr_in`.
pub(super) const V4: usize = 16;
/// Bytes of a `struct sockaddr_in6`.
pub(super) const V6: usize = 28;
/// Bytes of a `struct sockaddr_storage`.
pub(super) const STORAGE: usize = 128;

/// Encodes an address as a `struct sockaddr_storage`, of which the first [`V4`] or [`V6`] bytes are
/// the address.
pub(super) fn encode(address: SocketAddr) -> [u8; STORAGE] {
    let mut bytes = [0; STORAGE];
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    let family = match address {
        SocketAddr::V4(v4) => {
            bytes[4..8].copy_from_slice(&v4.ip().octets());
            libc::AF_INET
        }
        SocketAddr::V6(v6) => {
            bytes[4..8].copy_from_slice(&v6.flowinfo().to_ne_bytes());
            bytes[8..24].copy_from_slice(&v6.ip().octets());
            bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
            libc::AF_INET6
        }
    };
    bytes[..2].copy_from_slice(&u16::try_from(family).unwrap_or_default().to_ne_bytes());
    bytes
}

/// Decodes the address at the start of these bytes; an IPv4-mapped IPv6 address is returned as an
/// IPv4 address.
pub(super) fn decode(bytes: &[u8]) -> Option<SocketAddr> {
    let family = libc::c_int::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    match family {
        libc::AF_INET => {
            let octets: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
            Some(SocketAddr::new(Ipv4Addr::from(octets).into(), port))
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
            let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
            match Ipv6Addr::from(octets).to_canonical() {
                IpAddr::V4(v4) => Some(SocketAddr::new(v4.into(), port)),
                IpAddr::V6(v6) => Some(SocketAddrV6::new(v6, port, 0, scope).into()),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn addresses_survive_and_mapped_ones_are_unmapped() {
        for text in ["192.0.2.7:5000", "[2001:db8::1]:9899", "[fe80::1%3]:1"] {
            let address = text.parse().unwrap();
            assert_eq!(decode(&encode(address)), Some(address));
        }
        let mapped = "[::ffff:192.0.2.7]:80".parse().unwrap();
        assert_eq!(decode(&encode(mapped)), Some("192.0.2.7:80".parse().unwrap()));
    }

    #[test]
    fn a_missing_or_truncated_address_is_none() {
        assert_eq!(decode(&[0; 128]), None);
        let whole = encode("[2001:db8::1]:9899".parse().unwrap());
        for length in 0..28 {
            assert_eq!(decode(&whole[..length]), None);
        }
    }
}
