//! Both sides of ASCONF, without an association around them.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use super::*;
use crate::config::AssociationConfig;
use crate::error::Error;
use crate::identifier::PathId;
use crate::wire::parameter::{AddressRequest, UnknownParameter};
use crate::wire::{
    AsconfAckChunk, AsconfChunk, CauseCode, ErrorCause, Parameter, ParameterType, Parameters,
};

const PATH: PathId = PathId(0);
const RTO: Duration = Duration::from_secs(1);

fn ip(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

fn state() -> DynamicAddress {
    DynamicAddress::new(Tsn(u32::MAX), Tsn(u32::MAX), &[ip(1)])
}

fn ask(state: &mut DynamicAddress, requests: &[AsconfRequest]) -> AsconfChunk {
    for request in requests {
        state.outgoing.request(*request).expect("there is room");
    }
    poll(state).expect("a value is requested")
}

fn poll(state: &mut DynamicAddress) -> Option<AsconfChunk> {
    let polled = state.outgoing.poll_chunk(Duration::ZERO, PATH, RTO, Some(ip(1)));
    polled.map(|(path, chunk)| {
        assert_eq!(path, PATH);
        chunk
    })
}

/// The reply of a peer that has these addresses to a request from the first of them.
fn answer(state: &mut DynamicAddress, asconf: &AsconfChunk, known: &[u8]) -> AsconfAnswer {
    let known: Vec<IpAddr> = known.iter().map(|last| ip(*last)).collect();
    let source = known[0];
    state.incoming.handle_asconf(asconf, source, PeerAddresses { known, limit: 3 })
}

fn request(serial: u32, parameters: impl IntoIterator<Item = Parameter>) -> AsconfChunk {
    AsconfChunk {
        serial: AsconfNumber(serial),
        address: ip(1),
        parameters: parameters.into_iter().collect(),
    }
}

fn about(last: u8) -> AddressRequest {
    AddressRequest { correlation: u32::from(last), address: ip(last) }
}

/// The changes and, for each response, its correlation and the code of its cause.
fn outcome(
    parameters: impl IntoIterator<Item = Parameter>,
    known: &[u8],
) -> (Vec<PeerChange>, Vec<(u32, Option<CauseCode>)>) {
    let AsconfAnswer::New(ack, changes) =
        answer(&mut state(), &request(u32::MAX, parameters), known)
    else {
        panic!("the number is the one that is due")
    };
    let responses = ack.parameters.iter().map(|response| match response {
        Parameter::SuccessIndication { correlation } => (correlation, None),
        Parameter::ErrorCauseIndication { correlation, causes } => {
            (correlation, causes.iter().next().map(|cause| cause.code()))
        }
        other => panic!("no response: {other:?}"),
    });
    (changes, responses.collect())
}

//= rfc5061 §4.1.1
//# the address parameter of ASCONF MUST name an address of the association
#[test]
fn a_request_is_sent_and_answered() {
    let (mut here, mut there) = (state(), state());
    let asconf = ask(&mut here, &[AsconfRequest::Add(ip(2))]);
    assert_eq!((asconf.serial, asconf.address), (AsconfNumber(u32::MAX), ip(1)));
    assert_eq!(poll(&mut here), None, "only once");
    let AsconfAnswer::New(ack, changes) = answer(&mut there, &asconf, &[1]) else {
        panic!("it is new")
    };
    assert_eq!(changes, [PeerChange::Added(ip(2))]);
    assert!(ack.parameters.is_empty(), "success is not reported");
    let results = alloc::vec![(AsconfRequest::Add(ip(2)), None)];
    assert_eq!(here.outgoing.handle_ack(&ack), AckOutcome::Answered { path: PATH, results });
    assert_eq!(here.outgoing.next_timeout(), None);
    let next = ask(&mut here, &[AsconfRequest::Delete(ip(1))]);
    assert_eq!(next.serial, AsconfNumber(0), "numbers wrap");
}

//= rfc5061 §5.1 A3, §5.1.1 C1
//# one ASCONF in flight
#[test]
fn one_request_is_outstanding_and_the_others_are_sent_together() {
    let mut here = state();
    let first = ask(&mut here, &[AsconfRequest::Add(ip(2))]);
    here.outgoing.request(AsconfRequest::Delete(ip(1))).unwrap();
    here.outgoing.request(AsconfRequest::SetPrimary(ip(2))).unwrap();
    assert_eq!(poll(&mut here), None);
    here.outgoing
        .handle_ack(&AsconfAckChunk { serial: first.serial, parameters: Parameters::default() });
    assert_eq!(poll(&mut here).expect("two requests wait").parameters.iter().count(), 2);
}

//= rfc5061 §5.3 F5
//# MUST NOT request the deletion of the last address
//= not-met: a user's request is sent, and refused by the peer
#[test]
fn address_changes_are_requested() {
    let mut here = state();
    assert!(!here.outgoing.request_addresses(&[ip(1)]), "already acknowledged");
    assert!(!here.outgoing.request_addresses(&[]), "the last chunk is not reneged");
    assert!(here.outgoing.request_addresses(&[ip(2), ip(3)]));
    assert!(!here.outgoing.request_addresses(&[ip(2), ip(3)]), "only once");
    let asconf = poll(&mut here).expect("it is requested");
    let about = |last| about(last).address;
    let requested: Vec<_> = asconf
        .parameters
        .iter()
        .map(|parameter| match parameter {
            Parameter::AddAddress(request) => (true, request.address),
            Parameter::DeleteAddress(request) => (false, request.address),
            other => panic!("not wished: {other:?}"),
        })
        .collect();
    assert_eq!(requested, [(true, about(2)), (true, about(3)), (false, about(1))]);
}

//= rfc5061 §5.1 A1, C5
//# all requests go into one ASCONF, at most eight; the others wait
#[test]
fn pending_requests_are_bounded() {
    let mut here = state();
    let taken = (0..1000).take_while(|_| here.outgoing.request(AsconfRequest::Add(ip(2))).is_ok());
    assert!(taken.count() < 100);
    assert_eq!(here.outgoing.request(AsconfRequest::Add(ip(2))), Err(Error::Busy));
    assert!(poll(&mut here).expect("some").parameters.iter().count() <= 8);
}

//= rfc5061 §5.1 A4, A5, B1 to B5
//# T4 is the RTO, doubled each time; the same ASCONF is sent again, if possible to another address
#[test]
fn a_request_is_retransmitted_until_it_is_answered() {
    let mut here = state();
    let first = ask(&mut here, &[AsconfRequest::Add(ip(2))]);
    assert_eq!(here.outgoing.next_timeout(), Some(RTO));
    assert_eq!(here.outgoing.expired(RTO / 2), None);
    assert_eq!(here.outgoing.expired(RTO), Some(PATH));
    here.outgoing.request(AsconfRequest::Add(ip(3))).unwrap();
    here.outgoing.retransmit(RTO, PathId(4), AssociationConfig::default().rto_max);
    let polled = here.outgoing.poll_chunk(RTO, PATH, RTO, None);
    assert_eq!(polled, Some((PathId(4), first)), "nothing is added to it");
    assert_eq!(here.outgoing.next_timeout(), Some(RTO * 3));
}

//= rfc5061 §5.2 E2
//# an ASCONF with an earlier number is answered from memory; the last answer is kept
#[test]
fn a_repeated_request_is_answered_but_not_executed_again() {
    let mut there = state();
    let asconf = request(u32::MAX, [Parameter::DeleteAddress(about(2))]);
    let AsconfAnswer::New(ack, _) = answer(&mut there, &asconf, &[1, 2]) else {
        panic!("it is new")
    };
    assert_eq!(answer(&mut there, &asconf, &[1]), AsconfAnswer::Repeat(ack));
    for serial in [1, 2, u32::MAX - 1, u32::MAX / 2] {
        assert_eq!(answer(&mut there, &request(serial, []), &[1]), AsconfAnswer::Discard);
    }
    assert!(matches!(answer(&mut there, &request(0, []), &[1]), AsconfAnswer::New(..)));
}

//= rfc5061 §5.2 E5
//# ASCONFs with other numbers than the next and the last are discarded
#[test]
fn before_the_first_request_there_is_no_answer_to_repeat() {
    assert_eq!(answer(&mut state(), &request(u32::MAX - 1, []), &[1]), AsconfAnswer::Discard);
}

//= rfc5061 §5.3 F9, F10
//# beyond `max_peer_addresses`: Resource Shortage
#[test]
fn a_refusal_is_reported_with_its_cause() {
    let loopback = AddressRequest { correlation: 9, address: [127, 0, 0, 1].into() };
    let cases: [(Parameter, &[u8], CauseCode); 6] = [
        (Parameter::DeleteAddress(about(1)), &[1], CauseCode::DELETE_LAST_ADDRESS),
        (Parameter::DeleteAddress(about(1)), &[1, 2], CauseCode::DELETE_SOURCE_ADDRESS),
        (Parameter::DeleteAddress(about(7)), &[1, 2], CauseCode::UNRESOLVABLE_ADDRESS),
        (Parameter::SetPrimaryAddress(about(7)), &[1, 2], CauseCode::UNRESOLVABLE_ADDRESS),
        (Parameter::AddAddress(about(4)), &[1, 2, 3], CauseCode::RESOURCE_SHORTAGE),
        (Parameter::AddAddress(loopback), &[1], CauseCode::UNRESOLVABLE_ADDRESS),
    ];
    for (parameter, known, code) in cases {
        let (changes, responses) = outcome([parameter], known);
        assert_eq!(changes, []);
        assert_eq!(responses.iter().map(|(_, code)| *code).collect::<Vec<_>>(), [Some(code)]);
    }
}

#[test]
fn adding_an_existing_address_is_not_an_error() {
    assert_eq!(outcome([Parameter::AddAddress(about(2))], &[1, 2]), (Vec::new(), Vec::new()));
}

//= rfc5061 §5.2 V1
//# requests are processed in order
#[test]
fn later_requests_see_what_earlier_ones_did() {
    let (changes, responses) = outcome(
        [
            Parameter::AddAddress(about(2)),
            Parameter::SetPrimaryAddress(about(2)),
            Parameter::DeleteAddress(about(3)),
            Parameter::DeleteAddress(about(2)),
        ],
        &[1, 3],
    );
    let expected = [
        PeerChange::Added(ip(2)),
        PeerChange::MadePrimary(ip(2)),
        PeerChange::Deleted(ip(3)),
        PeerChange::Deleted(ip(2)),
    ];
    assert_eq!((&changes[..], responses), (&expected[..], Vec::new()));
}

//= rfc5061 §4.2.1, §4.2.2, §4.2.4
//# the unspecified address stands for the source
#[test]
fn an_unspecified_address_stands_for_the_source_of_the_packet() {
    let any = AddressRequest { correlation: 1, address: [0, 0, 0, 0].into() };
    let (changes, _) = outcome([Parameter::DeleteAddress(any)], &[1, 2, 3]);
    assert_eq!(changes, [PeerChange::Deleted(ip(2)), PeerChange::Deleted(ip(3))]);
    let (changes, _) = outcome([Parameter::SetPrimaryAddress(any)], &[1, 2]);
    assert_eq!(changes, [PeerChange::MadePrimary(ip(1))]);
    let from_new = request(u32::MAX, [Parameter::AddAddress(any), Parameter::DeleteAddress(any)]);
    let peer = PeerAddresses { known: alloc::vec![ip(1)], limit: 3 };
    let AsconfAnswer::New(_, changes) = state().incoming.handle_asconf(&from_new, ip(5), peer)
    else {
        panic!("it is new")
    };
    assert_eq!(changes, [PeerChange::Added(ip(5)), PeerChange::Deleted(ip(1))]);
}

//= rfc5061 §4.2.1 to §4.2.4, §5.2 V3
//# correlation ids are copied
#[test]
fn partial_success_is_reported_per_request() {
    let (_, responses) =
        outcome([Parameter::AddAddress(about(2)), Parameter::DeleteAddress(about(7))], &[1]);
    assert_eq!(responses, [(2, None), (7, Some(CauseCode::UNRESOLVABLE_ADDRESS))]);
}

//= rfc5061 §5.3 F11
//# after a failed request the others in the chunk fail
/// RFC 5061 §5.3, F11: a peer that changes its address keeps the old one if there is no room for
/// the new one.
#[test]
fn after_an_address_over_the_limit_none_is_removed() {
    let requested = [
        Parameter::AddAddress(about(4)),
        Parameter::DeleteAddress(about(2)),
        Parameter::SetPrimaryAddress(about(3)),
    ];
    let (changes, responses) = outcome(requested, &[1, 2, 3]);
    assert_eq!(changes, [PeerChange::MadePrimary(ip(3))]);
    let refused = Some(CauseCode::RESOURCE_SHORTAGE);
    assert_eq!(responses, [(4, refused), (2, refused), (3, None)]);
}

//= rfc5061 §5.3 F3a, F3b
//# what the peer does not understand is not repeated
/// RFC 5061 §5.3, F3a and F3b.
#[test]
fn requests_unknown_to_the_peer_are_not_repeated() {
    let mut here = state();
    let requests = [AsconfRequest::SetPrimary(ip(1)), AsconfRequest::Add(ip(2))];
    let asconf = ask(&mut here, &requests);
    here.outgoing.request(AsconfRequest::SetPrimary(ip(3))).unwrap();
    here.outgoing.request(AsconfRequest::Add(ip(3))).unwrap();
    let causes = ErrorCause::UnrecognizedParameters(Parameters::default()).into();
    let unknown = Parameter::ErrorCauseIndication { correlation: 1, causes };
    let parameters = [unknown].into_iter().collect();
    let ack = AsconfAckChunk { serial: asconf.serial, parameters };
    let AckOutcome::Answered { results, .. } = here.outgoing.handle_ack(&ack) else {
        panic!("the request was outstanding")
    };
    let code = Some(CauseCode::UNRECOGNIZED_PARAMETERS);
    let unsupported = AsconfRequest::SetPrimary(ip(3));
    assert_eq!(results, [(requests[0], code), (requests[1], code), (unsupported, code)]);
    assert_eq!(here.outgoing.request(unsupported), Err(Error::NotSupported));
    let next = poll(&mut here).expect("the other kind of request waits");
    assert_eq!(next.parameters.iter().count(), 1);
}

//= rfc5061 §5.2 V2
//# unknown requests by the bits of their type
#[test]
fn unknown_requests_follow_the_bits_of_their_type() {
    let unknown = |number| {
        let value = bytes::Bytes::from_static(&[0, 0, 0, 5]);
        Parameter::Unknown(UnknownParameter { parameter_type: ParameterType(number), value })
    };
    let after = |number| outcome([unknown(number), Parameter::AddAddress(about(2))], &[1]);
    let reported = (5, Some(CauseCode::UNRECOGNIZED_PARAMETERS));
    assert_eq!(after(0x3000), (Vec::new(), Vec::new()));
    assert_eq!(after(0x7000), (Vec::new(), alloc::vec![reported]));
    assert_eq!(after(0xb000).0, [PeerChange::Added(ip(2))]);
    assert_eq!(after(0xf000).1, [reported, (2, None)]);
}

#[test]
fn answers_are_bounded() {
    let many = (0..200).map(|_| Parameter::DeleteAddress(about(9)));
    let AsconfAnswer::New(ack, _) = answer(&mut state(), &request(u32::MAX, many), &[1, 2]) else {
        panic!("it is new")
    };
    assert!(ack.parameters.as_bytes().len() < 1000);
}

#[test]
fn malformed_requests_change_nothing() {
    let mut there = state();
    let mut bytes = Parameter::AddAddress(about(2)).to_bytes().to_vec();
    bytes.extend([0xc0, 1, 0, 200]);
    let asconf = AsconfChunk {
        serial: AsconfNumber(u32::MAX),
        address: ip(1),
        parameters: Parameters::from_bytes(bytes.into()),
    };
    assert_eq!(answer(&mut there, &asconf, &[1]), AsconfAnswer::Malformed);
}

//= rfc5061 §5.1 A6 to A8
//# requests before an error succeeded, those after it only if it says so
#[test]
fn after_a_refusal_only_confirmed_requests_were_executed() {
    let mut here = state();
    let requests = [
        AsconfRequest::Add(ip(2)),
        AsconfRequest::Add(ip(3)),
        AsconfRequest::Add(ip(4)),
        AsconfRequest::Add(ip(5)),
    ];
    let asconf = ask(&mut here, &requests);
    let ack = AsconfAckChunk {
        serial: asconf.serial,
        parameters: [
            Parameter::ErrorCauseIndication {
                correlation: 2,
                causes: ErrorCause::OutOfResource.into(),
            },
            Parameter::SuccessIndication { correlation: 4 },
        ]
        .into_iter()
        .collect(),
    };
    let AckOutcome::Answered { results, .. } = here.outgoing.handle_ack(&ack) else {
        panic!("the request was outstanding")
    };
    let refused = Some(CauseCode::OUT_OF_RESOURCE);
    let expected = [None, refused, refused, None];
    assert_eq!(results.iter().map(|(_, code)| *code).collect::<Vec<_>>(), expected);
}

//= rfc5061 §5.3 F0
//# an ASCONF-ACK with a future number: ABORT
#[test]
fn an_unexpected_answer_is_illegal_only_with_a_future_number() {
    let ack =
        |serial| AsconfAckChunk { serial: AsconfNumber(serial), parameters: Parameters::default() };
    let mut here = state();
    assert_eq!(here.outgoing.handle_ack(&ack(u32::MAX)), AckOutcome::Illegal);
    assert_eq!(here.outgoing.handle_ack(&ack(3)), AckOutcome::Illegal);
    assert_eq!(here.outgoing.handle_ack(&ack(u32::MAX - 1)), AckOutcome::Unrelated);
    ask(&mut here, &[AsconfRequest::Add(ip(2))]);
    assert_eq!(here.outgoing.handle_ack(&ack(3)), AckOutcome::Unrelated);
}

//= rfc5061 §5.1 A9, §5.1.1
//# nothing more to a peer that does not know ASCONF
#[test]
fn a_peer_without_asconf_gets_no_further_requests() {
    let mut here = state();
    ask(&mut here, &[AsconfRequest::Add(ip(2))]);
    here.outgoing.request(AsconfRequest::Delete(ip(1))).unwrap();
    assert!(here.outgoing.deletes(ip(1)) && !here.outgoing.deletes(ip(2)));
    let given_up = [AsconfRequest::Add(ip(2)), AsconfRequest::Delete(ip(1))];
    assert_eq!(here.outgoing.cancel_all(), given_up);
    assert_eq!((poll(&mut here), here.outgoing.next_timeout()), (None, None));
}
