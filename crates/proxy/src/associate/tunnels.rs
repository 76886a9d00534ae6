//! Routes the datagrams of one client through another proxy, with a tunnel for each destination: a state machine
//! without sockets and clocks.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use eyas::race::target::TargetHost;
use eyas_relay::destination::Destination;

use super::association::MAX_WAITING;
use super::datagram;
use super::owner::{AssociationOwner, AssociationSetup};
use crate::report::DropReason;

/// How long a tunnel stays open without traffic in either direction (RFC 4787 §4.3, REQ-5).
pub(super) const TUNNEL_IDLE: Duration = Duration::from_mins(5);
/// How long a destination that the other proxy refused is not requested again.
pub(super) const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TunnelOutput {
    /// Request a tunnel, and report the outcome with [`AssociationTunnels::opened`] or [`AssociationTunnels::refused`].
    Open {
        /// The number of the tunnel.
        id: u64,
        /// Its destination.
        to: Destination,
    },
    /// Send a datagram through a tunnel.
    Send {
        /// The tunnel.
        id: u64,
        /// The payload.
        data: Bytes,
    },
    /// Close a tunnel.
    Close {
        /// The tunnel.
        id: u64,
    },
    /// Send a datagram to the client.
    Deliver {
        /// The client's address.
        to: SocketAddr,
        /// The datagram with its header.
        datagram: Bytes,
        /// The length of its payload in octets.
        length: usize,
    },
}

/// The tunnels of an association.
#[derive(Debug)]
pub(super) struct AssociationTunnels {
    owner: AssociationOwner,
    most: usize,
    tunnels: BTreeMap<(TargetHost, u16), DestinationTunnel>,
    /// The destinations of the tunnels that are open or requested.
    names: BTreeMap<u64, (TargetHost, u16)>,
    opened: u64,
    waiting: usize,
    outputs: VecDeque<TunnelOutput>,
}

#[derive(Debug)]
struct DestinationTunnel {
    id: u64,
    /// When a datagram was last sent or received.
    used: Duration,
    stage: TunnelStage,
}

#[derive(Debug)]
enum TunnelStage {
    /// The tunnel is requested, and these datagrams wait.
    Opening(Vec<Bytes>),
    Open,
    /// The other proxy has refused it, when it was last used.
    Refused(DropReason),
}

impl AssociationTunnels {
    /// Creates the tunnels of a client that has sent nothing yet.
    pub(super) fn new(setup: &AssociationSetup) -> Self {
        Self {
            owner: AssociationOwner::new(setup),
            most: setup.destinations.max(1),
            tunnels: BTreeMap::new(),
            names: BTreeMap::new(),
            opened: 0,
            waiting: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Returns the next action.
    pub(super) fn poll_output(&mut self) -> Option<TunnelOutput> {
        self.outputs.pop_front()
    }

    /// Returns when [`Self::handle_timeout`] must be called.
    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.tunnels.values().map(DestinationTunnel::expiry).min()
    }

    /// Returns the numbers of dropped datagrams by reason, in the order of [`DropReason::NAMES`].
    pub(super) fn dropped(&self) -> [u64; DropReason::NAMES.len()] {
        self.owner.dropped
    }

    /// Counts a datagram that did not fit into the queue of its tunnel.
    pub(super) fn queue_full(&mut self) {
        self.owner.drop(DropReason::Full);
    }

    /// Handles a datagram that arrived on the socket for the client.
    pub(super) fn handle_client(&mut self, now: Duration, from: SocketAddr, bytes: &[u8]) {
        self.handle_timeout(now);
        let Some((to, data)) = self.owner.accept(from, bytes) else { return };
        let key = (to.host.clone(), to.port);
        if !self.tunnels.contains_key(&key) {
            self.make_room();
            let id = self.opened;
            self.opened += 1;
            self.names.insert(id, key.clone());
            let stage = TunnelStage::Opening(Vec::new());
            self.tunnels.insert(key.clone(), DestinationTunnel { id, used: now, stage });
            self.outputs.push_back(TunnelOutput::Open { id, to });
        }
        let Some(tunnel) = self.tunnels.get_mut(&key) else { return };
        match &mut tunnel.stage {
            TunnelStage::Refused(why) => return self.owner.drop(*why),
            TunnelStage::Opening(_) if self.waiting >= MAX_WAITING => {
                self.owner.drop(DropReason::Full)
            }
            TunnelStage::Opening(waiting) => {
                waiting.push(Bytes::copy_from_slice(data));
                self.waiting += 1;
            }
            TunnelStage::Open => {
                let data = Bytes::copy_from_slice(data);
                self.outputs.push_back(TunnelOutput::Send { id: tunnel.id, data });
            }
        }
        tunnel.used = now;
    }

    /// Handles the opening of a tunnel.
    pub(super) fn opened(&mut self, id: u64) {
        let Some(tunnel) = self.names.get(&id).and_then(|key| self.tunnels.get_mut(key)) else {
            return;
        };
        if let TunnelStage::Opening(waiting) =
            std::mem::replace(&mut tunnel.stage, TunnelStage::Open)
        {
            self.waiting -= waiting.len();
            let sent = waiting.into_iter().map(|data| TunnelOutput::Send { id, data });
            self.outputs.extend(sent);
        }
    }

    /// Handles the refusal of a tunnel, or that the other proxy cannot be reached.
    pub(super) fn refused(&mut self, now: Duration, id: u64, why: DropReason) {
        let Some(tunnel) = self.names.remove(&id).and_then(|key| self.tunnels.get_mut(&key)) else {
            return;
        };
        tunnel.used = now;
        if let TunnelStage::Opening(waiting) =
            std::mem::replace(&mut tunnel.stage, TunnelStage::Refused(why))
        {
            self.waiting -= waiting.len();
            waiting.iter().for_each(|_| self.owner.drop(why));
        }
    }

    /// Handles the end of a tunnel. The next datagram for its destination opens another one.
    pub(super) fn ended(&mut self, id: u64) {
        if let Some(key) = self.names.remove(&id) {
            self.forget(&key);
        }
    }

    /// Handles a datagram that arrived through a tunnel.
    pub(super) fn handle_datagram(&mut self, now: Duration, id: u64, data: &[u8]) {
        let Some(key) = self.names.get(&id) else {
            return self.owner.drop(DropReason::Unsolicited);
        };
        let Some(to) = self.owner.address() else { return };
        if let Some(tunnel) = self.tunnels.get_mut(key) {
            tunnel.used = now;
        }
        let from = Destination::new(key.0.clone(), key.1);
        let (datagram, length) = (datagram::write_from(&from, data), data.len());
        self.outputs.push_back(TunnelOutput::Deliver { to, datagram, length });
    }

    /// Closes unused tunnels.
    pub(super) fn handle_timeout(&mut self, now: Duration) {
        let is_over = |tunnel: &DestinationTunnel| tunnel.expiry() <= now;
        let over = self.tunnels.iter().filter(|(_, tunnel)| is_over(tunnel));
        for key in over.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.close(&key);
        }
    }

    /// Closes the least recently used tunnels until there is room for another one.
    fn make_room(&mut self) {
        while self.tunnels.len() >= self.most {
            let oldest = self.tunnels.iter().min_by_key(|(_, tunnel)| tunnel.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            self.close(&key);
        }
    }

    fn close(&mut self, key: &(TargetHost, u16)) {
        if let Some(id) = self.tunnels.get(key).map(|tunnel| tunnel.id)
            && self.names.remove(&id).is_some()
        {
            self.outputs.push_back(TunnelOutput::Close { id });
        }
        self.forget(key);
    }

    fn forget(&mut self, key: &(TargetHost, u16)) {
        if let Some(DestinationTunnel { stage: TunnelStage::Opening(waiting), .. }) =
            self.tunnels.remove(key)
        {
            self.waiting -= waiting.len();
            waiting.iter().for_each(|_| self.owner.drop(DropReason::Full));
        }
    }
}

impl DestinationTunnel {
    /// Returns when it is closed, or its refusal forgotten.
    fn expiry(&self) -> Duration {
        let lifetime = match self.stage {
            TunnelStage::Opening(_) | TunnelStage::Open => TUNNEL_IDLE,
            TunnelStage::Refused(_) => REFUSAL_TIME,
        };
        self.used.saturating_add(lifetime)
    }
}

#[cfg(test)]
mod tests {
    use eyas_relay::rules::DestinationRules;
    use proptest::prelude::*;

    use super::super::association_tests::client_rules;
    use super::*;

    const START: Duration = Duration::from_secs(1);
    const CLIENT: &str = "198.51.100.7:4000";

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    fn tunnels(rules: DestinationRules, destinations: usize) -> AssociationTunnels {
        AssociationTunnels::new(&AssociationSetup {
            port: None,
            rules: client_rules(rules, CLIENT),
            destinations,
        })
    }

    fn to(number: u8) -> SocketAddr {
        SocketAddr::from(([9, 9, 113, number], 53))
    }

    fn client_sends(tunnels: &mut AssociationTunnels, now: Duration, number: u8) {
        tunnels.handle_client(now, at(CLIENT), &datagram::write(to(number), &[number]));
    }

    fn outputs(tunnels: &mut AssociationTunnels) -> Vec<TunnelOutput> {
        std::iter::from_fn(|| tunnels.poll_output()).collect()
    }

    fn dropped(tunnels: &AssociationTunnels, why: DropReason) -> u64 {
        tunnels.dropped()[why as usize]
    }

    fn open(id: u64, number: u8) -> TunnelOutput {
        let to = Destination::new(TargetHost::Literal(to(number).ip(), 0), 53);
        TunnelOutput::Open { id, to }
    }

    fn send(id: u64, number: u8) -> TunnelOutput {
        TunnelOutput::Send { id, data: Bytes::copy_from_slice(&[number]) }
    }

    #[test]
    fn a_tunnel_is_opened_once_and_waiting_datagrams_go_first() {
        let mut tunnels = tunnels(DestinationRules::default(), 9);
        client_sends(&mut tunnels, START, 1);
        client_sends(&mut tunnels, START, 1);
        assert_eq!(outputs(&mut tunnels), [open(0, 1)]);
        tunnels.opened(0);
        client_sends(&mut tunnels, START, 1);
        assert_eq!(outputs(&mut tunnels), [send(0, 1), send(0, 1), send(0, 1)]);
        tunnels.handle_datagram(START, 0, b"answer");
        let datagram = datagram::write(to(1), b"answer");
        let delivered = TunnelOutput::Deliver { to: at(CLIENT), datagram, length: 6 };
        assert_eq!(outputs(&mut tunnels), [delivered]);
        tunnels.handle_datagram(START, 7, b"of no tunnel");
        assert_eq!(outputs(&mut tunnels), []);
        assert_eq!(dropped(&tunnels, DropReason::Unsolicited), 1);
    }

    #[test]
    fn replies_carry_the_name_that_was_sent_to() {
        let mut tunnels = tunnels(DestinationRules::default(), 9);
        let sent = b"\0\0\0\x03\x06a.test\0\x35x";
        tunnels.handle_client(START, at(CLIENT), sent);
        tunnels.opened(0);
        tunnels.handle_datagram(START, 0, b"y");
        let datagram = Bytes::from_static(b"\0\0\0\x03\x06a.test\0\x35y");
        let delivered = TunnelOutput::Deliver { to: at(CLIENT), datagram, length: 1 };
        assert_eq!(outputs(&mut tunnels).pop(), Some(delivered));
    }

    //= hostile proxy
    //# a proxy behind this one that refuses every destination
    //= bound: `REFUSAL_TIME`
    #[test]
    fn a_refused_tunnel_is_not_requested_again_at_once() {
        let mut tunnels = tunnels(DestinationRules::default(), 9);
        client_sends(&mut tunnels, START, 1);
        tunnels.refused(START, 0, DropReason::NotAllowed);
        client_sends(&mut tunnels, START + REFUSAL_TIME / 2, 1);
        assert_eq!(outputs(&mut tunnels), [open(0, 1)]);
        assert_eq!(dropped(&tunnels, DropReason::NotAllowed), 2);
        client_sends(&mut tunnels, START + REFUSAL_TIME, 1);
        assert_eq!(outputs(&mut tunnels), [open(1, 1)]);
        // A tunnel that has ended is opened again at once.
        tunnels.opened(1);
        tunnels.ended(1);
        outputs(&mut tunnels);
        client_sends(&mut tunnels, START + REFUSAL_TIME, 1);
        assert_eq!(outputs(&mut tunnels), [open(2, 1)]);
    }

    #[test]
    fn an_unused_tunnel_is_closed() {
        let mut tunnels = tunnels(DestinationRules::default(), 2);
        client_sends(&mut tunnels, START, 1);
        client_sends(&mut tunnels, START + Duration::from_secs(1), 2);
        assert_eq!(outputs(&mut tunnels), [open(0, 1), open(1, 2)]);
        client_sends(&mut tunnels, START + Duration::from_secs(2), 3);
        assert_eq!(outputs(&mut tunnels), [TunnelOutput::Close { id: 0 }, open(2, 3)]);
        assert_eq!(dropped(&tunnels, DropReason::Full), 1, "it waited");
        tunnels.opened(1);
        outputs(&mut tunnels);
        // Received datagrams keep a tunnel open, too.
        tunnels.handle_datagram(START + Duration::from_secs(9), 1, b"x");
        outputs(&mut tunnels);
        let expiry = tunnels.poll_timeout().expect("there are two");
        assert_eq!(expiry, START + Duration::from_secs(2) + TUNNEL_IDLE);
        tunnels.handle_timeout(expiry);
        assert_eq!(outputs(&mut tunnels), [TunnelOutput::Close { id: 2 }]);
        tunnels.handle_timeout(START + Duration::from_secs(9) + TUNNEL_IDLE);
        assert_eq!(outputs(&mut tunnels), [TunnelOutput::Close { id: 1 }]);
        assert_eq!(tunnels.poll_timeout(), None);
    }

    #[test]
    fn the_rules_apply_to_what_the_client_sends() {
        let deny = vec!["9.9.113.1".parse().expect("a rule")];
        let mut tunnels = tunnels(DestinationRules { deny, ..DestinationRules::default() }, 9);
        client_sends(&mut tunnels, START, 1);
        tunnels.handle_client(START, at("198.51.100.8:1"), &datagram::write(to(2), b"x"));
        assert_eq!(outputs(&mut tunnels), []);
        assert_eq!(dropped(&tunnels, DropReason::NotAllowed), 1);
        assert_eq!(dropped(&tunnels, DropReason::NotTheClient), 1);
    }

    proptest! {
        #[test]
        fn nothing_is_sent_before_the_tunnel_is_open_and_nothing_grows(
            steps in proptest::collection::vec((0_u8..6, 0_u8..12, 0_u64..400), 0..300),
        ) {
            let mut tunnels = tunnels(DestinationRules::default(), 4);
            let (mut now, mut requested, mut open) = (START, Vec::new(), Vec::new());
            for (step, number, seconds) in steps {
                let pick = |from: &mut Vec<u64>| {
                    (!from.is_empty()).then(|| from.remove(usize::from(number) % from.len()))
                };
                match step {
                    0 | 1 => client_sends(&mut tunnels, now, number),
                    2 => if let Some(id) = pick(&mut requested) {
                        tunnels.opened(id);
                        open.push(id);
                    },
                    3 => if let Some(id) = pick(&mut requested) {
                        tunnels.refused(now, id, DropReason::Unreachable);
                    },
                    4 => if let Some(id) = pick(&mut open) { tunnels.ended(id) },
                    _ => {
                        now += Duration::from_secs(seconds);
                        tunnels.handle_timeout(now);
                    }
                }
                for output in outputs(&mut tunnels) {
                    match output {
                        TunnelOutput::Open { id, .. } => requested.push(id),
                        TunnelOutput::Send { id, .. } => prop_assert!(open.contains(&id)),
                        TunnelOutput::Close { id } => {
                            prop_assert!(open.contains(&id) || requested.contains(&id));
                            open.retain(|one| *one != id);
                            requested.retain(|one| *one != id);
                        }
                        TunnelOutput::Deliver { .. } => {}
                    }
                }
                prop_assert!(open.len() + requested.len() <= 4);
                prop_assert!(tunnels.tunnels.len() <= 4 && tunnels.waiting <= MAX_WAITING);
                prop_assert_eq!(tunnels.names.len(), open.len() + requested.len());
            }
        }
    }
}
