//! Chooses the socket for each packet.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use eyas_sctp::io::Transmit;

use super::Wire;
use crate::network::sources::source_towards;

/// Peers of which the kernel's choice is kept.
const MAX_KNOWN: usize = 256;

/// The sockets' choice, with what the kernel said of the way to peers since routes last changed.
#[derive(Debug, Default)]
pub(crate) struct SourceCache(BTreeMap<IpAddr, Option<IpAddr>>);

impl SourceCache {
    /// Routes or addresses have changed.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// Returns the socket for this packet: of its family and kind, and at its source address. If
    /// that is not specified, the kernel's routing decides which address to use.
    pub(crate) fn choose(&mut self, wires: &[Wire], transmit: &Transmit) -> Option<usize> {
        let remote = transmit.remote;
        let mut fitting = wires.iter().enumerate().filter(|(_, wire)| wire.leads_to(remote));
        let (first, _) = fitting.next()?;
        let others: Vec<(usize, &Wire)> = fitting.collect();
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
        if let Some(known) = self.0.get(&remote.ip()) {
            return *known;
        }
        // Without a port no UDP socket can be asked; the port does not change the way.
        let mut asked = remote;
        asked.set_port(9);
        let source = source_towards(asked).ok();
        if self.0.len() >= MAX_KNOWN {
            self.0.clear();
        }
        self.0.insert(remote.ip(), source);
        source
    }
}
