//! A datagram between a SOCKS5 client and the proxy (RFC 1928 §7).
//!
//! ```text
//! +-----+------+------+----------+----------+----------+
//! | RSV | FRAG | ATYP | DST.ADDR | DST.PORT |   DATA   |
//! +-----+------+------+----------+----------+----------+
//! |  2  |  1   |  1   | Variable |    2     | Variable |
//! +-----+------+------+----------+----------+----------+
//! ```

use std::net::SocketAddr;

use bytes::{BufMut, Bytes, BytesMut};
use eyas::race::target::TargetHost;
use eyas_relay::destination::Destination;
use eyas_relay::handshake::{socks5_address, write_socks5_address, write_socks5_name};

/// The length of the fields before the address.
const PREFIX: usize = 3;
/// The length of the header with an IPv6 address, the longest one that is written.
const LONGEST_HEADER: usize = PREFIX + 19;

/// Why a datagram of a client is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramFault {
    /// It is a fragment. Servers that do not reassemble fragments must drop them.
    Fragment,
    /// It is malformed.
    Malformed,
}

/// Returns the destination and the payload of a client's datagram.
///
/// # Errors
/// If it must be dropped.
pub fn read(bytes: &[u8]) -> Result<(Destination, &[u8]), DatagramFault> {
    match bytes.get(..PREFIX) {
        Some([0, 0, 0]) => {}
        Some([0, 0, _]) => return Err(DatagramFault::Fragment),
        _ => return Err(DatagramFault::Malformed),
    }
    match socks5_address(bytes, PREFIX) {
        Ok(Some((destination, end))) => {
            Ok((destination.map_err(|_| DatagramFault::Malformed)?, &bytes[end..]))
        }
        Ok(None) | Err(_) => Err(DatagramFault::Malformed),
    }
}

/// Returns the datagram for the client with this source and payload.
pub fn write(from: SocketAddr, data: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(LONGEST_HEADER + data.len());
    bytes.put_slice(&[0; PREFIX]);
    write_socks5_address(&mut bytes, from);
    bytes.put_slice(data);
    bytes.freeze()
}

/// Returns the same with a source that may be known only by name.
pub(crate) fn write_from(from: &Destination, data: &[u8]) -> Bytes {
    match &from.host {
        TargetHost::Literal(ip, _) => write(SocketAddr::new(*ip, from.port), data),
        TargetHost::Name(name) => {
            let mut bytes = BytesMut::with_capacity(PREFIX + 4 + name.len() + data.len());
            bytes.put_slice(&[0; PREFIX]);
            write_socks5_name(&mut bytes, name, from.port);
            bytes.put_slice(data);
            bytes.freeze()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_and_addresses_are_read() {
        let parsed = |bytes: &[u8]| {
            let (destination, data) = read(bytes).expect("it is valid");
            (destination.to_string(), data.to_vec())
        };
        let with_address = b"\0\0\0\x01\xc0\0\x02\x01\0\x35x";
        assert_eq!(parsed(with_address), ("192.0.2.1:53".into(), b"x".into()));
        assert_eq!(parsed(b"\0\0\0\x03\x06a.test\0\x35"), ("a.test:53".into(), b"".into()));
    }

    #[test]
    fn fragments_and_malformed_datagrams_are_dropped() {
        assert_eq!(read(b"\0\0\x01\x01\xc0\0\x02\x01\0\x35x"), Err(DatagramFault::Fragment));
        for bytes in [
            &b""[..],
            b"\0\0",
            b"\x01\0\0\x01\xc0\0\x02\x01\0\x35",
            b"\0\0\0\x02\xc0\0\x02\x01\0\x35",
            b"\0\0\0\x01\xc0\0\x02\x01\0",
            b"\0\0\0\x01\xc0\0\x02\x01\0\0",
            b"\0\0\0\x03\x09a.test\0\x35",
            b"\0\0\0\x03\x01\xff\0\x35",
        ] {
            assert_eq!(read(bytes), Err(DatagramFault::Malformed), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(v6: bool, ip: u128, port in 1_u16.., data: Vec<u8>) {
            let ip: std::net::IpAddr = match v6 {
                true => std::net::Ipv6Addr::from_bits(ip).into(),
                false => std::net::Ipv4Addr::from_bits(ip as u32).into(),
            };
            let from = SocketAddr::new(ip.to_canonical(), port);
            let bytes = write(from, &data);
            let (destination, read) = read(&bytes).expect("it is valid");
            prop_assert_eq!(destination.to_string(), from.to_string());
            prop_assert_eq!(read, &data[..]);
        }

        #[test]
        fn arbitrary_octets_never_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }
}
