//! What a connection needs of memory: little while it is idle, and a bounded amount whatever its peer
//! sends. All in one test, because the allocator counts for the whole process.

use std::alloc::System;
use std::time::Duration;

use bytes::Bytes;
use eyas_h3::connection::{ConnectionConfig, ConnectionSetup};
use eyas_h3::stream::{Role, StreamId};
use eyas_h3::whole::{Input, Output, WholeConnection};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NOW: Duration = Duration::ZERO;

/// What an idle connection may hold beside its own size, in bytes.
const IDLE: usize = 4096;

/// What a connection may hold whatever its peer sends, in bytes: the table of fields, a field section for
/// each stream that waits, and halves of requests.
const ATTACKED: usize = 512 * 1024;

/// How often an attacker repeats what it sends.
const REPETITIONS: usize = 3000;

fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn drain(connection: &mut WholeConnection) -> bool {
    loop {
        match connection.poll_output(NOW) {
            Output::Timeout(_) => return true,
            Output::Close(_) => return false,
            _ => {}
        }
    }
}

fn server() -> WholeConnection {
    let config = ConnectionConfig::default();
    let setup = ConnectionSetup { role: Role::Server, config, seed: 1, remembered: None };
    let mut connection = WholeConnection::new(setup, NOW);
    drain(&mut connection);
    connection
}

/// Sends the first bytes, then the others again and again, as a stream that they say for each repetition,
/// and returns the most that is held meanwhile, and whether the connection
/// stays open.
fn attack(first: &[(u64, &[u8])], stream: impl Fn(usize) -> u64, repeated: &[u8]) -> (usize, bool) {
    let before = held();
    let mut connection = server();
    let mut send = |stream: u64, data: &[u8]| {
        let (stream, data) = (StreamId(stream), Bytes::copy_from_slice(data));
        connection.handle_input(NOW, Input::Stream { stream, data, fin: false });
        drain(&mut connection)
    };
    for (stream, data) in first {
        assert!(send(*stream, data), "the beginning is honest");
    }
    let mut most = 0;
    for count in 0..REPETITIONS {
        let is_open = send(stream(count), repeated);
        most = most.max(held() - before);
        if !is_open {
            return (most, false);
        }
    }
    (most, true)
}

/// A control stream with empty settings.
const CONTROL: (u64, &[u8]) = (2, b"\0\x04\0");

//= rfc9114 §10.5
//# memory is, whatever a peer sends
#[test]
fn a_connection_is_small_and_stays_bounded() {
    let before = held();
    let connection = server();
    let idle = held() - before;
    assert!(idle <= IDLE, "{idle}");
    let size = size_of::<WholeConnection>();
    assert!(size <= IDLE, "{size}");
    drop(connection);
    // The test harness may keep something meanwhile, in its own thread, but not each time.
    let left = (0..10).map(|_| {
        let before = held();
        drop(server());
        held().abs_diff(before)
    });
    assert_eq!(left.min(), Some(0), "nothing is left of it");

    // HEADERS that announce as much as is accepted, and DATA before their end.
    let section = [&b"\x01\x80\x01\x00\x00"[..], &[0; 1000]].concat();
    // A section that waits for an entry of the table: Required Insert Count 1.
    let waiting = [&b"\x01\x44\x02\x02\0"[..], &[b'#'; 1024]].concat();
    let unknown = [&b"\x21\x80\x01\x00\x00"[..], &[0; 65536]].concat();
    let skipped = b"\x21\x00".repeat(500);
    let update = |index: u16| {
        let id = ((4 * index) | 0x4000).to_be_bytes();
        [&b"\x80\x0f\x07\x00\x05"[..], &id, b"u=1"].concat()
    };
    let priorities: Vec<u8> = (0..200).flat_map(update).collect();
    let inserted = [&b"\x3f\xe1\x1f"[..], &b"\x41a\x7f\x00"[..], &[b'v'; 127]].concat();
    for (name, first, on, repeated, stays_open) in [
        ("unfinished heads", &[CONTROL][..], "requests", &section[..], true),
        ("sections that wait", &[CONTROL], "requests", &waiting, false),
        ("unknown frames", &[CONTROL], "control", &unknown, true),
        ("empty unknown frames", &[CONTROL], "control", &skipped, true),
        ("priorities", &[CONTROL], "control", &priorities, true),
        ("limits of pushes", &[CONTROL], "control", b"\x0d\x01\x05", true),
        ("the end", &[CONTROL], "control", b"\x07\x01\x05", true),
        ("streams without a type", &[CONTROL], "streams", b"\x40", false),
        ("streams of unknown types", &[CONTROL], "streams", b"\x21abc", true),
        ("insertions", &[CONTROL, (6, b"\x02")], "encoder", &inserted, true),
        ("acknowledgments", &[CONTROL, (10, b"\x03")], "decoder", b"\x80", false),
    ] {
        let stream = |count: usize| match on {
            "requests" => 4 * count as u64,
            "streams" => 6 + 4 * count as u64,
            "encoder" => 6,
            "decoder" => 10,
            _ => 2,
        };
        let (most, is_open) = attack(first, stream, repeated);
        assert!(most <= ATTACKED, "{name}: {most}");
        assert_eq!(is_open, stays_open, "{name}");
    }
}
