//! Chunks and parameters whose lengths are wrong (RFC 9260 §3.2), and unknown ones.

use super::*;

//= rfc9260 §3.2
//# a chunk with an impossible length ends its packet, without ABORT
#[test]
fn chunks_without_a_length_end_their_packet() {
    for length in 0..4 {
        let mut peer = HostilePeer::new(|_| {});
        // After the malformed chunk there is an ABORT.
        peer.bytes(&[3, 0, 0, length, 6, 0, 0, 4]);
        assert!(peer.is_up());
        assert_eq!(peer.counters().malformed_chunks, 1);
        peer.check_data();
    }
}

#[test]
fn chunks_that_are_longer_than_their_packet_are_not_read() {
    let mut peer = HostilePeer::new(|_| {});
    for bytes in [
        &[6, 0, 0, 5][..],
        &[6, 0, 255, 255],
        &[0, 3, 0, 200, 0, 0, 0, 1],
        &[3, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0],
        &[64],
        &[130, 0, 0],
    ] {
        peer.bytes(bytes);
    }
    assert!(peer.is_up());
    assert_eq!(peer.counters().malformed_chunks, 6);
    peer.check_data();
}

//= rfc9260 §3.3.7
//# ABORT with an invalid length MUST be discarded
#[test]
fn every_type_of_chunk_at_every_short_length_is_harmless() {
    let ends = [6, 7, 8, 14];
    for chunk_type in (0..=255).filter(|chunk_type| !ends.contains(chunk_type)) {
        let mut peer = HostilePeer::new(|_| {});
        for length in 4..40_u8 {
            let mut bytes = vec![0; usize::from(length).next_multiple_of(4)];
            bytes[0] = chunk_type;
            bytes[3] = length;
            peer.bytes(&bytes);
            bytes[4..].fill(255);
            peer.bytes(&bytes);
        }
        peer.world.run_for(ms(1000));
        // DATA without user data, or in the wrong kind of chunk, may end the association with a
        // cause.
        assert!(peer.is_up() || peer.aborted_with().is_some(), "chunk type {chunk_type}");
    }
}

#[test]
fn lists_with_too_large_counts_are_not_read() {
    let mut peer = HostilePeer::new(|_| {});
    // A SACK with 65,535 gap blocks and duplicates, an NR-SACK likewise.
    let mut sack = vec![3, 0, 0, 16];
    sack.extend([0; 8]);
    sack.extend([255; 4]);
    peer.bytes(&sack);
    sack[0] = 16;
    sack[3] = 20;
    sack.extend([255; 4]);
    peer.bytes(&sack);
    assert!(peer.is_up());
    assert_eq!(peer.counters().malformed_chunks, 2);
}

//= hostile sctp-lies
//# nested and truncated parameters
//= bound: one level is parsed, in place
#[test]
fn nested_parameters_are_bounded() {
    let mut peer = HostilePeer::new(|_| {});
    // RE-CONFIG, HEARTBEAT and ASCONF with parameters whose length is zero, too large, or
    // truncated.
    for chunk_type in [130, 4, 193, 128, 9] {
        for parameter in [[0, 13, 0, 0], [0, 14, 0, 3], [0, 16, 255, 255], [0, 1, 0, 9]] {
            let mut bytes = vec![chunk_type, 0, 0, 12];
            bytes.extend(parameter);
            bytes.extend([0, 15, 0, 4]);
            peer.bytes(&bytes);
        }
    }
    assert!(peer.is_up());
    let counters = peer.counters();
    assert_eq!((counters.malformed_chunks, counters.unexpected_chunks), (12, 4));
    peer.check_data();
}

//= rfc9260 §3.2
//# unknown chunks by the highest two bits; one longer than 512 bytes is not reported
#[test]
fn unknown_chunks_are_handled_by_their_first_bits() {
    let data = |peer: &HostilePeer| peer.i_data(0, (0, 0), "ube", "behind");
    for (chunk_type, reads_on, reports) in
        [(0x3f, false, false), (0x7f, false, true), (0xbf, true, false), (0xff, true, true)]
    {
        let mut peer = HostilePeer::new(|_| {});
        let Chunk::Data(behind) = data(&peer) else { panic!("no data") };
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, peer.header, 1000);
        assert!(packet.append(&behind));
        let mut bytes = vec![chunk_type, 0, 0, 7, 1, 2, 3, 0];
        bytes.extend_from_slice(&buffer[12..]);
        peer.bytes(&bytes);
        peer.world.run_for(ms(1000));
        assert_eq!(peer.counters().unknown_chunks, 1);
        let is_received = peer.world.hosts[B].received_messages() == 1;
        assert_eq!(is_received, reads_on, "type {chunk_type:#x}");
        let reported = peer.answers().iter().any(|answer| answer.contains("ERROR"));
        assert_eq!(reported, reports, "type {chunk_type:#x}");
        assert!(peer.is_up());
    }
}

#[test]
fn nothing_after_the_end_is_reported() {
    let mut peer = HostilePeer::new(|_| {});
    let id = peer.world.hosts[B].only();
    peer.world.hosts[B].endpoint.shutdown(peer.world.now, id).unwrap();
    peer.world.run_for(ms(10));
    // SHUTDOWN ACK, and after it an ABORT.
    peer.bytes(&[8, 0, 0, 4, 6, 0, 0, 4]);
    let events = peer.world.hosts[B].events();
    assert_eq!(events.last(), Some(&Event::Closed));
    assert!(!events.iter().any(|event| matches!(event, Event::Lost(_))));
}
