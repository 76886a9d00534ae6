//! The client of an association, and the checks on its datagrams; pure.

use std::net::SocketAddr;

use eyas_relay::destination::Destination;
use eyas_relay::rules::{ClientRules, RuleVerdict};

use super::datagram::{self, DatagramFault};
use crate::report::DropReason;

/// The set-up of an association.
#[derive(Clone, Debug)]
pub(crate) struct AssociationSetup {
    /// The source port of its datagrams, if it was announced.
    pub port: Option<u16>,
    /// The rules for destinations, with the address of the client's connection.
    pub rules: ClientRules,
    /// The limit on concurrent destinations. Beyond it, the least recently used one is removed.
    pub destinations: usize,
}

/// The client of an association.
#[derive(Debug)]
pub(super) struct AssociationOwner {
    /// The source port of its datagrams, if it was announced.
    port: Option<u16>,
    pub(super) rules: ClientRules,
    /// The source of its first datagram, once there is one.
    address: Option<SocketAddr>,
    pub(super) dropped: [u64; DropReason::NAMES.len()],
}

impl AssociationOwner {
    pub(super) fn new(setup: &AssociationSetup) -> Self {
        Self {
            port: setup.port,
            rules: setup.rules.clone(),
            address: None,
            dropped: Default::default(),
        }
    }

    /// Returns the client's address for datagrams, once it has sent one.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns the destination and the payload of a datagram, if it is the client's and allowed.
    pub(super) fn accept<'a>(
        &mut self,
        from: SocketAddr,
        bytes: &'a [u8],
    ) -> Option<(Destination, &'a [u8])> {
        match self.check(from, bytes) {
            Ok(accepted) => Some(accepted),
            Err(why) => {
                self.drop(why);
                None
            }
        }
    }

    fn check<'a>(
        &mut self,
        from: SocketAddr,
        bytes: &'a [u8],
    ) -> Result<(Destination, &'a [u8]), DropReason> {
        let is_client = match self.address {
            Some(client) => from == client,
            None => {
                from.ip().to_canonical() == self.rules.client()
                    && self.port.is_none_or(|port| port == from.port())
            }
        };
        if !is_client {
            return Err(DropReason::NotTheClient);
        }
        let (to, data) = datagram::read(bytes).map_err(|fault| match fault {
            DatagramFault::Fragment => DropReason::Fragment,
            DatagramFault::Malformed => DropReason::Malformed,
        })?;
        self.address = Some(from);
        match self.rules.of_destination(&to) {
            RuleVerdict::Denied(_) => Err(DropReason::NotAllowed),
            RuleVerdict::Allowed | RuleVerdict::ByAddress => Ok((to, data)),
        }
    }

    /// Counts a dropped datagram.
    pub(super) fn drop(&mut self, why: DropReason) {
        self.dropped[why as usize] += 1;
    }
}
