//! The client's address at the start of a connection: version 2 of the PROXY protocol.

use std::net::SocketAddr;

use ppp::v2::{Builder, Command, Protocol, Version};

use super::pool::Owner;

/// Returns the header for a connection of this client. Upstreams accept only streams, so it is `STREAM` for
/// clients over QUIC, too; for an unknown client it is LOCAL.
pub(super) fn header(owner: Owner) -> Option<Vec<u8>> {
    let Some((client, local)) = owner else {
        let command = Version::Two | Command::Local;
        return Builder::new(command, 0).build().ok();
    };
    let (client, local) = same_family(client, local);
    let command = Version::Two | Command::Proxy;
    Builder::with_addresses(command, Protocol::Stream, (client, local)).build().ok()
}

/// Maps the addresses to the same family, which the protocol requires.
fn same_family(client: SocketAddr, local: SocketAddr) -> (SocketAddr, SocketAddr) {
    let mapped = |address: SocketAddr| match address {
        SocketAddr::V4(four) => SocketAddr::from((four.ip().to_ipv6_mapped(), four.port())),
        six => six,
    };
    match client.is_ipv4() == local.is_ipv4() {
        true => (client, local),
        false => (mapped(client), mapped(local)),
    }
}

#[cfg(test)]
mod tests {
    use ppp::v2::{Addresses, Header};

    use super::*;

    #[test]
    fn the_header_can_be_parsed_back() {
        for (client, local) in [
            ("192.0.2.1:5000", "198.51.100.1:443"),
            ("[2001:db8::1]:5000", "[2001:db8::2]:443"),
            ("192.0.2.1:5000", "[::]:443"),
        ] {
            let (client, local): (SocketAddr, SocketAddr) =
                (client.parse().unwrap(), local.parse().unwrap());
            let bytes = header(Some((client, local))).unwrap();
            let read = Header::try_from(&bytes[..]).unwrap();
            assert_eq!((read.command, read.protocol), (Command::Proxy, Protocol::Stream));
            let source = match read.addresses {
                Addresses::IPv4(read) => SocketAddr::from((read.source_address, read.source_port)),
                Addresses::IPv6(read) => {
                    let ip = read.source_address.to_canonical();
                    SocketAddr::from((ip, read.source_port))
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(source, client);
        }
        let bytes = header(None).unwrap();
        assert_eq!(Header::try_from(&bytes[..]).unwrap().command, Command::Local);
    }
}
