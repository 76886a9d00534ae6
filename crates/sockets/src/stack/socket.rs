//! One socket.

use alloc::collections::VecDeque;
use core::net::{IpAddr, SocketAddr};

use eyas_sctp::config::AssociationConfig;

use super::ports::{PortClaim, PortKey, PortSharing, PortTable};
use super::turns::ReceiveTurns;
use crate::abi::{Errno, SocketName};
use crate::io::{AssocId, PollReadiness, SocketDomain, SocketId, SocketStyle};
use crate::settings::{AssocSettings, SocketSettings, association_config};

/// The state of a socket, like Linux's `sk_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketState {
    /// Neither connected nor listening; one-to-many sockets that do not listen stay here.
    Closed,
    Listening,
    Established,
    /// One or both sides are shutting down.
    Closing,
}

/// A socket of a program.
#[derive(Debug)]
pub(super) struct SctpSocket {
    pub(super) domain: SocketDomain,
    pub(super) style: SocketStyle,
    /// The user whose program created it.
    pub(super) user: u32,
    /// Whether it was peeled off: one association, and the type of a one-to-many socket.
    pub(super) is_peeled: bool,
    pub(super) state: SocketState,
    /// Its SCTP port, once it has one.
    pub(super) port: Option<PortKey>,
    /// Its name when it was bound, as `getsockname` shows it.
    pub(super) bound: Option<SocketAddr>,
    pub(super) backlog: usize,
    /// Associations that wait for `accept`.
    pub(super) accepting: VecDeque<AssocId>,
    /// Its associations, including ended ones that still have something to receive.
    pub(super) associations: alloc::collections::BTreeSet<AssocId>,
    pub(super) turns: ReceiveTurns,
    /// The number of associations with a full send buffer.
    pub(super) full: usize,
    /// The bytes of the send buffer that the driver fills outside of the stack.
    pub(super) reserved: usize,
    pub(super) error: Option<Errno>,
    pub(super) shut_read: bool,
    pub(super) shut_write: bool,
    /// Whether a call returned that it would block.
    pub(super) awaited: bool,
    /// Whether something has arrived since the readiness was reported.
    pub(super) has_arrived: bool,
    /// The readiness reported last.
    pub(super) reported: PollReadiness,
    pub(super) settings: AssocSettings,
    pub(super) shared: SocketSettings,
    /// Options without effect, by level and number.
    pub(super) stored: alloc::collections::BTreeMap<(i32, i32), i32>,
}

impl SctpSocket {
    pub(super) fn new(domain: SocketDomain, style: SocketStyle) -> Self {
        Self {
            domain,
            style,
            user: 0,
            is_peeled: false,
            state: SocketState::Closed,
            port: None,
            bound: None,
            backlog: 0,
            accepting: VecDeque::new(),
            associations: alloc::collections::BTreeSet::new(),
            turns: ReceiveTurns::default(),
            full: 0,
            reserved: 0,
            error: None,
            shut_read: false,
            shut_write: false,
            awaited: false,
            has_arrived: false,
            reported: PollReadiness::NOTHING,
            settings: AssocSettings::default(),
            shared: SocketSettings::default(),
            stored: alloc::collections::BTreeMap::new(),
        }
    }

    /// Creates a socket for an association of `parent`, with the same options.
    pub(super) fn from_parent(
        parent: &Self,
        association: AssocId,
        settings: AssocSettings,
    ) -> Self {
        let mut child = Self::new(parent.domain, parent.style);
        child.user = parent.user;
        child.port = parent.port;
        child.bound = parent.bound;
        child.settings = settings;
        child.shared = parent.shared.clone();
        child.shared.autoclose = 0;
        // On Linux, too, the rest of the marking ends with the handshake.
        for marking in [&mut child.shared.markings.v4, &mut child.shared.markings.v6] {
            (marking.dscp_bits, marking.mark) = (0, 0);
        }
        child.stored.clone_from(&parent.stored);
        child.associations.insert(association);
        child
    }

    /// Returns whether it has at most one association.
    pub(super) fn is_single(&self) -> bool {
        self.is_peeled || self.style == SocketStyle::OneToOne
    }

    /// Returns whether it is one-to-one in all respects.
    pub(super) fn is_one_to_one(&self) -> bool {
        !self.is_peeled && self.style == SocketStyle::OneToOne
    }

    /// Returns the association of a socket that has at most one.
    pub(super) fn only(&self) -> Option<AssocId> {
        self.associations.first().copied().filter(|_| self.is_single())
    }

    /// Updates whether the endpoint of its port accepts associations, which it does while one more
    /// may wait for `accept`, and their configuration.
    pub(super) fn update_listening(
        &self,
        own: SocketId,
        base: &AssociationConfig,
        ports: &mut PortTable,
    ) {
        let Some(key) = self.port else { return };
        let has_room = !self.is_one_to_one() || self.accepting.len() <= self.backlog;
        let config = || association_config(base, &self.shared, &self.settings);
        ports.update_listening(key, own, has_room, config);
    }

    /// Removes an association, which may have had a full send buffer.
    pub(super) fn remove_association(&mut self, id: AssocId, was_full: bool) {
        self.associations.remove(&id);
        self.turns.remove(id);
        self.full = self.full.saturating_sub(usize::from(was_full));
    }

    /// Returns the bytes of messages that may be queued before the send buffer is full.
    pub(super) fn room(&self) -> usize {
        self.shared.send_buffer.saturating_sub(self.reserved)
    }

    /// Returns the same for a message, which may use the reserve. A message is accepted while any
    /// byte is free, here as in the driver, so both parts can be exceeded by one message; none is
    /// larger than the reserve.
    pub(super) fn room_for(&self, uses_reserve: bool) -> usize {
        let excess = self.reserved.saturating_mul(2);
        if uses_reserve { self.shared.send_buffer.saturating_add(excess) } else { self.room() }
    }

    /// Returns which other sockets may have its port.
    pub(super) fn sharing(&self) -> PortSharing {
        let shared = &self.shared;
        PortSharing {
            reuses_address: shared.reuse_address || shared.sctp_reuse_port,
            with_user: shared.reuse_port.then_some(self.user),
        }
    }

    /// Returns what it claims of the port that it has, or that it is to have.
    pub(super) fn claim(&self, own: SocketId) -> PortClaim {
        PortClaim {
            socket: own,
            held: self.port,
            domain: self.domain,
            v6_only: self.shared.v6_only,
            sharing: self.sharing(),
        }
    }

    /// Returns the name of an address as this socket's program sees it.
    pub(super) fn name(&self, address: SocketAddr) -> SocketName {
        SocketName::new(self.visible(address))
    }

    /// Maps IPv4 addresses on IPv6 sockets, unless that is disabled.
    pub(super) fn visible(&self, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(v4) if self.domain == SocketDomain::Inet6 && self.shared.mapped => {
                SocketAddr::new(v4.to_ipv6_mapped().into(), address.port())
            }
            _ => address,
        }
    }

    /// Returns whether it accepts the address's family.
    pub(super) fn accepts(&self, address: IpAddr) -> bool {
        match self.domain {
            SocketDomain::Inet => address.is_ipv4(),
            SocketDomain::Inet6 => address.is_ipv6() || !self.shared.v6_only,
        }
    }
}
