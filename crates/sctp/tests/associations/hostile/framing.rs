//! Chunks and parameters that do not fit where they say that they are (RFC 9260 §3.2), and those
//! that nobody knows.

use super::*;

#[test]
fn chunks_without_a_length_end_their_packet() {
    for length in 0..4 {
        let mut liar = Liar::new(|_| {});
        // Behind the broken one there is an ABORT.
        liar.bytes(&[3, 0, 0, length, 6, 0, 0, 4]);
        assert!(liar.is_up());
        assert_eq!(liar.counters().malformed_chunks, 1);
        liar.works();
    }
}

#[test]
fn chunks_that_are_longer_than_their_packet_are_not_read() {
    let mut liar = Liar::new(|_| {});
    for bytes in [
        &[6, 0, 0, 5][..],
        &[6, 0, 255, 255],
        &[0, 3, 0, 200, 0, 0, 0, 1],
        &[3, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0],
        &[64],
        &[130, 0, 0],
    ] {
        liar.bytes(bytes);
    }
    assert!(liar.is_up());
    assert_eq!(liar.counters().malformed_chunks, 6);
    liar.works();
}

#[test]
fn every_type_of_chunk_at_every_short_length_is_harmless() {
    let ends = [6, 7, 8, 14];
    for chunk_type in (0..=255).filter(|chunk_type| !ends.contains(chunk_type)) {
        let mut liar = Liar::new(|_| {});
        for length in 4..40_u8 {
            let mut bytes = vec![0; usize::from(length).next_multiple_of(4)];
            bytes[0] = chunk_type;
            bytes[3] = length;
            liar.bytes(&bytes);
            bytes[4..].fill(255);
            liar.bytes(&bytes);
        }
        liar.world.run_for(ms(1000));
        // DATA without data or in the wrong kind of chunk may end it, for a reason that is told.
        assert!(liar.is_up() || liar.aborted_with().is_some(), "chunk type {chunk_type}");
    }
}

#[test]
fn lists_with_too_large_counts_are_not_read() {
    let mut liar = Liar::new(|_| {});
    // A SACK with 65,535 gap blocks and duplicates, an NR-SACK likewise.
    let mut sack = vec![3, 0, 0, 16];
    sack.extend([0; 8]);
    sack.extend([255; 4]);
    liar.bytes(&sack);
    sack[0] = 16;
    sack[3] = 20;
    sack.extend([255; 4]);
    liar.bytes(&sack);
    assert!(liar.is_up());
    assert_eq!(liar.counters().malformed_chunks, 2);
}

#[test]
fn nested_parameters_are_bounded() {
    let mut liar = Liar::new(|_| {});
    // RE-CONFIG, HEARTBEAT and ASCONF with parameters of no length, of too much, and truncated.
    for chunk_type in [130, 4, 193, 128, 9] {
        for parameter in [[0, 13, 0, 0], [0, 14, 0, 3], [0, 16, 255, 255], [0, 1, 0, 9]] {
            let mut bytes = vec![chunk_type, 0, 0, 12];
            bytes.extend(parameter);
            bytes.extend([0, 15, 0, 4]);
            liar.bytes(&bytes);
        }
    }
    assert!(liar.is_up());
    let counters = liar.counters();
    assert_eq!((counters.malformed_chunks, counters.unexpected_chunks), (12, 4));
    liar.works();
}

#[test]
fn unknown_chunks_do_what_their_first_bits_say() {
    let data = |liar: &Liar| liar.i_data(0, (0, 0), "ube", "behind");
    for (chunk_type, reads_on, reports) in
        [(0x3f, false, false), (0x7f, false, true), (0xbf, true, false), (0xff, true, true)]
    {
        let mut liar = Liar::new(|_| {});
        let Chunk::Data(behind) = data(&liar) else { panic!("no data") };
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, liar.header, 1000);
        assert!(packet.put(&behind));
        let mut bytes = vec![chunk_type, 0, 0, 7, 1, 2, 3, 0];
        bytes.extend_from_slice(&buffer[12..]);
        liar.bytes(&bytes);
        liar.world.run_for(ms(1000));
        assert_eq!(liar.counters().unknown_chunks, 1);
        let came = liar.world.hosts[B].received_messages() == 1;
        assert_eq!(came, reads_on, "type {chunk_type:#x}");
        let told = liar.answers().iter().any(|answer| answer.contains("ERROR"));
        assert_eq!(told, reports, "type {chunk_type:#x}");
        assert!(liar.is_up());
    }
}

#[test]
fn nothing_after_the_end_is_reported() {
    let mut liar = Liar::new(|_| {});
    let id = liar.world.hosts[B].only();
    liar.world.hosts[B].endpoint.shutdown(liar.world.now, id).unwrap();
    liar.world.run_for(ms(10));
    // SHUTDOWN ACK, and behind it an ABORT.
    liar.bytes(&[8, 0, 0, 4, 6, 0, 0, 4]);
    let said = liar.world.hosts[B].said();
    assert_eq!(said.last(), Some(&Event::Closed));
    assert!(!said.iter().any(|event| matches!(event, Event::Lost(_))));
}
