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
use eyas::race::target::Host;

use crate::handshake::{Destination, socks5_address, write_socks5_address, write_socks5_name};

/// Octets before the address.
const PREFIX: usize = 3;
/// Octets before the data where the address is one of IPv6, the longest that is written.
const LONGEST_HEADER: usize = PREFIX + 19;

/// Why a datagram of a client goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is a piece of one. A server need not put pieces together, and then must drop them.
    Fragment,
    /// It makes no sense.
    Malformed,
}

/// Where a client's datagram is to go, and what is in it.
///
/// # Errors
/// If it goes nowhere.
pub fn read(bytes: &[u8]) -> Result<(Destination, &[u8]), Fault> {
    match bytes.get(..PREFIX) {
        Some([0, 0, 0]) => {}
        Some([0, 0, _]) => return Err(Fault::Fragment),
        _ => return Err(Fault::Malformed),
    }
    match socks5_address(bytes, PREFIX) {
        Ok(Some((destination, end))) => {
            Ok((destination.map_err(|_| Fault::Malformed)?, &bytes[end..]))
        }
        Ok(None) | Err(_) => Err(Fault::Malformed),
    }
}

/// What a client is given of a datagram that has come from there.
pub fn write(from: SocketAddr, data: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(LONGEST_HEADER + data.len());
    bytes.put_slice(&[0; PREFIX]);
    write_socks5_address(&mut bytes, from);
    bytes.put_slice(data);
    bytes.freeze()
}

/// What a client is given of a datagram that has come from a destination of which this is all that is
/// known.
pub(crate) fn write_from(from: &Destination, data: &[u8]) -> Bytes {
    match &from.host {
        Host::Literal(ip, _) => write(SocketAddr::new(*ip, from.port), data),
        Host::Name(name) => {
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
        let said = |bytes: &[u8]| {
            let (destination, data) = read(bytes).expect("it is right");
            (destination.to_string(), data.to_vec())
        };
        assert_eq!(said(b"\0\0\0\x01\xc0\0\x02\x01\0\x35x"), ("192.0.2.1:53".into(), b"x".into()));
        assert_eq!(said(b"\0\0\0\x03\x06a.test\0\x35"), ("a.test:53".into(), b"".into()));
    }

    #[test]
    fn fragments_and_malformed_datagrams_are_dropped() {
        assert_eq!(read(b"\0\0\x01\x01\xc0\0\x02\x01\0\x35x"), Err(Fault::Fragment));
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
            assert_eq!(read(bytes), Err(Fault::Malformed), "{bytes:?}");
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
            let (destination, read) = read(&bytes).expect("it is right");
            prop_assert_eq!(destination.to_string(), from.to_string());
            prop_assert_eq!(read, &data[..]);
        }

        #[test]
        fn arbitrary_octets_do_no_harm(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }
}
