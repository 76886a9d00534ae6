//! The PROXY protocol, by which a load balancer tells the address of a client at the start of a
//! connection: versions 1 and 2 are read, version 2 is written
//! (<https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>).

use std::net::SocketAddr;

use ppp::{v1, v2};

/// The maximum length of a line of version 1, with its CRLF (section 2.1).
const MAX_LINE: usize = 107;
/// The length of the shortest header: `PROXY UNKNOWN` and CRLF.
const SHORTEST: usize = 15;
/// The length of a header of version 2 before its addresses (section 2.2).
const FIXED: usize = 16;
/// The signature of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The begin of version 1.
const PROXY: &[u8; 6] = b"PROXY ";

/// The bit of the value `PP2_TYPE_SSL` that says that the client connected over TLS (`PP2_CLIENT_SSL`).
const CLIENT_SSL: u8 = 1;

/// The maximum length of a header of version 2 that is accepted: its addresses have at most 216
/// bytes, and balancers add a few hundred bytes of certificates and identifiers.
pub const MAX_LENGTH: usize = FIXED + 4096;

/// The addresses of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The address of the client.
    pub source: SocketAddr,
    /// The address to which it connected.
    pub destination: SocketAddr,
}

/// The header in the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The begin of a header, at least this many bytes of which are missing. Whoever reads no more
    /// than that at once does not read beyond the header.
    Incomplete(usize),
    /// A complete header.
    Complete {
        /// Its length in bytes.
        length: usize,
        /// The addresses, unless the balancer does not know them, as for connections of its own
        /// (`LOCAL`, `UNKNOWN`), which are served as what they are (sections 2.1 and 2.2).
        addresses: Option<Addresses>,
        /// Whether the balancer says that the client's connection to it is protected by TLS
        /// (`PP2_TYPE_SSL` of version 2 with `PP2_CLIENT_SSL`, as HAProxy's `send-proxy-v2-ssl` sends it).
        is_encrypted: bool,
    },
}

/// The first bytes of a connection are no header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no header of the PROXY protocol: {0}")]
pub struct ProxyProtocolError(String);

impl ProxyProtocolError {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// Parses the first bytes of a connection.
///
/// # Errors
/// If they are no header of a known version, or one that is too long.
pub fn parse(bytes: &[u8]) -> Result<Header, ProxyProtocolError> {
    let begins_with = |wanted: &[u8]| {
        let length = bytes.len().min(wanted.len());
        bytes[..length] == wanted[..length]
    };
    let (is_line, is_binary) = (begins_with(PROXY), begins_with(SIGNATURE));
    if !is_line && !is_binary {
        return Err(ProxyProtocolError::new("it begins with something else"));
    }
    if bytes.len() < SHORTEST {
        return Ok(Header::Incomplete(SHORTEST - bytes.len()));
    }
    if is_line { version_1(bytes) } else { version_2(bytes) }
}

fn version_1(bytes: &[u8]) -> Result<Header, ProxyProtocolError> {
    let window = &bytes[..bytes.len().min(MAX_LINE)];
    let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
        return match bytes.len() < MAX_LINE {
            true => Ok(Header::Incomplete(1)),
            false => Err(ProxyProtocolError::new("its line is too long")),
        };
    };
    let line = &bytes[..=end];
    let header =
        v1::Header::try_from(line).map_err(|cause| ProxyProtocolError::new(cause.to_string()))?;
    if header.header.len() != line.len() {
        return Err(ProxyProtocolError::new("its line has a second end"));
    }
    let addresses = match header.addresses {
        v1::Addresses::Unknown => None,
        v1::Addresses::Tcp4(ip) => Some(Addresses {
            source: (ip.source_address, ip.source_port).into(),
            destination: (ip.destination_address, ip.destination_port).into(),
        }),
        v1::Addresses::Tcp6(ip) => Some(Addresses {
            source: (ip.source_address, ip.source_port).into(),
            destination: (ip.destination_address, ip.destination_port).into(),
        }),
    };
    let addresses = addresses.map(canonical);
    Ok(Header::Complete { length: line.len(), addresses, is_encrypted: false })
}

fn version_2(bytes: &[u8]) -> Result<Header, ProxyProtocolError> {
    let Some(fixed) = bytes.get(..FIXED) else {
        return Ok(Header::Incomplete(FIXED - bytes.len()));
    };
    let length = FIXED + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > MAX_LENGTH {
        return Err(ProxyProtocolError::new(format!("it has {length} bytes")));
    }
    let Some(header) = bytes.get(..length) else {
        return Ok(Header::Incomplete(length - bytes.len()));
    };
    let header =
        v2::Header::try_from(header).map_err(|cause| ProxyProtocolError::new(cause.to_string()))?;
    let addresses = match (header.command, header.addresses) {
        (v2::Command::Local, _) => None,
        // What is connected by other means has no address of the Internet.
        (_, v2::Addresses::Unspecified | v2::Addresses::Unix(_)) => None,
        (_, v2::Addresses::IPv4(ip)) => Some(Addresses {
            source: (ip.source_address, ip.source_port).into(),
            destination: (ip.destination_address, ip.destination_port).into(),
        }),
        (_, v2::Addresses::IPv6(ip)) => Some(Addresses {
            source: (ip.source_address, ip.source_port).into(),
            destination: (ip.destination_address, ip.destination_port).into(),
        }),
    };
    let is_encrypted = addresses.is_some() && names_tls(&header);
    Ok(Header::Complete { length, addresses: addresses.map(canonical), is_encrypted })
}

/// Returns whether a header says that the client uses TLS. Values that are malformed say nothing.
fn names_tls(header: &v2::Header<'_>) -> bool {
    let values = header.tlvs().map_while(Result::ok);
    let mut ssl = values.filter(|value| value.kind == u8::from(v2::Type::SSL));
    ssl.any(|value| value.value.first().is_some_and(|client| client & CLIENT_SSL != 0))
}

/// Undoes the mapping of IPv4 addresses, with which a sender makes both addresses one family.
fn canonical(addresses: Addresses) -> Addresses {
    let canonical = |one: SocketAddr| SocketAddr::new(one.ip().to_canonical(), one.port());
    Addresses { source: canonical(addresses.source), destination: canonical(addresses.destination) }
}

/// Returns the header of version 2 for a connection of this client. Its transport is `STREAM` for
/// clients over QUIC, too, because receivers accept no other; for an unknown client it is `LOCAL`.
pub fn header(client: Option<Addresses>) -> Option<Vec<u8>> {
    let Some(addresses) = client else {
        let command = v2::Version::Two | v2::Command::Local;
        return v2::Builder::new(command, 0).build().ok();
    };
    let (source, destination) = same_family(addresses);
    let command = v2::Version::Two | v2::Command::Proxy;
    v2::Builder::with_addresses(command, v2::Protocol::Stream, (source, destination)).build().ok()
}

/// Maps the addresses to the same family, which the protocol requires.
fn same_family(Addresses { source, destination }: Addresses) -> (SocketAddr, SocketAddr) {
    let mapped = |address: SocketAddr| match address {
        SocketAddr::V4(four) => SocketAddr::from((four.ip().to_ipv6_mapped(), four.port())),
        six => six,
    };
    match source.is_ipv4() == destination.is_ipv4() {
        true => (source, destination),
        false => (mapped(source), mapped(destination)),
    }
}

#[cfg(test)]
mod tests;
