//! Chooses the socket for each packet.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use eyas_host::addresses::source_address_for;
use eyas_sctp::io::Transmit;

use super::Wire;

/// The maximum number of peers for which the kernel's choice is cached.
const MAX_PEERS: usize = 256;

/// The source addresses that the kernel chose for peers since routes last changed.
#[derive(Debug, Default)]
pub(crate) struct SourceCache(BTreeMap<IpAddr, Option<IpAddr>>);

impl SourceCache {
    /// Discards all entries, because routes or addresses have changed.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the socket for this packet: of its family and kind, and at its source address. If
    /// that is not specified, the kernel's routing decides which address to use.
    pub(crate) fn choose(&mut self, wires: &[Wire], transmit: &Transmit) -> Option<usize> {
        let remote = transmit.remote;
        let mut suitable = wires.iter().enumerate().filter(|(_, wire)| wire.can_reach(remote));
        let (first, _) = suitable.next()?;
        let others: Vec<(usize, &Wire)> = suitable.collect();
        if others.is_empty() {
            return Some(first);
        }
        let source = transmit.local.or_else(|| self.source(remote));
        let at = |ip: Option<IpAddr>| {
            let mut all = std::iter::once((first, &wires[first])).chain(others.iter().copied());
            all.find(|(_, wire)| match ip {
                Some(ip) => wire.local().ip() == ip,
                None => wire.local().ip().is_unspecified(),
            })
        };
        let chosen = source.and_then(|source| at(Some(source))).or_else(|| at(None));
        Some(chosen.map_or(first, |(index, _)| index))
    }

    /// Returns the address that the kernel would send from.
    pub(crate) fn source(&mut self, remote: SocketAddr) -> Option<IpAddr> {
        if let Some(cached) = self.0.get(&remote.ip()) {
            return *cached;
        }
        // A UDP socket needs a port to be connected; it does not affect the route.
        let mut destination = remote;
        destination.set_port(9);
        let source = source_address_for(destination).ok();
        if self.0.len() >= MAX_PEERS {
            self.0.clear();
        }
        self.0.insert(remote.ip(), source);
        source
    }
}
