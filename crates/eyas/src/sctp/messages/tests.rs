//! Messages that are reordered, forged and replayed; and messages over sockets of this machine.

use std::collections::BTreeSet;

use bytes::Bytes;
use eyas_race::evidence::Cause;
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::{Reliability, SendInfo};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::protection::{Keys, OVERHEAD};
use super::window::{WIDTH, Window};
use crate::Connection;
use crate::sctp::SctpMessages;
use crate::sctp::secured_pair::{TIMEOUT, pair};

const STREAM: StreamId = StreamId(1023);

/// Where the next number is, seen from the highest one so far.
#[derive(Clone, Debug)]
enum Next {
    Behind(u64),
    Ahead(u64),
    Anywhere(u64),
}

fn next_number() -> impl Strategy<Value = Next> {
    prop_oneof![
        8 => (0..100_u64).prop_map(Next::Behind),
        4 => (0..2 * WIDTH).prop_map(Next::Behind),
        8 => (0..4_u64).prop_map(Next::Ahead),
        2 => (0..4 * WIDTH).prop_map(Next::Ahead),
        1 => prop_oneof![any::<u64>(), u64::MAX - 3..=u64::MAX].prop_map(Next::Anywhere),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_window_agrees_with_a_set(
        steps in prop::collection::vec((next_number(), 0..4_u8), 0..200),
    ) {
        let (mut window, mut come) = (Window::default(), BTreeSet::new());
        for (next, draw) in steps {
            let highest = come.last().copied();
            let base = highest.unwrap_or(0_u64);
            let number = match next {
                Next::Behind(distance) => base.saturating_sub(distance),
                Next::Ahead(distance) => base.saturating_add(distance),
                Next::Anywhere(number) => number,
            };
            let is_within = highest.is_none_or(|highest| highest < number || highest - number < WIDTH);
            let is_new = number < u64::MAX && is_within && !come.contains(&number);
            prop_assert_eq!(window.is_new(number), is_new, "{} after {:?}", number, highest);
            // A forgery is asked about, but never noted.
            if is_new && draw > 0 {
                window.record(number);
                come.insert(number);
            }
        }
    }
}

#[test]
fn the_last_number_is_never_new() {
    let mut window = Window::default();
    window.record(u64::MAX - 1);
    assert!(!window.is_new(u64::MAX) && !window.is_new(u64::MAX - 1));
    assert!(window.is_new(u64::MAX - 2) && !window.is_new(5));
}

#[test]
fn every_message_is_accepted_once_however_late_it_arrives() {
    let (ours, theirs) = Keys::pair();
    let ((mut sealer, _), (_, mut opener)) = (ours.split(1), theirs.split(1));
    let mut sealed: Vec<_> = (0..3000_u32)
        .map(|number| (number, sealer.seal(&number.to_be_bytes()).expect("numbers are left")))
        .collect();
    // As over two paths: every other one arrives after all the others.
    sealed.sort_by_key(|(number, _)| number % 2);
    for (number, message) in &sealed {
        assert_eq!(message.len(), 4 + OVERHEAD);
        assert_eq!(opener.open(message.to_vec()).as_deref(), Some(&number.to_be_bytes()[..]));
    }
    for (_, message) in &sealed {
        assert_eq!(opener.open(message.to_vec()), None, "a replay");
    }
}

#[test]
fn messages_that_the_peer_did_not_send_on_this_stream_are_rejected() {
    let (ours, theirs) = Keys::pair();
    let ((mut sealer, mut own_opener), (mut peer_sealer, mut opener)) =
        (ours.split(1), theirs.split(1));
    let sealed = sealer.seal(b"a packet").expect("numbers are left");
    for at in 0..sealed.len() {
        let mut other = sealed.to_vec();
        other[at] ^= 1;
        assert_eq!(opener.open(other), None, "byte {at}");
    }
    for length in 0..sealed.len() {
        assert_eq!(opener.open(sealed[..length].to_vec()), None, "{length} bytes");
    }
    // Neither is one's own message accepted, nor one for another stream.
    assert_eq!(own_opener.open(sealed.to_vec()), None);
    let (other, _) = Keys::pair();
    let (mut other_sealer, _) = other.split(2);
    let sealed_for_other = other_sealer.seal(b"a packet").expect("numbers are left");
    assert_eq!(opener.open(sealed_for_other.to_vec()), None);
    // A forged number far ahead does not move the window.
    let mut far = sealed.to_vec();
    far[..8].copy_from_slice(&(u64::MAX - 1).to_be_bytes());
    assert_eq!(opener.open(far), None);
    assert_eq!(opener.open(sealed.to_vec()).as_deref(), Some(&b"a packet"[..]));
    let answer = peer_sealer.seal(b"").expect("numbers are left");
    assert_eq!(own_opener.open(answer.to_vec()).as_deref(), Some(&b""[..]));
}

fn messages(connection: &Connection) -> SctpMessages {
    connection.sctp_streams().expect("SCTP").messages(STREAM).expect("messages")
}

async fn next(messages: &SctpMessages) -> Bytes {
    let next = timeout(TIMEOUT, messages.receive()).await.expect("in time");
    next.expect("an association").expect("a message")
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_exchanged_and_forged_ones_are_dropped() {
    let (_listener, ours, theirs) = pair().await;
    let (near, far) = (messages(&ours), messages(&theirs));
    for length in [1, 100, 5000, 60_000] {
        near.send(&vec![7; length], TIMEOUT).await.expect("sent");
        assert_eq!(next(&far).await, vec![7; length]);
        far.send(&vec![8; length], TIMEOUT).await.expect("sent");
        assert_eq!(next(&near).await, vec![8; length]);
    }
    // Unprotected messages, as an attacker on the path can send them.
    let info = SendInfo { stream: STREAM, unordered: true, ..SendInfo::default() };
    let association = ours.sctp().expect("SCTP");
    association.send(&info, Bytes::from_static(b"unprotected, forged")).await.expect("sent");
    let with_lifetime = SendInfo { reliability: Reliability::Lifetime(TIMEOUT), ..info };
    association.send(&with_lifetime, Bytes::from(vec![0; 100])).await.expect("sent");
    near.send(b"last", TIMEOUT).await.expect("sent");
    assert_eq!(next(&far).await, "last");
    near.unsent_below(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn message_keys_of_an_association_can_be_used_once() {
    let (_listener, ours, _theirs) = pair().await;
    let streams = ours.sctp_streams().expect("SCTP");
    let refused = |stream| streams.messages(StreamId(stream)).expect_err("there are none");
    let first = ours.sctp_streams().expect("SCTP").messages(StreamId(5)).expect("messages");
    // Further messages would repeat the keys and numbers of the first ones.
    assert_eq!(refused(6).cause, Cause::Unsupported);
    assert!(refused(5).detail.contains("in use"), "{}", refused(5));
    refused(u16::MAX);
    drop(first);
    assert_eq!(refused(5).cause, Cause::Unsupported);
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_messages_do_not_block_other_streams() {
    let (_listener, ours, theirs) = pair().await;
    let near = messages(&ours);
    drop(messages(&theirs));
    let mut writer = ours.into_stream().expect("a stream");
    let mut reader = theirs.into_stream().expect("a stream");
    let read = tokio::spawn(async move {
        let mut received = vec![0; 5];
        timeout(TIMEOUT, reader.read_exact(&mut received)).await.expect("in time").expect("reads");
        received
    });
    // More than an association keeps for slow readers.
    for _ in 0..1000 {
        timeout(TIMEOUT, near.send(&[7; 1000], TIMEOUT)).await.expect("in time").expect("sent");
    }
    writer.write_all(b"bytes").await.expect("writes");
    assert_eq!(read.await.expect("it reads"), b"bytes");
}
