//! Strategies for chunks of all kinds.

use bytes::Bytes;
use core::net::IpAddr;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::identifier::{Ppid, StreamId, VerificationTag};
use crate::serial::{AsconfNumber, Mid, ReconfigurationNumber, Ssn, Tsn};
use crate::wire::parameter::{
    AddStreams, AddressRequest, IncomingSsnReset, OutgoingSsnReset, ReconfigurationResponse,
    ReconfigurationResult, StreamList, SupportedAddressTypes, UnknownParameter,
};
use crate::wire::{
    AbortChunk, AsconfAckChunk, AsconfChunk, AuthChunk, CauseCode, Causes, Chunk, ChunkType,
    DataChunk, DataFlags, DataOrder, ErrorCause, ErrorChunk, ForwardTsnChunk, GapBlock,
    HeartbeatChunk, IForwardTsnChunk, InitChunk, Parameter, ParameterType, Parameters,
    ReconfigChunk, SackBuilder, SkippedMid, SkippedSsn, UnknownChunk,
};

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn tsn() -> impl Strategy<Value = Tsn> {
    any::<u32>().prop_map(Tsn)
}

fn stream() -> impl Strategy<Value = StreamId> {
    any::<u16>().prop_map(StreamId)
}

fn request() -> impl Strategy<Value = ReconfigurationNumber> {
    any::<u32>().prop_map(ReconfigurationNumber)
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)]
}

fn address_request() -> impl Strategy<Value = AddressRequest> {
    (any::<u32>(), address())
        .prop_map(|(correlation, address)| AddressRequest { correlation, address })
}

fn streams() -> impl Strategy<Value = StreamList> {
    vec(stream(), 0..9).prop_map(|streams| StreamList::new(&streams))
}

fn opaque_parameter() -> impl Strategy<Value = Parameter> {
    prop_oneof![
        bytes().prop_map(Parameter::HeartbeatInfo),
        bytes().prop_map(Parameter::StateCookie),
        bytes().prop_map(Parameter::Unrecognized),
        bytes().prop_map(Parameter::HostNameAddress),
        bytes().prop_map(Parameter::Random),
        bytes().prop_map(Parameter::ChunkList),
        bytes().prop_map(Parameter::RequestedHmacs),
        bytes().prop_map(Parameter::SupportedExtensions),
        (0_u16..99).prop_map(|length| Parameter::Padding { length }),
        bytes().prop_map(|value| {
            let parameter_type = ParameterType(0xabcd);
            Parameter::Unknown(UnknownParameter { parameter_type, value })
        }),
        Just(Parameter::EcnCapable),
        Just(Parameter::ForwardTsnSupported),
    ]
}

fn structured_parameter() -> impl Strategy<Value = Parameter> {
    let types = any::<(bool, bool)>().prop_map(|(ipv4, ipv6)| {
        Parameter::SupportedAddressTypes(SupportedAddressTypes { ipv4, ipv6 })
    });
    let response = (request(), any::<u32>(), proptest::option::of((tsn(), tsn()))).prop_map(
        |(response, result, next_tsns)| {
            let result = ReconfigurationResult::from_number(result);
            let response = ReconfigurationResponse { response, result, next_tsns };
            Parameter::ReconfigurationResponse(response)
        },
    );
    let outgoing = (request(), request(), tsn(), streams()).prop_map(
        |(request, response, last_assigned_tsn, streams)| {
            let reset = OutgoingSsnReset { request, response, last_assigned_tsn, streams };
            Parameter::OutgoingSsnReset(reset)
        },
    );
    let add =
        || (request(), any::<u16>()).prop_map(|(request, count)| AddStreams { request, count });
    prop_oneof![
        types,
        response,
        outgoing,
        address().prop_map(Parameter::Address),
        (request(), streams()).prop_map(|(request, streams)| {
            Parameter::IncomingSsnReset(IncomingSsnReset { request, streams })
        }),
        request().prop_map(|request| Parameter::SsnTsnReset { request }),
        add().prop_map(Parameter::AddOutgoingStreams),
        add().prop_map(Parameter::AddIncomingStreams),
        address_request().prop_map(Parameter::AddAddress),
        address_request().prop_map(Parameter::DeleteAddress),
        address_request().prop_map(Parameter::SetPrimaryAddress),
        any::<u32>().prop_map(|increment| Parameter::CookiePreservative { increment }),
        any::<u32>().prop_map(|code| Parameter::AdaptationLayerIndication { code }),
        any::<u32>().prop_map(|error_detection_method| {
            Parameter::ZeroChecksumAcceptable { error_detection_method }
        }),
        any::<u32>().prop_map(|correlation| Parameter::SuccessIndication { correlation }),
        (any::<u32>(), causes()).prop_map(|(correlation, causes)| {
            Parameter::ErrorCauseIndication { correlation, causes }
        }),
    ]
}

/// A parameter of any kind that can be sent.
pub(super) fn parameter() -> impl Strategy<Value = Parameter> {
    prop_oneof![opaque_parameter(), structured_parameter()]
}

fn parameters() -> impl Strategy<Value = Parameters> {
    vec(parameter(), 0..6).prop_map(|list| list.into_iter().collect())
}

/// A cause of any kind that can be sent.
pub(super) fn cause() -> impl Strategy<Value = ErrorCause> {
    let capable = || Parameters::from_iter([Parameter::EcnCapable]);
    prop_oneof![
        stream().prop_map(|stream| ErrorCause::InvalidStream { stream }),
        vec(any::<[u8; 2]>(), 0..5).prop_map(|types| ErrorCause::MissingMandatoryParameter {
            types: types.concat().into()
        }),
        any::<u32>().prop_map(|staleness| ErrorCause::StaleCookie { staleness }),
        Just(ErrorCause::OutOfResource),
        bytes().prop_map(|parameter| ErrorCause::UnresolvableAddress { parameter }),
        bytes().prop_map(|chunk| ErrorCause::UnrecognizedChunkType { chunk }),
        Just(ErrorCause::InvalidMandatoryParameter),
        Just(ErrorCause::UnrecognizedParameters(capable())),
        tsn().prop_map(|tsn| ErrorCause::NoUserData { tsn }),
        Just(ErrorCause::CookieWhileShuttingDown),
        Just(ErrorCause::RestartWithNewAddresses(capable())),
        bytes().prop_map(|reason| ErrorCause::UserInitiatedAbort { reason }),
        bytes().prop_map(|information| ErrorCause::ProtocolViolation { information }),
        bytes().prop_map(|request| ErrorCause::DeleteLastAddress { request }),
        bytes().prop_map(|request| ErrorCause::ResourceShortage { request }),
        bytes().prop_map(|request| ErrorCause::DeleteSourceAddress { request }),
        Just(ErrorCause::IllegalAsconfAck),
        bytes().prop_map(|request| ErrorCause::NoAuthorization { request }),
        any::<u16>().prop_map(|hmac_id| ErrorCause::UnsupportedHmac { hmac_id }),
        bytes().prop_map(|information| ErrorCause::Unknown { code: CauseCode(999), information }),
    ]
}

fn causes() -> impl Strategy<Value = Causes> {
    vec(cause(), 0..4).prop_map(|list| list.into_iter().collect())
}

/// A DATA or I-DATA chunk.
pub(super) fn data() -> impl Strategy<Value = DataChunk> {
    let order = prop_oneof![
        any::<u16>().prop_map(|ssn| DataOrder::Ssn(Ssn(ssn))),
        any::<(u32, u32)>().prop_map(|(mid, fsn)| DataOrder::Mid { mid: Mid(mid), fsn }),
    ];
    (tsn(), stream(), 0_u8..16, order, any::<u32>(), bytes()).prop_map(
        |(tsn, stream, bits, order, ppid, payload)| {
            let flags = DataFlags::from_bits(bits);
            // The first fragment carries no FSN, the others no PPID.
            let (order, ppid) = match order {
                DataOrder::Mid { mid, .. } if flags.begin => (DataOrder::Mid { mid, fsn: 0 }, ppid),
                DataOrder::Mid { .. } => (order, 0),
                DataOrder::Ssn(_) => (order, ppid),
            };
            DataChunk { tsn, stream, flags, order, ppid: Ppid(ppid), payload }
        },
    )
}

fn sack() -> impl Strategy<Value = Chunk> {
    let blocks = || vec(any::<(u16, u16)>().prop_map(|(start, end)| GapBlock { start, end }), 0..5);
    (tsn(), any::<u32>(), blocks(), blocks(), vec(tsn(), 0..4), 0_u8..4, any::<bool>()).prop_map(
        |(cumulative_tsn, a_rwnd, gaps, nr_gaps, duplicates, dac_count, is_nr)| {
            let sack = SackBuilder {
                cumulative_tsn,
                a_rwnd,
                gap_blocks: &gaps,
                nr_gap_blocks: &nr_gaps,
                duplicates: &duplicates,
                dac_count,
                is_nr,
            };
            Chunk::Sack(sack.build())
        },
    )
}

fn init() -> impl Strategy<Value = InitChunk> {
    (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), tsn(), parameters()).prop_map(
        |(tag, a_rwnd, outbound_streams, inbound_streams, initial_tsn, parameters)| InitChunk {
            initiate_tag: VerificationTag(tag),
            a_rwnd,
            outbound_streams,
            inbound_streams,
            initial_tsn,
            parameters,
        },
    )
}

fn forward_tsn() -> impl Strategy<Value = Chunk> {
    let ssns = vec((stream(), any::<u16>()), 0..5).prop_map(|list| {
        let skipped = list.into_iter().map(|(stream, ssn)| SkippedSsn { stream, ssn: Ssn(ssn) });
        skipped.collect::<alloc::vec::Vec<_>>()
    });
    let mids = vec((stream(), any::<bool>(), any::<u32>()), 0..5).prop_map(|list| {
        let skipped = list.into_iter().map(|(stream, unordered, mid)| SkippedMid {
            stream,
            unordered,
            mid: Mid(mid),
        });
        skipped.collect::<alloc::vec::Vec<_>>()
    });
    prop_oneof![
        (tsn(), ssns)
            .prop_map(|(tsn, skipped)| { Chunk::ForwardTsn(ForwardTsnChunk::new(tsn, &skipped)) }),
        (tsn(), mids).prop_map(|(tsn, skipped)| {
            Chunk::IForwardTsn(IForwardTsnChunk::new(tsn, &skipped))
        }),
    ]
}

fn control() -> impl Strategy<Value = Chunk> {
    let heartbeat = || bytes().prop_map(|info| HeartbeatChunk { info });
    let asconf =
        (any::<u32>(), address(), parameters()).prop_map(|(serial, address, parameters)| {
            Chunk::Asconf(AsconfChunk { serial: AsconfNumber(serial), address, parameters })
        });
    prop_oneof![
        asconf,
        heartbeat().prop_map(Chunk::Heartbeat),
        heartbeat().prop_map(Chunk::HeartbeatAck),
        (any::<bool>(), causes())
            .prop_map(|(reflected, causes)| Chunk::Abort(AbortChunk { reflected, causes })),
        tsn().prop_map(|cumulative_tsn| Chunk::Shutdown { cumulative_tsn }),
        Just(Chunk::ShutdownAck),
        causes().prop_map(|causes| Chunk::Error(ErrorChunk { causes })),
        bytes().prop_map(Chunk::CookieEcho),
        Just(Chunk::CookieAck),
        tsn().prop_map(|lowest_tsn| Chunk::Ecne { lowest_tsn }),
        tsn().prop_map(|lowest_tsn| Chunk::Cwr { lowest_tsn }),
        any::<bool>().prop_map(|reflected| Chunk::ShutdownComplete { reflected }),
        (any::<u32>(), parameters()).prop_map(|(serial, parameters)| {
            Chunk::AsconfAck(AsconfAckChunk { serial: AsconfNumber(serial), parameters })
        }),
        parameters().prop_map(|parameters| Chunk::Reconfig(ReconfigChunk { parameters })),
        (0_u16..99).prop_map(|length| Chunk::Pad { length }),
        (any::<u8>(), bytes()).prop_map(|(flags, value)| {
            Chunk::Unknown(UnknownChunk { chunk_type: ChunkType(0x55), flags, value })
        }),
    ]
}

/// A chunk of any kind that can be sent, except AUTH, which contains the bytes after it.
pub(super) fn chunk() -> impl Strategy<Value = Chunk> {
    prop_oneof![
        data().prop_map(Chunk::Data),
        sack(),
        init().prop_map(Chunk::Init),
        init().prop_map(Chunk::InitAck),
        forward_tsn(),
        control(),
    ]
}

/// An AUTH chunk as it is sent.
pub(super) fn auth() -> impl Strategy<Value = AuthChunk> {
    (any::<u16>(), any::<u16>(), bytes()).prop_map(|(shared_key_id, hmac_id, hmac)| AuthChunk {
        shared_key_id,
        hmac_id,
        hmac,
        covered: Bytes::new(),
    })
}
