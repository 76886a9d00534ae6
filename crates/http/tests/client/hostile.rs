//! Tests of the HTTP/3 client with hostile peers: it returns an error that names the candidate, in
//! time, and never panics.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use eyas_http::{Body, Error, Kind};
use http::Method;

use crate::{
    hostile_peer::{
        DATA, End, GOAWAY, HEADERS, Peer, SETTINGS, UNKNOWN, announce, early_hints, frame, ok,
        ok_of_length, open_control, panics, settings, trailers,
    },
    site::{SOON, until},
};

/// The idle timeout of tests in which the peer sends nothing useful.
const IDLE: Duration = Duration::from_millis(500);
/// Long enough for a request to be sent.
const SENT_AFTER: Duration = Duration::from_millis(1500);
const GIBIBYTE: u64 = 1 << 30;

/// Returns the outcomes of a GET and of a POST.
async fn outcomes(peer: &Peer, idle: Duration) -> [Result<bytes::Bytes, Error>; 2] {
    let client = peer.client().idle_timeout(idle).build().expect("a client");
    let upload = || Body::from(vec![b'x'; 1 << 20]);
    let outcome = |method: Method, body: Body| {
        let request = client.request(method, peer.url()).body(body);
        async move {
            let whole = async { request.send().await?.bytes().await };
            tokio::time::timeout(SOON, whole).await.expect("an end")
        }
    };
    [outcome(Method::GET, Body::empty()).await, outcome(Method::POST, upload()).await]
}

async fn fails(control: Vec<u8>, answer: Vec<u8>, end: End, kinds: &[Kind]) {
    let before = panics();
    let shown = format!("{:02x?}", &answer[..answer.len().min(64)]);
    let peer = Peer::answering(control, answer, end);
    // Any other error must occur first, however busy the machine is.
    let idle = if kinds == [Kind::IdleTimeout] { IDLE } else { SOON };
    for outcome in outcomes(&peer, idle).await {
        let error = outcome.expect_err(&shown);
        assert!(kinds.contains(&error.kind()), "{shown}: {error}");
        assert_eq!(error.candidate(), Some(&*format!("quic 127.0.0.1:{}", peer.port)), "{error}");
    }
    assert_eq!(panics(), before, "{shown}");
}

//= hostile client
//# HTTP/3 frames that announce too much
//= bound: `MAX_IGNORED_FRAME`, `MAX_CONTROL_FRAME`
#[tokio::test]
async fn excessive_lengths_are_refused() {
    for kind in [HEADERS, UNKNOWN] {
        for length in [GIBIBYTE, (1 << 62) - 1] {
            let head = announce(kind, length);
            fails(settings(), head.clone(), End::KeepOpen, &[Kind::Protocol]).await;
            let late = [ok(), frame(DATA, b"half"), head].concat();
            fails(settings(), late, End::KeepOpen, &[Kind::Protocol]).await;
        }
    }
    fails(announce(SETTINGS, GIBIBYTE), vec![], End::KeepOpen, &[Kind::Protocol]).await;
}

#[tokio::test]
async fn endless_input_is_cut_off() {
    let interim = End::Repeat(early_hints());
    fails(settings(), vec![], interim, &[Kind::Protocol]).await;
    let broken = [Kind::Protocol, Kind::BodyReset];
    fails(settings(), ok(), End::Repeat(trailers()), &broken).await;
    fails(settings().repeat(1000), ok(), End::KeepOpen, &broken).await;
    let idle = [Kind::IdleTimeout];
    for noise in [frame(UNKNOWN, b"").repeat(500), frame(UNKNOWN, &[7; 9000])] {
        fails(settings(), vec![], End::Repeat(noise.clone()), &idle).await;
        fails(settings(), ok(), End::Repeat(noise), &idle).await;
    }
    fails(settings(), ok(), End::Repeat(frame(DATA, b"").repeat(500)), &idle).await;
}

#[tokio::test]
async fn a_stream_may_be_reset_at_any_moment() {
    let whole = [early_hints(), ok(), frame(DATA, b"half"), frame(DATA, b"whole")].concat();
    let kinds = [Kind::Protocol, Kind::BodyReset];
    for cut in (0..=whole.len()).step_by(7) {
        for end in [End::Reset, End::StopAndReset] {
            fails(settings(), whole[..cut].to_vec(), end, &kinds).await;
        }
    }
}

#[tokio::test]
async fn a_stream_may_end_at_any_moment() {
    let whole = [ok(), frame(DATA, b"half"), frame(DATA, b"whole")].concat();
    let kinds = [Kind::Protocol, Kind::BodyReset, Kind::BodyTruncated];
    let whole_frames = [ok().len(), ok().len() + frame(DATA, b"half").len()];
    for cut in (0..whole.len()).filter(|cut| !whole_frames.contains(cut)).step_by(3) {
        fails(settings(), whole[..cut].to_vec(), End::Finish, &kinds).await;
    }
    let half = [ok(), announce(DATA, 9), b"half".to_vec()].concat();
    fails(settings(), half, End::Finish, &[Kind::BodyTruncated]).await;
}

#[tokio::test]
async fn a_body_of_another_length_than_announced() {
    for announced in [3, 5] {
        let answer = [ok_of_length(announced), frame(DATA, b"four")].concat();
        fails(settings(), answer, End::Finish, &[Kind::BodyLength]).await;
    }
}

#[tokio::test]
async fn unusual_but_valid_responses_are_read() {
    let before = panics();
    let one_by_one = b"whole".map(|byte| frame(DATA, &[byte])).concat();
    let empty = frame(DATA, b"");
    let unknown = frame(UNKNOWN, &[7; 9000]);
    let answer = [unknown.clone(), early_hints(), ok(), empty.clone(), one_by_one, empty, unknown];
    let peer = Peer::answering(settings(), answer.concat(), End::Finish);
    for outcome in outcomes(&peer, SOON).await {
        assert_eq!(outcome.expect("a body"), "whole");
    }
    assert_eq!(panics(), before);
}

#[tokio::test]
async fn cancelling_a_pending_read_resets_only_that_stream() {
    let before = panics();
    let (report, mut stopped) = tokio::sync::mpsc::unbounded_channel();
    let peer = Peer::start(move |quic| {
        let report = report.clone();
        async move {
            let _control = open_control(&quic, &settings()).await;
            for answer in [vec![], ok(), [ok(), announce(DATA, 9), vec![7]].concat()] {
                let Ok((mut send, _recv)) = quic.accept_bi().await else { return };
                let _ = send.write_all(&answer).await;
                let _ = report.send(send.stopped().await);
            }
            let Ok((mut send, _recv)) = quic.accept_bi().await else { return };
            let _ = send.write_all(&[ok(), frame(DATA, b"last")].concat()).await;
            let _ = send.finish();
            quic.closed().await;
        }
    });
    let client = peer.client().build().expect("a client");
    for _ in 0..3 {
        let reading = async { client.get(peer.url()).send().await?.bytes().await };
        let cut = tokio::time::timeout(SENT_AFTER, reading).await;
        assert!(cut.is_err(), "nothing to read");
        let why =
            tokio::time::timeout(SOON, stopped.recv()).await.expect("in time").expect("a report");
        // H3_REQUEST_CANCELLED.
        assert_eq!(why, Ok(Some(quinn::VarInt::from_u32(0x10c))));
    }
    let last = async { client.get(peer.url()).send().await?.text().await };
    assert_eq!(tokio::time::timeout(SOON, last).await.expect("an end").expect("a body"), "last");
    assert_eq!((peer.connections(), panics()), (1, before));
}

#[tokio::test]
async fn after_a_goaway_requests_use_a_new_connection() {
    let before = panics();
    let peer = Peer::start(|quic| async move {
        let mut control = open_control(&quic, &settings()).await;
        let Ok((mut send, _recv)) = quic.accept_bi().await else { return };
        // Stream 4, that of the second request, and later ones are not processed.
        let _ = control.write_all(&frame(GOAWAY, &[4])).await;
        let _ = send.write_all(&[ok(), frame(DATA, b"once")].concat()).await;
        let _ = send.finish();
        if let Ok((_send, _recv)) = quic.accept_bi().await {
            quic.close(0_u32.into(), b"refused");
        }
        quic.closed().await;
    });
    let client = peer.client().build().expect("a client");
    for expected in 1..=3 {
        let once = async { client.post(peer.url()).send().await?.text().await };
        let once = tokio::time::timeout(SOON, once).await.expect("an end");
        assert_eq!(once.expect("a body"), "once");
        until("a connection for each", || peer.connections() == expected).await;
        // GOAWAY and the response are on different streams.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(panics(), before);
}

//= rfc9114 §5.2
//# requests with the indicated identifier or greater are unprocessed, and may be sent again at once
#[tokio::test]
async fn a_request_that_a_goaway_excludes_is_sent_again_although_its_stream_remains_open() {
    let before = panics();
    let is_first = std::sync::Arc::new(AtomicBool::new(true));
    let peer = Peer::start(move |quic| {
        let is_first = std::sync::Arc::clone(&is_first);
        async move {
            let mut control = open_control(&quic, &settings()).await;
            let Ok((mut send, _recv)) = quic.accept_bi().await else { return };
            if is_first.swap(false, Ordering::SeqCst) {
                let _ = control.write_all(&frame(GOAWAY, &[0])).await;
            } else {
                let _ = send.write_all(&[ok(), frame(DATA, b"again")].concat()).await;
                let _ = send.finish();
            }
            // Neither stream is reset.
            quic.closed().await;
        }
    });
    let client = peer.client().idle_timeout(SOON * 2).build().expect("a client");
    let again = async { client.get(peer.url()).send().await?.text().await };
    let again = tokio::time::timeout(SOON, again).await.expect("at once");
    assert_eq!(again.expect("a response"), "again");
    assert_eq!((peer.connections(), panics()), (2, before));
}
