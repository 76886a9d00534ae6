//! Messages in any order, from anybody, as often as they come; and over sockets of this machine.

use std::collections::BTreeSet;

use bytes::Bytes;
use eyas_race::evidence::Cause;
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::{Reliability, SendInfo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::protection::{Keys, OVERHEAD};
use super::window::{WIDTH, Window};
use crate::Connection;
use crate::sctp::SctpMessages;
use crate::sctp::secured_pair::{HANGS, pair};

const STREAM: StreamId = StreamId(1023);

/// A sequence of numbers that is the same each time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

#[test]
fn the_window_knows_what_a_set_knows() {
    let mut draws = Draws(1);
    for span in [3, 100, 2 * WIDTH, 40 * WIDTH] {
        let (mut window, mut come) = (Window::default(), BTreeSet::new());
        let mut base = 0;
        for _ in 0..20_000 {
            base += draws.below(3);
            let number = base + draws.below(span);
            let highest = come.last().copied().unwrap_or(0);
            let is_new = number + WIDTH > highest && !come.contains(&number);
            assert_eq!(window.is_new(number), is_new, "{number} after {highest}");
            if is_new && draws.below(4) > 0 {
                window.note(number);
                come.insert(number);
            }
        }
    }
    let mut window = Window::default();
    window.note(u64::MAX - 1);
    assert!(!window.is_new(u64::MAX) && !window.is_new(u64::MAX - 1));
    assert!(window.is_new(u64::MAX - 2) && !window.is_new(5));
}

#[test]
fn every_message_is_taken_once_however_far_others_overtake_it() {
    let (ours, theirs) = Keys::pair();
    let ((mut sealing, _), (_, mut opening)) = (ours.split(1), theirs.split(1));
    let mut sealed: Vec<_> = (0..3000_u32)
        .map(|number| (number, sealing.seal(&number.to_be_bytes()).expect("there are numbers")))
        .collect();
    // As over two lines: every other one comes after all the others.
    sealed.sort_by_key(|(number, _)| number % 2);
    for (number, message) in &sealed {
        assert_eq!(message.len(), 4 + OVERHEAD);
        assert_eq!(opening.open(message.to_vec()).as_deref(), Some(&number.to_be_bytes()[..]));
    }
    for (_, message) in &sealed {
        assert_eq!(opening.open(message.to_vec()), None, "it has come");
    }
}

#[test]
fn what_the_peer_did_not_send_on_this_stream_is_not_taken() {
    let (ours, theirs) = Keys::pair();
    let ((mut sealing, mut ours), (mut answering, mut opening)) = (ours.split(1), theirs.split(1));
    let sealed = sealing.seal(b"a packet").expect("there are numbers");
    for at in 0..sealed.len() {
        let mut other = sealed.to_vec();
        other[at] ^= 1;
        assert_eq!(opening.open(other), None, "byte {at}");
    }
    for length in 0..sealed.len() {
        assert_eq!(opening.open(sealed[..length].to_vec()), None, "{length} bytes");
    }
    // Nor is what one has sent oneself, nor what was for another stream.
    assert_eq!(ours.open(sealed.to_vec()), None);
    let (other, _) = Keys::pair();
    let (mut elsewhere, _) = other.split(2);
    let sealed_elsewhere = elsewhere.seal(b"a packet").expect("there are numbers");
    assert_eq!(opening.open(sealed_elsewhere.to_vec()), None);
    // A forgery of a number far ahead does not make the next ones late.
    let mut far = sealed.to_vec();
    far[..8].copy_from_slice(&(u64::MAX - 1).to_be_bytes());
    assert_eq!(opening.open(far), None);
    assert_eq!(opening.open(sealed.to_vec()).as_deref(), Some(&b"a packet"[..]));
    let answer = answering.seal(b"").expect("there are numbers");
    assert_eq!(ours.open(answer.to_vec()).as_deref(), Some(&b""[..]));
}

fn messages(connection: &Connection) -> SctpMessages {
    connection.sctp_streams().expect("SCTP").messages(STREAM).expect("messages")
}

async fn next(messages: &SctpMessages) -> Bytes {
    let next = timeout(HANGS, messages.receive()).await.expect("it comes");
    next.expect("an association").expect("a message")
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_go_both_ways_and_nobody_else_can_send_one() {
    let (_listener, ours, theirs) = pair().await;
    let (near, far) = (messages(&ours), messages(&theirs));
    for length in [1, 100, 5000, 60_000] {
        near.send(&vec![7; length], HANGS).await.expect("it is sent");
        assert_eq!(next(&far).await, vec![7; length]);
        far.send(&vec![8; length], HANGS).await.expect("it is sent");
        assert_eq!(next(&near).await, vec![8; length]);
    }
    // As somebody who sees the path may: in clear, and twice.
    let info = SendInfo { stream: STREAM, unordered: true, ..SendInfo::default() };
    let association = ours.sctp().expect("SCTP");
    association.send(&info, Bytes::from_static(b"in clear, forged")).await.expect("it is sent");
    let early = SendInfo { reliability: Reliability::Lifetime(HANGS), ..info };
    association.send(&early, Bytes::from(vec![0; 100])).await.expect("it is sent");
    near.send(b"the last", HANGS).await.expect("it is sent");
    assert_eq!(next(&far).await, "the last");
    near.unsent_below(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_association_has_messages_once() {
    let (_listener, ours, _theirs) = pair().await;
    let streams = ours.sctp_streams().expect("SCTP");
    let refused = |stream| streams.messages(StreamId(stream)).expect_err("there are none");
    let first = ours.sctp_streams().expect("SCTP").messages(StreamId(5)).expect("messages");
    // With the same keys and numbers as those before them.
    assert_eq!(refused(6).cause, Cause::Unsupported);
    assert!(refused(5).detail.contains("in use"), "{}", refused(5));
    refused(u16::MAX);
    drop(first);
    assert_eq!(refused(5).cause, Cause::Unsupported);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_nobody_reads_any_more_hold_up_no_stream() {
    let (_listener, ours, theirs) = pair().await;
    let near = messages(&ours);
    drop(messages(&theirs));
    let mut writing = ours.into_stream().expect("a stream");
    let mut reading = theirs.into_stream().expect("a stream");
    let reads = tokio::spawn(async move {
        let mut heard = vec![0; 5];
        timeout(HANGS, reading.read_exact(&mut heard)).await.expect("it comes").expect("reads");
        heard
    });
    // More than an association keeps for readers that are late.
    for _ in 0..1000 {
        timeout(HANGS, near.send(&[7; 1000], HANGS)).await.expect("there is room").expect("sent");
    }
    writing.write_all(b"bytes").await.expect("writes");
    assert_eq!(reads.await.expect("it reads"), b"bytes");
}
