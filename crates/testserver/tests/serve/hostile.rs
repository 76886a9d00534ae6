//! Tests with invalid bytes from clients.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use eyas_http::serve::Limits;
use http::StatusCode;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Duration, timeout},
};

use crate::{
    builder,
    clients::{SOON, Speak, fetch, get, quic_to, start, tcp},
    server,
};

/// The number of panics in tasks of this process, except those of failing tests.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Starts to count panics, and returns the count so far.
fn watch_for_panics() -> usize {
    static WATCH: std::sync::Once = std::sync::Once::new();
    WATCH.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_test = panic.location().is_some_and(|place| place.file().contains("tests/"));
            if !is_test {
                PANICS.fetch_add(1, Relaxed);
            }
            report(panic);
        }));
    });
    PANICS.load(Relaxed)
}

/// Returns an HTTP/3 frame with a length below 64.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind, u8::try_from(payload.len()).expect("a short frame")];
    frame.extend_from_slice(payload);
    frame
}

/// Returns HEADERS of `POST https://localhost/echo`, with QPACK's static table and literals (RFC
/// 9204).
fn post() -> Vec<u8> {
    let mut fields = vec![0, 0, 0xd4, 0xd7, 0x51, 5];
    fields.extend(b"/echo");
    fields.extend([0x50, 9]);
    fields.extend(b"localhost");
    frame(0x01, &fields)
}

#[tokio::test]
async fn a_frame_out_of_place_ends_the_connection_and_nothing_else() {
    let panics = watch_for_panics();
    let running = server().await;
    let root = running.identity().unwrap().certificate();
    // In one piece, so that the invalid frame is read together with valid ones.
    let violations = [
        [post(), frame(0x00, b"x"), frame(0x04, b"")].concat(),
        [post(), frame(0x04, b"")].concat(),
        [frame(0x00, b"x"), post()].concat(),
        frame(0x0d, &[0]),
    ];
    for violation in violations {
        let conn = quic_to(running.local_addr(), root).await.unwrap();
        let (mut send, _recv) = conn.open_bi().await.unwrap();
        send.write_all(&violation).await.unwrap();
        let why = timeout(SOON, conn.closed()).await.expect("an end");
        let quinn::ConnectionError::ApplicationClosed(close) = why else { panic!("{why}") };
        assert_eq!(close.error_code.into_inner(), 0x105, "H3_FRAME_UNEXPECTED, for {violation:?}");
    }
    assert_eq!(fetch(&running, Speak::Http3, get("/")).await.status(), StatusCode::OK);
    assert_eq!(PANICS.load(Relaxed), panics);
}

/// Returns pseudo-random numbers that are the same in every run (splitmix64).
fn numbers(mut seed: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(mixed ^ (mixed >> 31))
    })
}

fn noise(seed: u64, start: &[u8]) -> Vec<u8> {
    let mut bytes = start.to_vec();
    bytes.extend(numbers(seed).take(40).flat_map(u64::to_le_bytes));
    bytes
}

#[tokio::test]
async fn noise_over_quic_does_no_harm() {
    let panics = watch_for_panics();
    let running = server().await;
    let root = running.identity().unwrap().certificate();
    let starts: [Vec<u8>; 6] =
        [vec![], vec![0x00], vec![0x01], post(), vec![0x02], [post(), vec![0x00, 0x05]].concat()];
    for (seed, start) in (0..30).zip(starts.iter().cycle()) {
        let conn = quic_to(running.local_addr(), root).await.unwrap();
        let bytes = noise(seed, start);
        if let Ok(mut send) = conn.open_uni().await {
            let _ = send.write_all(&bytes).await;
            let _ = send.finish();
        }
        if let Ok((mut send, mut recv)) = conn.open_bi().await {
            let _ = send.write_all(&bytes).await;
            let _ = send.finish();
            // A response, a reset or a close, but not silence.
            let answer = timeout(SOON, recv.read_to_end(1 << 20)).await;
            assert!(answer.is_ok(), "seed {seed}");
        }
    }
    assert_eq!(fetch(&running, Speak::Http3, get("/")).await.status(), StatusCode::OK);
    assert_eq!(PANICS.load(Relaxed), panics);
}

#[tokio::test]
async fn noise_over_tcp_does_no_harm() {
    let panics = watch_for_panics();
    let limits = Limits {
        header_read_time: Duration::from_secs(2),
        idle_time: Duration::from_secs(2),
        ..Limits::default()
    };
    let running = start(builder().plain().limits(limits)).await;
    let starts: [&[u8]; 4] = [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    ];
    for (seed, start) in (0..40).zip(starts.iter().cycle()) {
        let mut stream = tcp(running.local_addr()).await;
        let _ = stream.write_all(&noise(seed, start)).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let end = timeout(SOON, stream.read_to_end(&mut answer)).await;
        assert!(end.is_ok(), "seed {seed}");
    }
    assert_eq!(fetch(&running, Speak::PlainHttp2, get("/")).await.status(), StatusCode::OK);
    assert_eq!(PANICS.load(Relaxed), panics);
}
