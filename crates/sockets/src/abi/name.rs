//! Names of sockets: `sockaddr_in` and `sockaddr_in6`. The port is the one of SCTP.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::layout::{array, put, put_u16, u16_at, u32_at};
use super::number::socket::{AF_INET, AF_INET6};

/// Bytes of a `sockaddr_in`.
pub const IPV4_NAME: usize = 16;

/// Bytes of a `sockaddr_in6`.
pub const IPV6_NAME: usize = 28;

/// Bytes of a `sockaddr_storage`, which the structs of options hold.
pub const STORAGE: usize = 128;

/// Why bytes are not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Fewer bytes than the family takes.
    TooShort,
    /// A family that SCTP does not have.
    Family(u16),
}

/// A name as bytes, as long as its family makes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; IPV6_NAME],
    length: usize,
}

impl Name {
    /// A name of the family that the address has.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        let mut bytes = [0; IPV6_NAME];
        put(&mut bytes, 2, &address.port().to_be_bytes());
        let length = match address {
            SocketAddr::V4(v4) => {
                put_u16(&mut bytes, 0, AF_INET as u16);
                put(&mut bytes, 4, &v4.ip().octets());
                IPV4_NAME
            }
            SocketAddr::V6(v6) => {
                put_u16(&mut bytes, 0, AF_INET6 as u16);
                put(&mut bytes, 4, &v6.flowinfo().to_be_bytes());
                put(&mut bytes, 8, &v6.ip().octets());
                put(&mut bytes, 24, &v6.scope_id().to_ne_bytes());
                IPV6_NAME
            }
        };
        Self { bytes, length }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The address that bytes say, and how many of them say it.
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

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::read(self.as_bytes()) {
            Ok((address, _)) => write!(f, "{address}"),
            Err(error) => write!(f, "{error:?}"),
        }
    }
}
