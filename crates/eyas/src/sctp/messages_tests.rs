//! Messages over sockets of this machine.

use bytes::Bytes;
use eyas_race::evidence::FailureCause;
use eyas_sctp_tokio::SctpMessages;
use eyas_sctp_tokio::protocol::identifier::StreamId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::Connection;
use crate::sctp::secured_pair::{TIMEOUT, dtls_pair, pair};

const STREAM: StreamId = StreamId(1023);

fn messages(connection: &Connection) -> SctpMessages {
    connection.sctp_streams().expect("SCTP").messages(STREAM).expect("messages")
}

async fn next(messages: &SctpMessages) -> Bytes {
    let next = timeout(TIMEOUT, messages.receive()).await.expect("in time");
    next.expect("an association").expect("a message")
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_exchanged_inside_dtls() {
    let (_listener, ours, theirs) = dtls_pair().await;
    let (near, far) = (messages(&ours), messages(&theirs));
    for length in [1, 100, 5000, 60_000] {
        near.send(&vec![7; length], TIMEOUT).await.expect("sent");
        assert_eq!(next(&far).await, vec![7; length]);
        far.send(&vec![8; length], TIMEOUT).await.expect("sent");
        assert_eq!(next(&near).await, vec![8; length]);
    }
    near.unsent_below(0).await;
}

//= hostile tunnel
//# SCTP messages that the other end did not send
//= bound: DTLS
#[tokio::test(flavor = "multi_thread")]
async fn unprotected_messages_are_refused() {
    let (_listener, ours, _theirs) = pair().await;
    let streams = ours.sctp_streams().expect("SCTP");
    let refused = streams.messages(STREAM).expect_err("TLS protects byte streams only");
    assert_eq!(refused.cause, FailureCause::Unsupported);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_has_one_use() {
    let (_listener, ours, _theirs) = dtls_pair().await;
    let streams = ours.sctp_streams().expect("SCTP");
    let refused = |stream| streams.messages(StreamId(stream)).expect_err("there are none");
    let first = streams.messages(StreamId(5)).expect("messages");
    assert!(refused(5).detail.contains("in use"), "{}", refused(5));
    refused(u16::MAX);
    drop(first);
    streams.messages(StreamId(5)).expect("messages again");
}

//= hostile tunnel
//# SCTP messages for an end that accepts none
//= bound: `MAX_PARKED`
#[tokio::test(flavor = "multi_thread")]
async fn unread_messages_do_not_block_other_streams() {
    let (_listener, ours, theirs) = dtls_pair().await;
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
    assert_eq!(read.await.expect("a task that reads"), b"bytes");
}
