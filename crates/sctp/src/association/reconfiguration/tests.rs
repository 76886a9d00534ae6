//! Two endpoints that reset and add streams.

use super::*;
use crate::config::AssociationConfig;
use crate::error::Error;
use crate::identifier::{PathId, Ppid, VerificationTag};
use crate::message::SendInfo;
use crate::path::AssociationPaths;
use crate::receive::DataOutcome;
use crate::send::SenderTerms;
use crate::wire::parameter::{AddStreams, IncomingSsnReset, OutgoingSsnReset, StreamList};
use crate::wire::{ChecksumKind, Chunk, CommonHeader, PacketParser, PacketWriter};
use bytes::{Bytes, BytesMut};
use core::net::SocketAddr;

const RTO: Duration = Duration::from_secs(1);
const PATH: PathId = PathId(0);
const PERFORMED: ReconfigurationOutcome = ReconfigurationOutcome::Performed;

struct Side {
    now: Duration,
    sender: AssociationSender,
    receiver: AssociationReceiver,
    paths: AssociationPaths,
    reconfiguration: ReconfigurationState,
    counters: EndpointCounters,
}

impl Side {
    fn new(own: u32, peer: u32) -> Self {
        let config = AssociationConfig::default();
        let terms = SenderTerms {
            initial_tsn: Tsn(own),
            peer_window: 1 << 20,
            outbound: 10,
            interleaving: false,
            partial_reliability: true,
            reserved: 0,
        };
        let remote = SocketAddr::from(([192, 0, 2, 1], 9899));
        let receiver = AssociationReceiver::new(&config, Tsn(peer), 10, false, false);
        Self {
            now: Duration::from_secs(50),
            sender: AssociationSender::new(&config, terms),
            receiver,
            paths: AssociationPaths::new(remote, None, &config, [7; 32]),
            reconfiguration: ReconfigurationState::new(Tsn(own), Tsn(peer)),
            counters: EndpointCounters::default(),
        }
    }

    fn pair() -> (Self, Self) {
        (Self::new(100, 9000), Self::new(9000, 100))
    }

    fn submit(&mut self, request: ReconfigurationRequest) -> Result<(), Error> {
        let mut halves = SenderAndReceiver {
            sender: &mut self.sender,
            receiver: &mut self.receiver,
            max_inbound: 20,
        };
        self.reconfiguration.submit(request, &mut halves)
    }

    fn receive(&mut self, chunk: &ReconfigChunk) {
        let mut halves = SenderAndReceiver {
            sender: &mut self.sender,
            receiver: &mut self.receiver,
            max_inbound: 20,
        };
        let (now, counters) = (self.now, &mut self.counters);
        self.reconfiguration.handle_chunk(now, RTO, chunk, &mut halves, counters);
    }

    fn receive_parameter(&mut self, parameter: Parameter) {
        let parameters = [parameter].into_iter().collect();
        self.receive(&ReconfigChunk { parameters });
    }

    fn advance(&mut self) {
        let mut halves = SenderAndReceiver {
            sender: &mut self.sender,
            receiver: &mut self.receiver,
            max_inbound: 20,
        };
        self.reconfiguration.advance(&mut halves);
    }

    fn poll(&mut self) -> Option<ReconfigChunk> {
        self.reconfiguration.poll_chunk(self.now, RTO, PATH)
    }

    /// The result in its only response.
    fn response_result(&mut self) -> ReconfigurationResult {
        let chunk = self.poll().expect("an answer");
        let mut parameters = chunk.parameters.iter();
        let Some(Parameter::ReconfigurationResponse(response)) = parameters.next() else {
            panic!("no answer in {chunk:?}");
        };
        assert_eq!(parameters.next(), None);
        response.result
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.reconfiguration.poll_event()).collect()
    }

    fn send(&mut self, stream: u16, text: &'static str) {
        let info = SendInfo { stream: StreamId(stream), ppid: Ppid(1), ..SendInfo::default() };
        let data = Bytes::from_static(text.as_bytes());
        self.sender.send(self.now, &info, data, &mut self.paths).expect("there is room");
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Self, &mut PacketWriter<'_>)) -> Vec<Chunk> {
        let header = CommonHeader { source_port: 1, destination_port: 2, tag: VerificationTag(3) };
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, header, 1400);
        fill(self, &mut packet);
        packet.finish(ChecksumKind::Crc32c);
        let contents = buffer.freeze();
        let (_, chunks) = PacketParser::parse(&contents, ChecksumKind::Crc32c).expect("a packet");
        chunks.collect()
    }

    /// The DATA chunks that it can send now.
    fn data(&mut self) -> Vec<Chunk> {
        let now = self.now;
        self.packet(|side, packet| {
            let counters = &mut side.counters;
            side.sender.fill(now, PATH, &mut side.paths, packet, counters);
        })
    }

    /// Receives the other side's data and returns its acknowledgement.
    fn receive_data(&mut self, chunks: Vec<Chunk>) -> Vec<Chunk> {
        for chunk in chunks {
            let Chunk::Data(mut data) = chunk else { panic!("{chunk:?}") };
            let outcome = self.receiver.handle_data(&mut data, &mut self.counters);
            assert_eq!(outcome, DataOutcome::Accepted);
        }
        self.receiver.end_of_packet(self.now, (PATH, None), 100, false);
        self.packet(|side, packet| assert!(side.receiver.write_sack(packet)))
    }

    fn acknowledged(&mut self, chunks: &[Chunk]) {
        let [Chunk::Sack(sack)] = chunks else { panic!("{chunks:?}") };
        self.sender.handle_sack(self.now, sack, PathId(0), &mut self.paths, &mut self.counters);
        self.advance();
    }

    fn texts(&mut self) -> Vec<Bytes> {
        core::iter::from_fn(|| self.receiver.receive()).map(|one| one.into_bytes()).collect()
    }
}

/// Exchanges chunks until neither side has anything to send.
fn exchange(one: &mut Side, other: &mut Side) {
    for _ in 0..20 {
        while let Some(chunk) = one.poll() {
            other.receive(&chunk);
        }
        let Some(chunk) = other.poll() else { return };
        one.receive(&chunk);
    }
    panic!("the exchange does not end");
}

/// Sends `text` on `stream` from one side to the other.
fn send_message(one: &mut Side, other: &mut Side, stream: u16, text: &'static str) {
    one.send(stream, text);
    let data = one.data();
    let sack = other.receive_data(data);
    one.acknowledged(&sack);
}

fn reset_event(outgoing: bool, streams: &[u16], outcome: ReconfigurationOutcome) -> Event {
    let streams = streams.iter().map(|stream| StreamId(*stream)).collect();
    Event::StreamsReset { outgoing, streams, outcome }
}

//= rfc6525 §5.2.2 E3, E5, E6, §5.2.7 H4
//# streams that were reset restart at 0
#[test]
fn our_streams_restart_and_continue() {
    let (mut a, mut b) = Side::pair();
    send_message(&mut a, &mut b, 1, "a");
    send_message(&mut a, &mut b, 2, "b");
    a.submit(ReconfigurationRequest::ResetOutgoing(alloc::vec![StreamId(1), StreamId(1)]))
        .expect("nothing else");
    assert_eq!(a.submit(ReconfigurationRequest::ResetAssociation), Err(Error::Busy));
    exchange(&mut a, &mut b);
    assert_eq!(a.events(), [reset_event(true, &[1], PERFORMED)]);
    assert_eq!(b.events(), [reset_event(false, &[1], PERFORMED)]);
    send_message(&mut a, &mut b, 1, "c");
    send_message(&mut a, &mut b, 2, "d");
    assert_eq!(b.texts(), ["a", "b", "c", "d"]);
    assert_eq!(a.reconfiguration.next_timeout(), None);
}

//= rfc6525 §5.1.2 A4, §5.1.3 B2
//# a reset names all streams by an empty list, otherwise up to 500
#[test]
fn all_streams_restart_including_newly_used_ones() {
    let (mut a, mut b) = Side::pair();
    send_message(&mut a, &mut b, 1, "a");
    a.submit(ReconfigurationRequest::ResetOutgoing(Vec::new())).expect("nothing else");
    a.send(1, "b");
    a.send(5, "c");
    assert_eq!(a.data(), []);
    exchange(&mut a, &mut b);
    let data = a.data();
    assert_eq!(data.len(), 2);
    b.receive_data(data);
    // A stream without anything sent goes before one that has sent something.
    assert_eq!(b.texts(), ["a", "c", "b"]);
}

//= rfc6525 §5.2.2 E2
//# "in progress" until everything before it has arrived; then the final answer, unasked
#[test]
fn a_reset_waits_for_earlier_data() {
    let (mut a, mut b) = Side::pair();
    a.send(1, "late");
    let late = a.data();
    a.submit(ReconfigurationRequest::ResetOutgoing(alloc::vec![StreamId(1)]))
        .expect("nothing else");
    let request = a.poll().expect("the request");
    b.receive(&request);
    assert_eq!(b.response_result(), ReconfigurationResult::InProgress);
    assert_eq!(b.events(), []);
    b.receive(&request);
    assert_eq!(b.response_result(), ReconfigurationResult::InProgress);
    b.receive_data(late);
    b.advance();
    assert_eq!(b.events(), [reset_event(false, &[1], PERFORMED)]);
    exchange(&mut b, &mut a);
    assert_eq!(a.events(), [reset_event(true, &[1], PERFORMED)]);
    send_message(&mut a, &mut b, 1, "next");
    assert_eq!(b.texts(), ["late", "next"]);
}

//= rfc6525 §5.1.1, §5.2.1
//# retransmitted by the RTO, doubled; a repeated chunk gets the same answer, of the last two
#[test]
fn a_request_is_retransmitted_until_it_is_answered_and_executed_once() {
    let (mut a, mut b) = Side::pair();
    send_message(&mut a, &mut b, 1, "a");
    a.submit(ReconfigurationRequest::ResetOutgoing(alloc::vec![StreamId(1)]))
        .expect("nothing else");
    let lost = a.poll().expect("the request");
    assert_eq!(a.poll(), None);
    assert_eq!(a.reconfiguration.next_timeout(), Some(a.now + RTO));
    assert_eq!(a.reconfiguration.handle_timeout(a.now), None);
    a.now += RTO;
    assert_eq!(a.reconfiguration.handle_timeout(a.now), Some(ResendReason::TimedOut));
    let again = a.poll().expect("the same chunk again");
    assert_eq!(lost, again);
    b.receive(&again);
    let answer = b.poll().expect("the answer");
    send_message(&mut b, &mut a, 1, "x");
    b.receive(&again);
    assert_eq!(b.poll(), Some(answer.clone()), "the same response, but nothing is performed again");
    assert_eq!(b.events().len(), 1);
    a.receive(&answer);
    a.receive(&answer);
    assert_eq!((a.events().len(), a.counters.unexpected_chunks), (1, 1));
}

//= rfc6525 §5.1.2 A4
//# the answer to an incoming reset has its streams and number
#[test]
fn an_incoming_reset_makes_the_peer_reset_its_streams() {
    let (mut a, mut b) = Side::pair();
    send_message(&mut b, &mut a, 3, "a");
    a.submit(ReconfigurationRequest::ResetIncoming(alloc::vec![StreamId(3)]))
        .expect("nothing else");
    exchange(&mut a, &mut b);
    assert_eq!(a.events(), [reset_event(false, &[3], PERFORMED)]);
    assert_eq!(b.events(), [reset_event(true, &[3], PERFORMED)]);
    assert!(!a.reconfiguration.is_busy() && !b.reconfiguration.is_busy());
    send_message(&mut b, &mut a, 3, "b");
    assert_eq!(a.texts(), ["a", "b"]);
}

//= rfc6525 §5.2.2 E1
//# an outgoing reset that fulfils our request acknowledges it
#[test]
fn a_request_that_fulfils_ours_counts_as_its_response() {
    let (mut a, _) = Side::pair();
    a.submit(ReconfigurationRequest::ResetIncoming(alloc::vec![StreamId(3)]))
        .expect("nothing else");
    a.poll().expect("the request");
    a.receive_parameter(Parameter::OutgoingSsnReset(OutgoingSsnReset {
        request: ReconfigurationNumber(9000),
        response: ReconfigurationNumber(100),
        last_assigned_tsn: Tsn(8999),
        streams: StreamList::new(&[StreamId(3)]),
    }));
    assert_eq!(a.events(), [reset_event(false, &[3], PERFORMED)]);
    assert!(!a.reconfiguration.is_busy());
    assert_eq!(a.reconfiguration.next_timeout(), None);
}

//= rfc6525 §5.2.4 G1, G4 to G7, §5.2.7 H5
//# everything missing is skipped, all streams restart, the next TSNs follow the answer
#[test]
fn an_association_reset_restarts_everything() {
    let (mut a, mut b) = Side::pair();
    send_message(&mut a, &mut b, 1, "a");
    b.send(2, "under way");
    let late = b.data();
    a.submit(ReconfigurationRequest::ResetAssociation).expect("nothing else");
    let request = a.poll().expect("the request");
    b.receive(&request);
    assert_eq!(b.response_result(), ReconfigurationResult::InProgress);
    b.send(2, "waits");
    assert_eq!(b.data(), []);
    assert_eq!(b.submit(ReconfigurationRequest::ResetAssociation), Err(Error::Busy));
    let sack = a.receive_data(late);
    b.acknowledged(&sack);
    exchange(&mut b, &mut a);
    let (of_a, of_b) = (Tsn(101 + (1 << 31)), Tsn(9001 + (1 << 30)));
    let done = |next_tsn, expected_tsn| {
        [Event::AssociationReset { outcome: PERFORMED, next_tsn, expected_tsn }]
    };
    assert_eq!(a.events(), done(of_a, of_b));
    assert_eq!(b.events(), done(of_b, of_a));
    assert_eq!((a.sender.next_tsn(), b.sender.next_tsn()), (of_a, of_b));
    send_message(&mut a, &mut b, 1, "b");
    let data = b.data();
    let sack = a.receive_data(data);
    b.acknowledged(&sack);
    assert_eq!(b.texts(), ["a", "b"]);
    assert_eq!(a.texts(), ["under way", "waits"]);
}

//= rfc6525 §5.2.4 G2
//# our next TSN SHOULD be the highest sent plus 1; it is plus 2 to the 30th
//= otherwise: data that overtakes the answer must not be taken for earlier data
#[test]
fn data_that_overtakes_the_answer_to_a_reset_is_not_lost() {
    let (mut a, mut b) = Side::pair();
    send_message(&mut b, &mut a, 1, "a");
    a.submit(ReconfigurationRequest::ResetAssociation).expect("nothing else");
    let request = a.poll().expect("the request");
    b.receive(&request);
    b.send(1, "early");
    let Some(Chunk::Data(early)) = b.data().pop() else { panic!("no data") };
    let outcome = a.receiver.handle_data(&mut early.clone(), &mut a.counters);
    assert_eq!(outcome, DataOutcome::OverWindow, "it is received again");
    exchange(&mut b, &mut a);
    a.receive_data(alloc::vec![Chunk::Data(early)]);
    assert_eq!(a.texts(), ["a", "early"]);
}

//= rfc6525 §5.2.6
//# outgoing streams are requested; denied only beyond 65,535
#[test]
fn streams_are_added_in_both_directions() {
    let (mut a, mut b) = Side::pair();
    a.submit(ReconfigurationRequest::AddStreams { outbound: 5, inbound: 3 }).expect("nothing else");
    exchange(&mut a, &mut b);
    assert_eq!((a.sender.terms().outbound, a.receiver.inbound_streams()), (15, 13));
    assert_eq!((b.sender.terms().outbound, b.receiver.inbound_streams()), (13, 15));
    let added = |event: &Event| matches!(event, Event::StreamsAdded { outcome: PERFORMED, .. });
    assert!(a.events().iter().all(added) && b.events().iter().all(added));
    send_message(&mut a, &mut b, 14, "x");
    send_message(&mut b, &mut a, 12, "y");
}

//= rfc6525 §5.2.5
//# streams are added, up to `max_inbound_streams`
#[test]
fn more_streams_than_allowed_are_denied() {
    let (mut a, mut b) = Side::pair();
    a.submit(ReconfigurationRequest::AddStreams { outbound: 11, inbound: 0 })
        .expect("the peer decides");
    exchange(&mut a, &mut b);
    let denied =
        Event::StreamsAdded { outbound: 10, inbound: 10, outcome: ReconfigurationOutcome::Denied };
    assert_eq!(a.events(), [denied]);
    let too_many = ReconfigurationRequest::AddStreams { outbound: 0, inbound: 11 };
    assert_eq!(a.submit(too_many), Err(Error::NoSuchStream));
    assert_eq!(
        a.submit(ReconfigurationRequest::AddStreams { outbound: 65_530, inbound: 0 }),
        Err(Error::NoSuchStream)
    );
}

//= rfc6525 §5.1.1
//# one request in flight; a second one is refused as busy
#[test]
fn invalid_requests_are_refused_at_once() {
    let (mut a, _) = Side::pair();
    let beyond = alloc::vec![StreamId(10)];
    assert_eq!(
        a.submit(ReconfigurationRequest::ResetOutgoing(beyond.clone())),
        Err(Error::NoSuchStream)
    );
    assert_eq!(a.submit(ReconfigurationRequest::ResetIncoming(beyond)), Err(Error::NoSuchStream));
    a.sender.set_outbound_streams(1000);
    let many = (0..501).map(StreamId).collect();
    assert_eq!(
        a.submit(ReconfigurationRequest::ResetOutgoing(many)),
        Err(Error::TooManyStreams { limit: 500 })
    );
    assert!(!a.reconfiguration.is_busy());
}

//= rfc6525 §5.2.1
//# a request that is not performed MUST be answered
#[test]
fn requests_for_missing_streams_are_refused() {
    let (_, mut b) = Side::pair();
    let streams = StreamList::new(&[StreamId(10)]);
    b.receive_parameter(Parameter::OutgoingSsnReset(OutgoingSsnReset {
        request: ReconfigurationNumber(100),
        response: ReconfigurationNumber(0),
        last_assigned_tsn: Tsn(99),
        streams: streams.clone(),
    }));
    assert_eq!(b.response_result(), ReconfigurationResult::WrongSsn);
    let request = ReconfigurationNumber(101);
    b.receive_parameter(Parameter::IncomingSsnReset(IncomingSsnReset { request, streams }));
    assert_eq!(b.response_result(), ReconfigurationResult::WrongSsn);
}

//= rfc6525 §5.2.1
//# numbers out of order: "bad sequence number"
#[test]
fn numbers_out_of_order_are_rejected() {
    let (_, mut b) = Side::pair();
    for number in [99, 101, 5000] {
        let request = ReconfigurationNumber(number);
        b.receive_parameter(Parameter::AddOutgoingStreams(AddStreams { request, count: 1 }));
        assert_eq!(b.response_result(), ReconfigurationResult::BadSequenceNumber);
    }
    assert_eq!((b.receiver.inbound_streams(), b.counters.unexpected_chunks), (10, 3));
}

//= rfc6525 §5.2.7 H3
//# after a refusal queued data continues with the old numbers
#[test]
fn a_denied_reset_changes_nothing() {
    for result in [ReconfigurationResult::Denied, ReconfigurationResult::BadSequenceNumber] {
        let (mut a, mut b) = Side::pair();
        send_message(&mut a, &mut b, 1, "a");
        a.submit(ReconfigurationRequest::ResetOutgoing(alloc::vec![StreamId(1)]))
            .expect("nothing else");
        a.poll().expect("the request");
        a.receive_parameter(Parameter::ReconfigurationResponse(ReconfigurationResponse {
            response: ReconfigurationNumber(100),
            result,
            next_tsns: None,
        }));
        assert_eq!(a.events(), [reset_event(true, &[1], outcome_of(result))]);
        send_message(&mut a, &mut b, 1, "b");
        assert_eq!(b.texts(), ["a", "b"]);
    }
}

//= rfc6525 §5.1.1
//# the peer's requests cross ours
#[test]
fn crossing_requests_are_both_fulfilled() {
    let (mut a, mut b) = Side::pair();
    send_message(&mut a, &mut b, 1, "a");
    send_message(&mut b, &mut a, 1, "a");
    let streams = || alloc::vec![StreamId(1)];
    a.submit(ReconfigurationRequest::ResetIncoming(streams())).expect("nothing else");
    b.submit(ReconfigurationRequest::ResetIncoming(streams())).expect("nothing else");
    exchange(&mut a, &mut b);
    assert!(!a.reconfiguration.is_busy() && !b.reconfiguration.is_busy());
    for side in [&mut a, &mut b] {
        let events = side.events();
        assert!(events.contains(&reset_event(false, &[1], PERFORMED)), "{events:?}");
        assert!(events.contains(&reset_event(true, &[1], PERFORMED)), "{events:?}");
    }
    send_message(&mut a, &mut b, 1, "b");
    send_message(&mut b, &mut a, 1, "b");
    assert_eq!((b.texts().len(), a.texts().len()), (2, 2));
}

//= rfc6525 §5.2.7 H2
//# "request already in progress": a new number, a bounded number of times
#[test]
fn a_request_is_repeated_a_limited_number_of_times_if_the_peer_is_busy() {
    let (mut a, _) = Side::pair();
    a.submit(ReconfigurationRequest::ResetAssociation).expect("nothing else");
    let mut numbers = Vec::new();
    while let Some(chunk) = a.poll() {
        let Some(Parameter::SsnTsnReset { request }) = chunk.parameters.iter().next() else {
            panic!("{chunk:?}");
        };
        numbers.push(request.0);
        a.receive_parameter(Parameter::ReconfigurationResponse(ReconfigurationResponse {
            response: request,
            result: ReconfigurationResult::RequestInProgress,
            next_tsns: None,
        }));
        a.now += RTO;
        a.reconfiguration.handle_timeout(a.now);
    }
    assert_eq!(numbers, [100, 101, 102, 103, 104, 105]);
    let events = a.events();
    let [Event::AssociationReset { outcome: ReconfigurationOutcome::Failed, .. }] = events[..]
    else {
        panic!("{events:?}");
    };
    a.send(1, "goes on");
    assert_eq!(a.data().len(), 1);
}

//= rfc6525 §5.2.7 H2
//# "in progress" restarts the timer and is no error
/// RFC 6525 §5.2.7, H2.
#[test]
fn in_progress_answers_do_not_count_as_errors() {
    let (mut a, mut b) = Side::pair();
    a.submit(ReconfigurationRequest::AddStreams { outbound: 1, inbound: 0 }).expect("nothing else");
    let chunk = a.poll().expect("the request");
    let Some(Parameter::AddOutgoingStreams(add)) = chunk.parameters.iter().next() else {
        panic!("{chunk:?}");
    };
    let in_progress = ReconfigurationResult::InProgress;
    let in_progress =
        ReconfigurationResponse { response: add.request, result: in_progress, next_tsns: None };
    a.receive_parameter(Parameter::ReconfigurationResponse(in_progress));
    a.now += RTO;
    assert_eq!(a.reconfiguration.handle_timeout(a.now), Some(ResendReason::InProgress));
    assert_eq!(a.poll(), Some(chunk.clone()), "retransmitted all the same");
    a.now += RTO;
    assert_eq!(a.reconfiguration.handle_timeout(a.now), Some(ResendReason::TimedOut));
    b.receive(&chunk);
    assert_eq!(b.response_result(), ReconfigurationResult::Performed);
}

//= rfc6525 §5.2.3
//# streams that are being reset: "nothing to do"
/// RFC 6525 §5.2.3.
#[test]
fn a_stream_being_reset_is_not_reset_twice() {
    let streams = |numbers: &[u16]| numbers.iter().map(|one| StreamId(*one)).collect::<Vec<_>>();
    for (ours, theirs, result) in [
        (&[1, 3][..], &[3][..], ReconfigurationResult::NothingToDo),
        (&[], &[3], ReconfigurationResult::NothingToDo),
        (&[1, 3], &[3, 4], ReconfigurationResult::Performed),
        (&[1, 3], &[], ReconfigurationResult::Performed),
    ] {
        let (_, mut b) = Side::pair();
        b.submit(ReconfigurationRequest::ResetOutgoing(streams(ours))).expect("nothing else");
        b.poll().expect("the request");
        let request = ReconfigurationNumber(100);
        let streams = StreamList::new(&streams(theirs));
        b.receive_parameter(Parameter::IncomingSsnReset(IncomingSsnReset { request, streams }));
        assert_eq!(b.response_result(), result, "{ours:?} {theirs:?}");
    }
}

//= rfc6525 §7
//# answers to a flood of requests are bounded
#[test]
fn responses_to_a_flood_of_requests_are_bounded() {
    let (_, mut b) = Side::pair();
    for _ in 0..1000 {
        let request = ReconfigurationNumber(7);
        b.receive_parameter(Parameter::SsnTsnReset { request });
    }
    let mut answers = 0;
    while let Some(chunk) = b.poll() {
        answers += chunk.parameters.iter().count();
    }
    assert_eq!(answers, MAX_ANSWERS);
}

//= rfc6525 §3.1
//# RE-CONFIG has at most two parameters; others are counted
#[test]
fn unexpected_parameters_are_counted() {
    let (_, mut b) = Side::pair();
    let request = ReconfigurationNumber(100);
    let add = |count| Parameter::AddOutgoingStreams(AddStreams { request, count });
    let malformed = Parameter::Malformed { parameter_type: crate::wire::ParameterType(13) };
    b.receive(&ReconfigChunk { parameters: [malformed, add(1), add(2)].into_iter().collect() });
    assert_eq!(b.receiver.inbound_streams(), 11);
    assert_eq!(b.counters.malformed_chunks, 2);
}
