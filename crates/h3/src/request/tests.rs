//! Tests of both halves: contents pass without a copy, and a sender makes what a receiver accepts.

use alloc::vec::Vec;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::fault::{ConnectionFault, Fault, StreamFault};
use crate::frame::{self, MAX_IGNORED_FRAME};
use crate::frame_type::FrameType;
use crate::message::{Content, MessageFault};
use crate::misuse::Misuse;
use crate::stream::Role;

const LIMIT: u64 = 1000;

/// Reads a stream, accepting each head with the next of these, and joins contents.
fn read(role: Role, stream: &[u8], cut: usize, contents: &[Content]) -> Vec<Received> {
    let mut receiver = RequestReceiver::new(role, LIMIT);
    let mut read: Vec<Received> = Vec::new();
    let mut contents = contents.iter();
    let parts = stream.chunks(cut.max(1)).map(|part| (part, false));
    for (part, fin) in parts.chain([(&b""[..], true)]) {
        receiver.handle_input(Bytes::copy_from_slice(part), fin);
        while let Some(received) = receiver.poll_output() {
            match (&received, read.last_mut()) {
                (Received::Head(_), _) => {
                    assert!(receiver.is_waiting() && receiver.poll_output().is_none());
                    receiver.accept_head(*contents.next().unwrap_or(&Content::Any));
                }
                (Received::Trailers(_), _) => receiver.accept_trailers(),
                (Received::Data(more), Some(Received::Data(data))) => {
                    *data = [&data[..], more].concat().into();
                    continue;
                }
                _ => {}
            }
            read.push(received);
        }
    }
    assert!(receiver.is_over() && receiver.poll_output().is_none());
    read
}

#[test]
fn content_is_a_slice_of_the_input() {
    let mut receiver = RequestReceiver::new(Role::Server, LIMIT);
    let mut stream = Vec::new();
    frame::write(FrameType::Headers, b"head", &mut stream);
    frame::write(FrameType::Data, &[7; 5000], &mut stream);
    let input = Bytes::from(stream);
    let range = input.as_ptr_range();
    receiver.handle_input(input.clone(), false);
    let Some(Received::Head(head)) = receiver.poll_output() else { panic!() };
    receiver.accept_head(Content::Any);
    let Some(Received::Data(data)) = receiver.poll_output() else { panic!() };
    assert!(range.contains(&head.as_ptr()) && range.contains(&data.as_ptr()));
    assert_eq!((data.len(), receiver.data_left()), (5000, 0));
}

#[test]
fn what_is_left_of_a_data_frame_is_known() {
    let mut receiver = RequestReceiver::new(Role::Server, LIMIT);
    receiver.handle_input(Bytes::from_static(b"\x01\x00\x00\x05ab"), false);
    assert_eq!(receiver.poll_output(), Some(Received::Head(Bytes::new())));
    receiver.accept_head(Content::Any);
    assert_eq!(receiver.poll_output(), Some(Received::Data(Bytes::from_static(b"ab"))));
    assert_eq!((receiver.poll_output(), receiver.data_left()), (None, 3));
}

//= rfc9114 §4.1.2
//# the content has the length that Content-Length says, unless the response never has any
#[test]
fn a_frame_that_is_too_long_fails_before_its_content() {
    let content_length = |announced, received| {
        Fault::from(MessageFault::ContentLengthDiffers { announced, received })
    };
    let ignored = FrameType::Reserved(0x21);
    let (length, limit) = (MAX_IGNORED_FRAME + 1, MAX_IGNORED_FRAME);
    for (header, content, expected) in [
        (&b"\x00\x06"[..], Content::Length(5), content_length(5, 6)),
        (b"\x00\x01", Content::Empty, MessageFault::ContentForbidden.into()),
        (b"\x01\x44\x09", Content::Any, StreamFault::FieldSectionTooLarge { limit: LIMIT }.into()),
        (
            b"\x21\x80\x01\x00\x01",
            Content::Any,
            StreamFault::FrameTooLong { frame: ignored, length, limit }.into(),
        ),
    ] {
        let stream = [b"\x01\x00", header].concat();
        for cut in 1..=stream.len() {
            let read = read(Role::Server, &stream, cut, &[content]);
            assert_eq!(read.last(), Some(&Received::Failed(expected)), "{header:?}");
        }
    }
}

#[test]
fn the_limit_of_interim_responses_is_exact() {
    for (count, is_accepted) in [(MAX_INTERIM_RESPONSES, true), (MAX_INTERIM_RESPONSES + 1, false)]
    {
        let mut contents = vec![Content::Interim; count as usize];
        contents.push(Content::Any);
        let stream = b"\x01\x00".repeat(contents.len());
        let read = read(Role::Client, &stream, 100, &contents);
        assert_eq!(read.last() == Some(&Received::End), is_accepted, "{count}: {:?}", read.last());
    }
}

#[test]
fn a_sender_refuses_what_a_peer_would_find_malformed() {
    let sender = |content: Content| {
        let mut sender = RequestSender::default();
        sender.head(b"", content).expect("it is the first");
        sender
    };
    let mut new = RequestSender::default();
    assert_eq!(new.data(1), Err(Misuse::OutOfOrder));
    assert_eq!(new.trailers(b""), Err(Misuse::OutOfOrder));
    assert_eq!(new.finish(), Err(Misuse::OutOfOrder));
    let mut interim = sender(Content::Interim);
    assert_eq!(interim.data(0), Err(Misuse::OutOfOrder));
    assert_eq!(interim.finish(), Err(Misuse::OutOfOrder));
    assert!(interim.head(b"", Content::Any).is_ok());
    assert_eq!(interim.head(b"", Content::Any), Err(Misuse::OutOfOrder));
    let mut five = sender(Content::Length(5));
    assert_eq!(five.finish(), Err(Misuse::ContentLength { announced: 5, sent: 0 }));
    assert_eq!(five.trailers(b""), Err(Misuse::ContentLength { announced: 5, sent: 0 }));
    assert_eq!(five.data(6), Err(Misuse::ContentLength { announced: 5, sent: 6 }));
    assert!(five.data(5).is_ok() && five.trailers(b"").is_ok());
    assert_eq!(five.data(0), Err(Misuse::OutOfOrder));
    assert!(five.finish().is_ok());
    assert_eq!(five.finish(), Err(Misuse::OutOfOrder));
    let forbidden = Misuse::Malformed(MessageFault::ContentForbidden);
    assert_eq!(sender(Content::Empty).data(1), Err(forbidden));
    assert!(sender(Content::Empty).data(0).is_ok());
    assert_eq!(sender(Content::Tunnel).trailers(b""), Err(Misuse::OutOfOrder));
}

proptest! {
    #[test]
    fn a_receiver_reads_what_a_sender_makes(
        interim in 0..3_usize,
        parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..5),
        has_length: bool,
        has_trailers: bool,
        cut in 1..100_usize,
    ) {
        let content = parts.concat();
        let length = if has_length { Content::Length(content.len() as u64) } else { Content::Any };
        let mut contents = vec![Content::Interim; interim];
        contents.push(length);
        let mut sender = RequestSender::default();
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for content in &contents {
            stream.extend(sender.head(b"head", *content).expect("it is in order"));
            expected.push(Received::Head(Bytes::from_static(b"head")));
        }
        for part in &parts {
            stream.extend_from_slice(sender.data(part.len() as u64).expect("in order").as_ref());
            stream.extend_from_slice(part);
        }
        if !content.is_empty() {
            expected.push(Received::Data(content.into()));
        }
        if has_trailers {
            stream.extend(sender.trailers(b"end").expect("it is in order"));
            expected.push(Received::Trailers(Bytes::from_static(b"end")));
        }
        sender.finish().expect("it is complete");
        expected.push(Received::End);
        prop_assert_eq!(read(Role::Client, &stream, cut, &contents), expected);
    }

    #[test]
    fn what_is_read_does_not_depend_on_the_parts(
        stream in proptest::collection::vec(prop_oneof![0..6_u8, any::<u8>()], 0..64),
        content in proptest::sample::select(vec![
            Content::Any, Content::Empty, Content::Length(4), Content::Tunnel, Content::Interim,
        ]),
        cut in 1..64_usize,
        role in proptest::sample::select(vec![Role::Client, Role::Server]),
    ) {
        let whole = read(role, &stream, stream.len(), &[content]);
        prop_assert_eq!(&whole, &read(role, &stream, cut, &[content]));
        prop_assert_eq!(&whole, &read(role, &stream, 1, &[content]));
        if !matches!(whole.last(), Some(Received::End)) {
            prop_assert!(matches!(whole.last(), Some(Received::Failed(_))));
        }
    }
}

//= rfc9114 §4.1
//# an incomplete request is aborted with H3_REQUEST_INCOMPLETE
#[test]
fn a_truncated_frame_is_told_apart_from_a_truncated_message() {
    let truncated = |stream: &[u8]| read(Role::Server, stream, 1, &[Content::Length(5)]).pop();
    let failed = |fault: Fault| Some(Received::Failed(fault));
    assert_eq!(truncated(b"\x01\x00\x00\x05ab"), failed(ConnectionFault::FrameTruncated.into()));
    let short = MessageFault::ContentLengthDiffers { announced: 5, received: 2 };
    assert_eq!(truncated(b"\x01\x00\x00\x02ab"), failed(short.into()));
    assert_eq!(truncated(b""), failed(StreamFault::RequestIncomplete.into()));
}
