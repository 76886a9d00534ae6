//! Whose datagrams an association takes, and what is in them; pure.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::datagram::{self, Fault};
use crate::handshake::Destination;
use crate::rules::{Rules, Verdict};

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dropped {
    /// It is not of the client whose association it is.
    Stranger,
    /// It is a piece of one (RFC 1928 §7).
    Fragment,
    /// It makes no sense.
    Malformed,
    /// A rule keeps the client from there.
    NotAllowed,
    /// It cannot be reached: no address, or none that this machine can send to.
    NoWay,
    /// Too many wait for DNS.
    Full,
    /// The client has sent nothing to where it comes from, nor to another address of the same name.
    Unsolicited,
}

impl Dropped {
    /// All names, in the order of the variants.
    pub const NAMES: [&str; 7] =
        ["stranger", "fragment", "malformed", "not-allowed", "no-way", "full", "unsolicited"];
}

/// What the datagrams of one client are held to.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The address that the client's connection is from.
    pub client: IpAddr,
    /// The port that it will send from, if it has said so.
    pub port: Option<u16>,
    /// Where it may go.
    pub rules: Arc<Rules>,
    /// Destinations at once; the one used least recently makes room.
    pub destinations: usize,
}

/// The client whose association it is.
#[derive(Debug)]
pub(super) struct Owner {
    ip: IpAddr,
    /// The port that it will send from, if it has said so.
    port: Option<u16>,
    rules: Arc<Rules>,
    /// Where it sends from, once it has.
    address: Option<SocketAddr>,
    pub(super) dropped: [u64; Dropped::NAMES.len()],
}

impl Owner {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            ip: setup.client,
            port: setup.port,
            rules: Arc::clone(&setup.rules),
            address: None,
            dropped: Default::default(),
        }
    }

    /// Where its answers go, once it has sent something.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Where a datagram is to go, and what is in it, if it is the client's and may go there.
    pub(super) fn take<'a>(
        &mut self,
        from: SocketAddr,
        bytes: &'a [u8],
    ) -> Option<(Destination, &'a [u8])> {
        match self.judge(from, bytes) {
            Ok(taken) => Some(taken),
            Err(why) => {
                self.drop(why);
                None
            }
        }
    }

    fn judge<'a>(
        &mut self,
        from: SocketAddr,
        bytes: &'a [u8],
    ) -> Result<(Destination, &'a [u8]), Dropped> {
        let is_client = match self.address {
            Some(client) => from == client,
            None => {
                from.ip().to_canonical() == self.ip.to_canonical()
                    && self.port.is_none_or(|port| port == from.port())
            }
        };
        if !is_client {
            return Err(Dropped::Stranger);
        }
        let (to, data) = datagram::read(bytes).map_err(|fault| match fault {
            Fault::Fragment => Dropped::Fragment,
            Fault::Malformed => Dropped::Malformed,
        })?;
        self.address = Some(from);
        match self.rules.of_destination(&to, self.ip) {
            Verdict::Denied(_) => Err(Dropped::NotAllowed),
            Verdict::Allowed | Verdict::ByAddress => Ok((to, data)),
        }
    }

    /// Counts a datagram that goes nowhere.
    pub(super) fn drop(&mut self, why: Dropped) {
        self.dropped[why as usize] += 1;
    }
}
