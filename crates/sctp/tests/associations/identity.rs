//! Peers that the layer below authenticates: an association belongs to the one that it began with,
//! whatever addresses and tags the packets of others have.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::ConnectOptions;
use eyas_sctp::endpoint::{AssociationState, Endpoint};
use eyas_sctp::identifier::{AssociationId, VerificationTag};
use eyas_sctp::io::{Ecn, Input, Output, PeerIdentity, Received};
use eyas_sctp::message::SendInfo;
use eyas_sctp::wire::{ChecksumKind, ChunkType, CommonHeader, PACKET_HEADER};
use proptest::prelude::*;

use super::world::*;

const CLIENT: PeerIdentity = PeerIdentity([1; 16]);
const SERVER: PeerIdentity = PeerIdentity([2; 16]);
const OTHER: PeerIdentity = PeerIdentity([3; 16]);

/// Two endpoints whose packets arrive at once, with an identity.
struct Pair {
    ends: [Endpoint; 2],
    /// Who the packets of each end are from.
    identities: [Option<PeerIdentity>; 2],
    now: Duration,
    /// Every packet so far, with the end that sent it and the identity that may receive it.
    seen: Vec<(usize, Option<PeerIdentity>, Bytes)>,
}

impl Pair {
    fn new() -> Self {
        let end = |host| Endpoint::new(multihomed(host, 1), [host as u8; 32], Duration::ZERO);
        let ends = [end(A), end(B)];
        Self {
            ends,
            identities: [Some(CLIENT), Some(SERVER)],
            now: Duration::ZERO,
            seen: Vec::new(),
        }
    }

    fn connected() -> (Self, AssociationId) {
        let mut pair = Self::new();
        let id = pair.connect();
        pair.settle();
        assert_eq!(pair.states(B), [AssociationState::Established]);
        (pair, id)
    }

    fn connect(&mut self) -> AssociationId {
        let mut options = ConnectOptions::new(socket(B, 0), PORT);
        options.association = quiet();
        options.local_port = 5000;
        self.ends[A].connect(self.now, &options).expect("the options are good")
    }

    /// Delivers packets until there are none.
    fn settle(&mut self) {
        let mut idle = 0;
        for end in [A, B].into_iter().cycle() {
            let mut out = VecDeque::new();
            loop {
                match self.ends[end].poll_output(self.now) {
                    Output::Transmit(transmit) => out.push_back(transmit),
                    Output::Timeout(_) => break,
                    _ => {}
                }
            }
            idle = if out.is_empty() { idle + 1 } else { 0 };
            if idle == 2 {
                return;
            }
            for transmit in out {
                for packet in transmit.contents.chunks(transmit.segment_size) {
                    let packet = Bytes::copy_from_slice(packet);
                    self.seen.push((end, transmit.peer, packet.clone()));
                    self.deliver(1 - end, self.identities[end], packet);
                }
            }
        }
    }

    /// Delivers one packet that claims to come from the other end's address.
    fn deliver(&mut self, to: usize, peer: Option<PeerIdentity>, packet: Bytes) {
        let received = Received {
            local: None,
            remote: socket(1 - to, 0),
            ecn: Ecn::NotCapable,
            peer,
            segment_size: packet.len(),
            contents: packet,
        };
        self.ends[to].handle_input(self.now, Input::Packets(received));
    }

    fn states(&self, end: usize) -> Vec<AssociationState> {
        let ids = self.ends[end].associations();
        ids.iter().filter_map(|id| Some(self.ends[end].status(*id)?.state)).collect()
    }

    fn bad_tags(&self, end: usize) -> u64 {
        self.ends[end].counters().bad_tags
    }

    /// The tag that packets to this end have.
    fn tag_to(&self, end: usize) -> VerificationTag {
        let last = self.seen.iter().rev().find(|(from, ..)| *from != end).expect("a packet");
        VerificationTag(u32::from_be_bytes(last.2[4..8].try_into().expect("four bytes")))
    }
}

/// A packet of the client's association with this chunk.
fn forged(tag: VerificationTag, chunk: &[u8]) -> Bytes {
    let header = CommonHeader { source_port: 5000, destination_port: PORT, tag };
    let mut packet = [&header.encode()[..], chunk].concat();
    ChecksumKind::Crc32c.patch(&mut packet);
    packet.into()
}

#[test]
fn both_ends_send_only_to_the_peer_that_they_began_with() {
    let (mut pair, id) = Pair::connected();
    pair.ends[A].send(pair.now, id, &SendInfo::default(), Bytes::from_static(b"x")).expect("sent");
    pair.settle();
    for (end, peer, packet) in &pair.seen {
        let is_init = packet[PACKET_HEADER] == ChunkType::INIT.0;
        let expected = [Some(SERVER).filter(|_| !is_init), Some(CLIENT)][*end];
        assert_eq!(*peer, expected, "{}", names(packet));
    }
    let status = pair.ends[A].status(id).expect("it is there");
    assert_eq!(status.peer, Some(SERVER));
    let accepted = pair.ends[B].associations()[0];
    assert_eq!(pair.ends[B].status(accepted).expect("it is there").peer, Some(CLIENT));
}

/// Every packet of the association, from the COOKIE ECHO on, repeated by another peer.
#[test]
fn packets_repeated_by_another_peer_change_nothing() {
    for identity in [Some(OTHER), None] {
        let (mut pair, id) = Pair::connected();
        pair.ends[A]
            .send(pair.now, id, &SendInfo::default(), Bytes::from_static(b"x"))
            .expect("sent");
        pair.settle();
        let mut expected = [0; 2];
        for (from, _, packet) in std::mem::take(&mut pair.seen) {
            if packet[PACKET_HEADER] == ChunkType::INIT.0 {
                continue;
            }
            expected[1 - from] += 1;
            pair.deliver(1 - from, identity, packet);
        }
        assert_eq!([pair.bad_tags(A), pair.bad_tags(B)], expected);
        assert!(expected[A] > 1 && expected[B] > 1);
        pair.settle();
        assert_eq!(pair.seen, [], "an answer");
        assert_eq!(pair.states(B), [AssociationState::Established]);
    }
}

/// As when a host behind the same translator begins where another one left off.
#[test]
fn another_peer_at_the_same_address_has_an_association_of_its_own() {
    let (mut pair, _) = Pair::connected();
    let first = pair.ends[B].associations()[0];
    pair.ends[A] = Endpoint::new(multihomed(A, 1), [7; 32], pair.now);
    pair.identities[A] = Some(OTHER);
    let id = pair.connect();
    pair.settle();
    assert_eq!(pair.states(B), [AssociationState::Established; 2]);
    assert_eq!(pair.ends[A].status(id).expect("it is there").state, AssociationState::Established);
    // What is still sent to the first peer is not for the second one.
    pair.ends[B]
        .send(pair.now, first, &SendInfo::default(), Bytes::from_static(b"for the first"))
        .expect("sent");
    pair.seen.clear();
    pair.settle();
    assert_eq!(pair.seen[0].1, Some(CLIENT));
}

#[test]
fn a_restarted_peer_is_recognised_by_its_identity() {
    let (mut pair, _) = Pair::connected();
    let first = pair.ends[B].associations();
    pair.ends[A] = Endpoint::new(multihomed(A, 1), [7; 32], pair.now);
    pair.connect();
    pair.settle();
    assert_eq!(pair.ends[B].associations(), first, "the same one, restarted");
}

/// An INIT from another peer while an INIT ACK is awaited begins nothing with that peer's identity
/// at the association of the first one.
#[test]
fn the_init_ack_decides_who_the_peer_is() {
    let mut pair = Pair::new();
    pair.identities[B] = Some(OTHER);
    let id = pair.connect();
    pair.settle();
    let status = pair.ends[A].status(id).expect("it is there");
    assert_eq!((status.state, status.peer), (AssociationState::Established, Some(OTHER)));
    pair.identities[B] = Some(SERVER);
    let accepted = pair.ends[B].associations()[0];
    pair.ends[B].abort(pair.now, accepted, Bytes::new()).expect("it is there");
    pair.settle();
    assert_eq!(pair.states(A), [AssociationState::Established], "another peer cannot abort it");
    assert_eq!(pair.bad_tags(A), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    //= hostile sctp-blind
    //# another peer with the addresses, ports and tags of an association
    //= bound: one identity each
    /// No chunk of another peer reaches an association, even with its tag, address and ports.
    #[test]
    fn no_chunk_of_another_peer_has_an_effect(
        kind in any::<u8>(),
        flags in any::<u8>(),
        value in proptest::collection::vec(any::<u8>(), 0..64),
        is_anonymous in any::<bool>(),
    ) {
        // An INIT has rules of its own, and no tag.
        prop_assume!(kind != ChunkType::INIT.0);
        let (mut pair, _) = Pair::connected();
        let tag = pair.tag_to(B);
        let length = (4 + value.len()) as u16;
        let mut chunk = [&[kind, flags][..], &length.to_be_bytes(), &value].concat();
        chunk.resize(chunk.len().next_multiple_of(4), 0);
        pair.seen.clear();
        let id = pair.ends[B].associations()[0];
        let before = pair.ends[B].status(id);
        pair.deliver(B, Some(OTHER).filter(|_| !is_anonymous), forged(tag, &chunk));
        pair.settle();
        prop_assert_eq!(&pair.seen, &[]);
        prop_assert_eq!(pair.bad_tags(B), 1);
        prop_assert_eq!(pair.ends[B].status(id), before);
    }
}
