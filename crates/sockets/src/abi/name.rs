//! Names of sockets: `sockaddr_in` and `sockaddr_in6`, with the SCTP port.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::layout::{array, put_u16, u16_at, u32_at, write_field};
use super::number::socket::{AF_INET, AF_INET6};

/// The size of a `sockaddr_in`.
pub const IPV4_NAME: usize = 16;

/// The size of a `sockaddr_in6`.
pub const IPV6_NAME: usize = 28;

/// The size of a `sockaddr_storage`, as in the structs of options.
pub const STORAGE: usize = 128;

/// The error of an invalid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// There are fewer bytes than the family requires.
    TooShort,
    /// SCTP does not support this family.
    Family(u16),
}

/// An encoded name, whose length depends on its family.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SocketName {
    bytes: [u8; IPV6_NAME],
    length: usize,
}

impl SocketName {
    /// Creates the name of an address, with its family.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        let mut bytes = [0; IPV6_NAME];
        write_field(&mut bytes, 2, &address.port().to_be_bytes());
        let length = match address {
            SocketAddr::V4(v4) => {
                put_u16(&mut bytes, 0, AF_INET as u16);
                write_field(&mut bytes, 4, &v4.ip().octets());
                IPV4_NAME
            }
            SocketAddr::V6(v6) => {
                put_u16(&mut bytes, 0, AF_INET6 as u16);
                write_field(&mut bytes, 4, &v6.flowinfo().to_be_bytes());
                write_field(&mut bytes, 8, &v6.ip().octets());
                write_field(&mut bytes, 24, &v6.scope_id().to_ne_bytes());
                IPV6_NAME
            }
        };
        Self { bytes, length }
    }

    /// Returns the encoded name.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Parses a name, and returns the address and the length of the name.
    ///
    /// # Errors
    /// If they are too few or of another family.
    pub fn read(bytes: &[u8]) -> Result<(SocketAddr, usize), NameError> {
        if bytes.len() < 2 {
            return Err(NameError::TooShort);
        }
        let port = u16::from_be_bytes(array(bytes, 2));
        match i32::from(u16_at(bytes, 0)) {
            AF_INET if bytes.len() >= IPV4_NAME => {
                let ip = Ipv4Addr::from(array::<4>(bytes, 4));
                Ok((SocketAddr::new(IpAddr::V4(ip), port), IPV4_NAME))
            }
            AF_INET6 if bytes.len() >= IPV6_NAME => {
                let ip = Ipv6Addr::from(array::<16>(bytes, 8));
                let scope = u32_at(bytes, 24);
                Ok((SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope)), IPV6_NAME))
            }
            AF_INET | AF_INET6 => Err(NameError::TooShort),
            other => Err(NameError::Family(other as u16)),
        }
    }
}

impl fmt::Debug for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::read(self.as_bytes()) {
            Ok((address, _)) => write!(f, "{address}"),
            Err(error) => write!(f, "{error:?}"),
        }
    }
}
