//! The memory that floods occupy, as counted by the allocator rather than by the endpoint.

mod host;
mod serial;

use std::alloc::System;

use bytes::{Bytes, BytesMut};
use eyas_sctp::identifier::{Ppid, StreamId, VerificationTag};
use eyas_sctp::serial::{Mid, Tsn};
use eyas_sctp::wire::{
    ChecksumKind, Chunk, CommonHeader, DataChunk, DataFlags, DataOrder, InitChunk, PacketWriter,
    Parameters,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use host::{PORT, Pair, socket};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The growth of allocated memory by `act`.
fn growth<T>(act: impl FnOnce() -> T) -> (isize, T) {
    let region = Region::new(ALLOCATOR);
    let result = act();
    let change = region.change();
    (change.bytes_allocated as isize - change.bytes_deallocated as isize, result)
}

fn packet(header: CommonHeader, chunks: &[Chunk]) -> Bytes {
    let mut buffer = BytesMut::new();
    let mut packet = PacketWriter::begin(&mut buffer, header, 65_000);
    chunks.iter().for_each(|chunk| assert!(packet.append(chunk)));
    packet.finish(ChecksumKind::Crc32c);
    buffer.freeze()
}

fn init(tag: u32) -> Bytes {
    let header =
        CommonHeader { source_port: 5, destination_port: PORT, tag: VerificationTag::ZERO };
    let init = InitChunk {
        initiate_tag: VerificationTag(tag),
        a_rwnd: 100_000,
        outbound_streams: 65_535,
        inbound_streams: 65_535,
        initial_tsn: Tsn(tag),
        parameters: Parameters::default(),
    };
    packet(header, &[Chunk::Init(init)])
}

/// A fragment in an I-DATA chunk.
fn fragment(tsn: Tsn, place: (u16, u32, u32), flags: DataFlags, payload: Bytes) -> Chunk {
    Chunk::Data(DataChunk {
        tsn,
        stream: StreamId(place.0),
        flags,
        order: DataOrder::Mid { mid: Mid(place.1), fsn: place.2 },
        ppid: Ppid(0),
        payload,
    })
}

//= rfc9260 §5.1
//# nothing is kept before the COOKIE ECHO
#[test]
fn inits_and_forged_cookies_leave_nothing() {
    let _guard = serial::lock();
    let mut pair = Pair::new(|_| {});
    let header = CommonHeader { source_port: 5, destination_port: PORT, tag: VerificationTag(3) };
    let flood = |pair: &mut Pair, count: u32| {
        for n in 1..=count {
            pair.deliver_to_b(socket(n.wrapping_mul(0x9e37_79b9)), init(n));
            let cookie = Chunk::CookieEcho(Bytes::from(vec![7; 300]));
            pair.deliver_to_b(socket(n), packet(header, &[cookie]));
        }
    };
    flood(&mut pair, 1000);
    const PEERS: u32 = 20_000;
    let (grown, ()) = growth(|| flood(&mut pair, PEERS));
    // The allocator counts the test harness too, which records passed tests meanwhile.
    assert!(
        grown < PEERS as isize,
        "{grown} bytes are held for {PEERS} peers without an association"
    );
    let counters = pair.b.counters();
    assert_eq!((counters.forged_cookies, counters.packets_in), (21_000, 42_000));
}

#[test]
fn an_idle_association_takes_little_memory() {
    let _guard = serial::lock();
    let mut pair = Pair::new(|_| {});
    for _ in 0..100 {
        pair.associate();
    }
    let (grown, ()) = growth(|| (0..500).for_each(|_| pair.associate()));
    let each = grown / 1000;
    assert!(each <= 4096, "{each} bytes for each side of each association");
}

#[test]
fn buffered_data_costs_no_more_than_accounted_for() {
    let _guard = serial::lock();
    const BUFFER: usize = 200_000;
    let tiny = || Bytes::from_static(b"x");
    let begin = DataFlags { begin: true, ..DataFlags::default() };
    let unordered = DataFlags { unordered: true, ..DataFlags::WHOLE };
    // Fragments without a beginning, messages without an end, messages that are never read.
    let floods: [&dyn Fn(Tsn, u32) -> Chunk; 4] = [
        &|first, n| fragment(first.plus(n + 1), (1, 0, n + 1), DataFlags::default(), tiny()),
        &|first, n| fragment(first.plus(n), ((n % 900) as u16, n / 900, 0), begin, tiny()),
        &|first, n| fragment(first.plus(n), (1, n, 0), unordered, tiny()),
        &|first, n| fragment(first.plus(n + 1), (1, n + 1, 0), DataFlags::WHOLE, tiny()),
    ];
    for (index, flood) in floods.iter().enumerate() {
        let mut pair = Pair::new(|config| config.receive_buffer = BUFFER);
        pair.associate();
        let (header, first) = pair.peer();
        let (grown, ()) = growth(|| {
            for n in (0..60_000).step_by(50) {
                let chunks: Vec<Chunk> = (n..n + 50).map(|n| flood(first, n)).collect();
                pair.deliver_to_b(socket(0), packet(header, &chunks));
            }
        });
        assert!(pair.b.counters().data_over_window > 50_000);
        assert!(grown < 2 * BUFFER as isize + 50_000, "flood {index} takes {grown} bytes");
    }
}

//= hostile sctp-lies
//# little data in large packets
//= bound: `MAX_BORROWED_FRAGMENTS`, `MAX_WASTE`
#[test]
fn small_messages_do_not_keep_large_packets_in_memory() {
    let _guard = serial::lock();
    const PACKET: usize = 9000;
    let begin = DataFlags { begin: true, ..DataFlags::default() };
    for flags in [begin, DataFlags { unordered: true, ..DataFlags::WHOLE }] {
        let mut pair = Pair::new(|_| {});
        pair.associate();
        let (header, first) = pair.peer();
        let (grown, ()) = growth(|| {
            for n in 0..3000 {
                let place = ((n % 900) as u16, n / 900, 0);
                let data = fragment(first.plus(n), place, flags, Bytes::from_static(b"x"));
                let pad = Chunk::Pad { length: (PACKET - 100) as u16 };
                pair.deliver_to_b(socket(0), packet(header, &[data, pad]));
            }
        });
        assert!(grown < 300 * PACKET as isize, "{grown} bytes for 3000 bytes of data");
    }
}

#[test]
fn a_consumed_burst_leaves_little_memory() {
    let _guard = serial::lock();
    let mut pair = Pair::new(|_| {});
    pair.associate();
    let (header, first) = pair.peer();
    let (grown, ()) = growth(|| {
        for n in (0..6000).step_by(50) {
            let chunk = |n| fragment(first.plus(n), (1, n, 0), DataFlags::WHOLE, "x".into());
            let chunks: Vec<Chunk> = (n..n + 50).map(chunk).collect();
            pair.deliver_to_b(socket(0), packet(header, &chunks));
        }
        pair.read_all();
    });
    assert_eq!(pair.b.counters().data_over_window, 0);
    assert!(grown < 150_000, "{grown} bytes");
}

//= hostile sctp-lies
//# all streams
//= bound: no table; `MAX_IDLE_CAPACITY`
#[test]
fn a_peer_with_all_streams_takes_eight_bytes_per_stream() {
    let _guard = serial::lock();
    let mut pair = Pair::new(|config| config.outbound_streams = 65_535);
    pair.associate();
    let (header, first) = pair.peer();
    let (grown, ()) = growth(|| {
        for n in 0..65_535_u32 {
            let data = fragment(first.plus(n), (n as u16, 0, 0), DataFlags::WHOLE, "x".into());
            pair.deliver_to_b(socket(0), packet(header, &[data]));
            pair.read_all();
        }
    });
    assert!(grown < 16 * 65_535 + 50_000, "{grown} bytes");
}
