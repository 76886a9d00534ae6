//! When SACKs are sent, and their contents (RFC 9260 §6.2).

use super::*;
use crate::receive::tracking::MAX_DUPLICATES;

//= rfc9260 §6.2
//# the first packet is acknowledged at once, then every second, within 200 ms
#[test]
fn the_first_packet_is_acknowledged_immediately_then_every_second() {
    let mut side = Side::data();
    let mut wanted = Vec::new();
    for offset in 0..5 {
        side.chunk(&whole(offset, offset as u16, "x"));
        wanted.push(side.wants_sack());
        if side.wants_sack() {
            side.sack();
        }
    }
    assert_eq!(wanted, [true, false, true, false, true]);
}

#[test]
fn a_single_packet_waits_for_the_delay() {
    let mut side = Side::data();
    side.chunk(&whole(0, 0, "x"));
    side.sack();
    side.chunk(&whole(1, 1, "x"));
    assert!(!side.wants_sack() && side.receiver.sack_pending());
    let deadline = side.now + config().sack_delay;
    assert_eq!(side.receiver.next_timeout(), Some(deadline));
    side.now = deadline;
    assert!(side.wants_sack());
    assert_eq!(side.sack().cumulative_tsn, tsn(1));
    assert!(!side.wants_sack() && !side.receiver.sack_pending());
    assert_eq!(side.receiver.next_timeout(), None);
}

/// With 60 gaps a SACK takes 296 bytes, a thirty-fifth of seven packets.
#[test]
fn large_sacks_wait_for_more_data_if_budgeted() {
    let config = AssociationConfig {
        multipath: Some(crate::config::MultipathConfig::default()),
        ..config()
    };
    let mut side = Side::with(&config, false, true);
    const DATA: [u8; 1400] = [b'x'; 1400];
    let data = core::str::from_utf8(&DATA).expect("ASCII");
    for gap in 0..60 {
        side.chunk(&whole(2 * gap + 1, 0, "x"));
    }
    side.sack();
    let wanted: Vec<bool> = (0..11)
        .map(|packet| {
            side.chunk(&whole(121 + packet, 0, data));
            side.wants_sack()
        })
        .collect();
    assert_eq!(wanted.iter().position(|wanted| *wanted), Some(6));
    side.sack();
    // An eighth of the round trip later in any case.
    for packet in 0..2 {
        side.chunk(&whole(132 + packet, 0, data));
    }
    assert!(!side.wants_sack());
    assert_eq!(side.receiver.next_timeout(), Some(side.now + Duration::from_millis(10)));
}

#[test]
fn several_chunks_of_a_packet_count_once() {
    let mut side = Side::data();
    side.chunk(&whole(0, 0, "x"));
    side.sack();
    side.packet(&[whole(1, 1, "x"), whole(2, 2, "x")]);
    assert!(!side.wants_sack());
}

//= rfc9260 §6.7
//# a gap SHOULD be reported at once
#[test]
fn a_gap_and_its_end_are_reported_immediately() {
    let mut side = Side::data();
    side.chunk(&whole(0, 0, "x"));
    side.sack();
    side.chunk(&whole(2, 2, "x"));
    assert!(side.wants_sack());
    assert_eq!(gaps(&side.sack()), [(2, 2)]);
    side.chunk(&whole(1, 1, "x"));
    assert!(side.wants_sack());
    let sack = side.sack();
    assert_eq!((sack.cumulative_tsn, gaps(&sack)), (tsn(2), Vec::new()));
}

#[test]
fn without_reports_of_gaps_every_second_packet_counts() {
    let mut side = Side::data();
    let policy = side.receiver.sack_policy();
    side.receiver.set_sack_policy(crate::receive::acknowledgement::SackPolicy {
        at_once_on_gap: false,
        state_count: true,
        ..policy
    });
    side.chunk(&whole(0, 0, "x"));
    assert_eq!(side.sack().dac_count, 1);
    side.chunk(&whole(2, 2, "x"));
    assert!(!side.wants_sack());
    side.chunk(&whole(4, 4, "x"));
    assert!(side.wants_sack());
    assert_eq!(side.sack().dac_count, 2);
}

//= rfc8260 §2.1
//# the I bit: SHOULD NOT delay the SACK
#[test]
fn a_chunk_with_the_i_bit_is_acknowledged_immediately() {
    let mut side = Side::data();
    side.chunk(&whole(0, 0, "x"));
    side.sack();
    let mut chunk = whole(1, 1, "x");
    chunk.flags.immediate = true;
    side.chunk(&chunk);
    assert!(side.wants_sack());
}

#[test]
fn duplicates_are_reported_immediately_and_once() {
    let mut side = Side::data();
    side.chunk(&whole(0, 0, "x"));
    side.sack();
    assert_eq!(side.chunk(&whole(0, 0, "x")), DataOutcome::Duplicate);
    assert!(side.wants_sack());
    assert_eq!(side.sack().duplicates().collect::<Vec<_>>(), [tsn(0)]);
    side.chunk(&whole(1, 1, "x"));
    assert!(side.sack().duplicates().is_empty());
    for _ in 0..1000 {
        side.chunk(&whole(1, 1, "x"));
    }
    assert_eq!(side.sack().duplicates().count(), MAX_DUPLICATES);
    assert_eq!(side.counters.duplicate_data, 1001);
    assert_eq!(side.texts(), ["x", "x"]);
}

#[test]
fn after_a_shutdown_every_packet_is_acknowledged() {
    let mut side = Side::data();
    side.chunk(&whole(0, 0, "x"));
    side.sack();
    side.receiver.acknowledge_every_packet();
    for offset in 1..4 {
        side.chunk(&whole(offset, offset as u16, "x"));
        assert!(side.wants_sack());
        side.sack();
    }
}

//= rfc9260 §6.2
//# SHOULD report when the window opens; when a considerable part has
#[test]
fn the_window_shrinks_by_buffered_data_and_its_opening_is_announced() {
    let mut small = config();
    small.receive_buffer = 8000;
    let mut side = Side::with(&small, false, false);
    let text: &'static str = alloc::string::String::from("y").repeat(1000).leak();
    for offset in 0..8 {
        assert_eq!(side.chunk(&whole(offset, offset as u16, text)), DataOutcome::Accepted);
    }
    assert_eq!(side.sack().a_rwnd, 0);
    assert_eq!(side.chunk(&whole(8, 8, text)), DataOutcome::OverWindow);
    assert_eq!(side.counters.data_over_window, 1);
    assert!(side.wants_sack(), "a probe of a closed window is answered");
    assert_eq!(side.sack().a_rwnd, 0);
    side.receiver.receive();
    assert!(!side.wants_sack(), "one packet does not justify waking the peer");
    side.receiver.receive();
    assert!(side.wants_sack());
    assert_eq!(side.sack().a_rwnd, 2000);
    assert_eq!(side.receive().len(), 6);
    assert_eq!(side.sack().a_rwnd, 8000);
}

#[test]
fn a_sack_is_not_truncated_to_fit_behind_other_chunks() {
    let mut side = Side::data();
    for offset in 0..40 {
        side.chunk(&whole(offset * 2, offset as u16, "x"));
    }
    let header = CommonHeader { source_port: 1, destination_port: 2, tag: VerificationTag(3) };
    let mut buffer = BytesMut::new();
    let mut packet = PacketWriter::begin(&mut buffer, header, 100);
    assert!(packet.append(&Chunk::CookieAck));
    assert!(!side.receiver.write_sack(&mut packet));
    assert!(side.wants_sack());
    assert_eq!(side.sack_in(100).gap_blocks().count(), 18, "as many as fit");
    assert_eq!(side.sack().gap_blocks().count(), 39);
}

#[test]
fn an_nr_sack_covers_delivered_data() {
    let mut side = Side::with(&config(), true, true);
    let sent = |offset, stream, mid| i_fragment(offset, (stream, mid, 0), "be", "x");
    side.packet(&[sent(1, 0, 1), sent(2, 1, 0), sent(3, 2, 0), sent(5, 1, 1)]);
    let sack = side.sack();
    assert!(sack.is_nr && sack.nr_gap_blocks().is_empty());
    assert_eq!(gaps(&sack), [(2, 4), (6, 6)]);
    assert_eq!(side.receive().len(), 3, "what is on streams 1 and 2");
    let sack = side.sack();
    let nr: Vec<_> = sack.nr_gap_blocks().map(|block| (block.start, block.end)).collect();
    assert_eq!((gaps(&sack), nr), (alloc::vec![(2, 2)], alloc::vec![(3, 4), (6, 6)]));
    side.chunk(&sent(0, 0, 0));
    assert_eq!(side.receive().len(), 2);
    let sack = side.sack();
    assert_eq!(sack.cumulative_tsn, tsn(3));
    assert_eq!((gaps(&sack), sack.nr_gap_blocks().count()), (Vec::new(), 1));
}

#[test]
fn an_nr_sack_covers_the_fragments_of_interleaved_messages() {
    let mut side = Side::with(&config(), true, true);
    side.packet(&[
        i_fragment(1, (1, 0, 0), "b", "a"),
        i_fragment(2, (2, 0, 0), "b", "a"),
        i_fragment(3, (1, 0, 1), "e", "b"),
    ]);
    assert_eq!(side.texts(), ["ab"]);
    let sack = side.sack();
    let nr: Vec<_> = sack.nr_gap_blocks().map(|block| (block.start, block.end)).collect();
    assert_eq!((gaps(&sack), nr), (alloc::vec![(3, 3)], alloc::vec![(2, 2), (4, 4)]));
}

fn with_cmt(nr_sack: crate::config::NrSackPolicy) -> AssociationConfig {
    let multipath =
        crate::config::MultipathConfig { nr_sack, ..crate::config::MultipathConfig::default() };
    AssociationConfig { multipath: Some(multipath), ..config() }
}

#[test]
fn with_delayed_acknowledgement_for_cmt_gaps_wait() {
    let mut side = Side::with(&with_cmt(crate::config::NrSackPolicy::AtArrival), false, false);
    side.chunk(&whole(0, 0, "x"));
    assert_eq!(side.sack().dac_count, 1);
    side.chunk(&whole(2, 2, "x"));
    assert!(!side.wants_sack());
    let deadline = side.now + config().sack_delay;
    assert_eq!(side.receiver.next_timeout(), Some(deadline));
    // Nor does closing a gap trigger an immediate SACK.
    side.chunk(&whole(1, 1, "x"));
    assert!(side.wants_sack());
    let sack = side.sack();
    assert_eq!((sack.dac_count, sack.cumulative_tsn), (2, tsn(2)));
}

#[test]
fn an_nr_sack_covers_arrived_or_delivered_data() {
    use crate::config::NrSackPolicy::{AtArrival, AtDelivery};
    let nr_gaps = |sack: &SackChunk| -> Vec<(u16, u16)> {
        sack.nr_gap_blocks().map(|block| (block.start, block.end)).collect()
    };
    for (policy, before) in [(AtArrival, [(2, 3)].as_slice()), (AtDelivery, [].as_slice())] {
        let mut side = Side::with(&with_cmt(policy), false, true);
        side.chunk(&whole(0, 0, "x"));
        assert!(side.sack().is_nr);
        // Stream 1 is in order; stream 0 waits for what is missing.
        let mut other = whole(2, 0, "y");
        other.stream = StreamId(1);
        side.chunk(&other);
        side.chunk(&whole(3, 2, "x"));
        let sack = side.sack();
        assert_eq!(nr_gaps(&sack), before, "{policy:?}");
        let all: Vec<_> = gaps(&sack).into_iter().chain(nr_gaps(&sack)).collect();
        assert_eq!(all, [(2, 3)]);
        assert_eq!(side.texts(), ["x", "y"]);
        side.receiver.request_sack();
        let sack = side.sack();
        if policy == AtDelivery {
            assert_eq!((nr_gaps(&sack), gaps(&sack)), ([(2, 2)].to_vec(), [(3, 3)].to_vec()));
        } else {
            assert_eq!((nr_gaps(&sack), gaps(&sack)), ([(2, 3)].to_vec(), [].to_vec()));
        }
    }
}
