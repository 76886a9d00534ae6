//! Requests and responses of RE-CONFIG.
//!
//! <https://www.rfc-editor.org/rfc/rfc6525#section-4>
//!
//! ```text
//!  outgoing SSN reset              incoming SSN reset
//! +---------------+---------------+---------------+---------------+
//! |   Type = 13   |    Length     |   Type = 14   |    Length     |
//! +---------------+---------------+---------------+---------------+
//! | Request Sequence Number       | Request Sequence Number       |
//! +-------------------------------+-------------------------------+
//! | Response Sequence Number      | Stream 1      | Stream 2      |
//! +-------------------------------+---------------+---------------+
//! | Sender's Last Assigned TSN    |
//! +---------------+---------------+
//! | Stream 1      | Stream 2      |
//! +---------------+---------------+
//!
//!  SSN/TSN reset                   response
//! +---------------+---------------+---------------+---------------+
//! |   Type = 15   |  Length = 8   |   Type = 16   | Length 12, 20 |
//! +---------------+---------------+---------------+---------------+
//! | Request Sequence Number       | Response Sequence Number      |
//! +-------------------------------+-------------------------------+
//!                                 | Result                        |
//!  add streams                    +-------------------------------+
//! +---------------+---------------+ Sender's Next TSN (optional)  |
//! | Type = 17, 18 |  Length = 12  +-------------------------------+
//! +---------------+---------------+ Receiver's Next TSN (optional)|
//! | Request Sequence Number       +-------------------------------+
//! +---------------+---------------+
//! | New streams   | Reserved      |
//! +---------------+---------------+
//! ```

use bytes::{Bytes, BytesMut};

use super::{ELEMENT_HEADER, PacketView, Parameter, ParameterType};
use crate::identifier::StreamId;
use crate::serial::{ReconfigurationNumber, Tsn};
use crate::wire::records::{WireRecord, WireRecords, encode_records};

/// The length of an outgoing SSN reset request before its streams.
const OUTGOING_FIXED: usize = ELEMENT_HEADER + 12;
/// The length of an incoming SSN reset request before its streams.
const INCOMING_FIXED: usize = ELEMENT_HEADER + 4;

/// A list of streams; if empty, all streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamList(Bytes);

impl StreamList {
    /// Creates a list of streams.
    #[must_use]
    pub fn new(streams: &[StreamId]) -> Self {
        Self(encode_records(streams))
    }

    fn parse(list: PacketView<'_>) -> Option<Self> {
        let whole = list.len() - list.len() % StreamId::SIZE;
        Some(Self(list.first(whole)?.share()))
    }

    /// Returns the streams in their order; there may be duplicates.
    #[must_use]
    pub fn iter(&self) -> WireRecords<'_, StreamId> {
        WireRecords::new(&self.0)
    }

    /// Returns whether the list is empty, which stands for all streams.
    #[cfg(any(test, feature = "internals"))]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A reset of the sender's streams, once everything up to a TSN has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingSsnReset {
    /// The number of the request.
    pub request: ReconfigurationNumber,
    /// The number of the incoming SSN reset request that this answers; otherwise of the last
    /// request received.
    pub response: ReconfigurationNumber,
    /// The last TSN that the sender assigned to data of these streams.
    pub last_assigned_tsn: Tsn,
    /// The streams.
    pub streams: StreamList,
}

impl OutgoingSsnReset {
    fn parse(parameter: PacketView<'_>) -> Option<Self> {
        Some(Self {
            request: ReconfigurationNumber(parameter.u32_at(4)?),
            response: ReconfigurationNumber(parameter.u32_at(8)?),
            last_assigned_tsn: Tsn(parameter.u32_at(12)?),
            streams: StreamList::parse(parameter.skip(OUTGOING_FIXED)?)?,
        })
    }

    pub(super) fn encode_value(&self, buffer: &mut BytesMut) {
        self.request.0.write(buffer);
        self.response.0.write(buffer);
        self.last_assigned_tsn.write(buffer);
        buffer.extend_from_slice(&self.streams.0);
    }
}

/// A request to reset the receiver's streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingSsnReset {
    /// The number of the request.
    pub request: ReconfigurationNumber,
    /// The streams.
    pub streams: StreamList,
}

impl IncomingSsnReset {
    fn parse(parameter: PacketView<'_>) -> Option<Self> {
        Some(Self {
            request: ReconfigurationNumber(parameter.u32_at(4)?),
            streams: StreamList::parse(parameter.skip(INCOMING_FIXED)?)?,
        })
    }

    pub(super) fn encode_value(&self, buffer: &mut BytesMut) {
        self.request.0.write(buffer);
        buffer.extend_from_slice(&self.streams.0);
    }
}

/// A request for more streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddStreams {
    /// The number of the request.
    pub request: ReconfigurationNumber,
    /// The number of additional streams.
    pub count: u16,
}

impl AddStreams {
    fn parse(parameter: PacketView<'_>) -> Option<Self> {
        Some(Self {
            request: ReconfigurationNumber(parameter.u32_at(4)?),
            count: parameter.u16_at(8)?,
        })
    }

    pub(super) fn encode_value(&self, buffer: &mut BytesMut) {
        self.request.0.write(buffer);
        self.count.write(buffer);
        0_u16.write(buffer);
    }
}

/// The result of a request (RFC 6525 §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconfigurationResult {
    /// There was nothing to do.
    NothingToDo,
    /// It was performed.
    Performed,
    /// It was denied.
    Denied,
    /// A stream number is wrong.
    WrongSsn,
    /// Another request is in progress.
    RequestInProgress,
    /// The number of the request is wrong.
    BadSequenceNumber,
    /// It is in progress; repeat the request.
    InProgress,
    /// An unknown result.
    Unknown(u32),
}

impl ReconfigurationResult {
    /// Decodes the number on the wire.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::NothingToDo,
            1 => Self::Performed,
            2 => Self::Denied,
            3 => Self::WrongSsn,
            4 => Self::RequestInProgress,
            5 => Self::BadSequenceNumber,
            6 => Self::InProgress,
            _ => Self::Unknown(number),
        }
    }

    /// Returns the number on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::NothingToDo => 0,
            Self::Performed => 1,
            Self::Denied => 2,
            Self::WrongSsn => 3,
            Self::RequestInProgress => 4,
            Self::BadSequenceNumber => 5,
            Self::InProgress => 6,
            Self::Unknown(number) => number,
        }
    }
}

/// The response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconfigurationResponse {
    /// The number of the request.
    pub response: ReconfigurationNumber,
    /// The result.
    pub result: ReconfigurationResult,
    /// For a performed SSN/TSN reset: the next TSN that the sender of the response will use, and
    /// the one that it expects.
    pub next_tsns: Option<(Tsn, Tsn)>,
}

impl ReconfigurationResponse {
    fn parse(parameter: PacketView<'_>) -> Option<Self> {
        let next_tsns = parameter.u32_at(12).zip(parameter.u32_at(16));
        Some(Self {
            response: ReconfigurationNumber(parameter.u32_at(4)?),
            result: ReconfigurationResult::from_number(parameter.u32_at(8)?),
            next_tsns: next_tsns.map(|(sender, receiver)| (Tsn(sender), Tsn(receiver))),
        })
    }

    pub(super) fn encode_value(&self, buffer: &mut BytesMut) {
        self.response.0.write(buffer);
        self.result.number().write(buffer);
        if let Some((sender, receiver)) = self.next_tsns {
            sender.write(buffer);
            receiver.write(buffer);
        }
    }
}

pub(super) fn parse(parameter_type: ParameterType, parameter: PacketView<'_>) -> Option<Parameter> {
    Some(match parameter_type {
        ParameterType::OUTGOING_SSN_RESET => {
            Parameter::OutgoingSsnReset(OutgoingSsnReset::parse(parameter)?)
        }
        ParameterType::INCOMING_SSN_RESET => {
            Parameter::IncomingSsnReset(IncomingSsnReset::parse(parameter)?)
        }
        ParameterType::SSN_TSN_RESET => {
            Parameter::SsnTsnReset { request: ReconfigurationNumber(parameter.u32_at(4)?) }
        }
        ParameterType::RECONFIGURATION_RESPONSE => {
            Parameter::ReconfigurationResponse(ReconfigurationResponse::parse(parameter)?)
        }
        ParameterType::ADD_OUTGOING_STREAMS => {
            Parameter::AddOutgoingStreams(AddStreams::parse(parameter)?)
        }
        ParameterType::ADD_INCOMING_STREAMS => {
            Parameter::AddIncomingStreams(AddStreams::parse(parameter)?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parameter::tests::{parse_one, round_trip};

    #[test]
    fn an_outgoing_reset_names_streams() {
        let bytes = [0, 13, 0, 20, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 4, 0, 5];
        let reset = OutgoingSsnReset {
            request: ReconfigurationNumber(1),
            response: ReconfigurationNumber(2),
            last_assigned_tsn: Tsn(3),
            streams: StreamList::new(&[StreamId(4), StreamId(5)]),
        };
        assert!(reset.streams.iter().eq([StreamId(4), StreamId(5)]));
        assert_eq!(parse_one(&bytes), Parameter::OutgoingSsnReset(reset));
        round_trip(&bytes);
    }

    #[test]
    fn an_incoming_reset_of_all_streams_names_none() {
        let bytes = [0, 14, 0, 8, 0, 0, 0, 1];
        let reset =
            IncomingSsnReset { request: ReconfigurationNumber(1), streams: StreamList::default() };
        assert!(reset.streams.is_empty());
        assert_eq!(parse_one(&bytes), Parameter::IncomingSsnReset(reset));
        round_trip(&bytes);
    }

    #[test]
    fn other_requests() {
        let reset = [0, 15, 0, 8, 0, 0, 0, 1];
        let request = ReconfigurationNumber(1);
        assert_eq!(parse_one(&reset), Parameter::SsnTsnReset { request });
        round_trip(&reset);
        let add = AddStreams { request, count: 16 };
        let outgoing = [0, 17, 0, 12, 0, 0, 0, 1, 0, 16, 0, 0];
        assert_eq!(parse_one(&outgoing), Parameter::AddOutgoingStreams(add));
        round_trip(&outgoing);
        let incoming = [0, 18, 0, 12, 0, 0, 0, 1, 0, 16, 0, 0];
        assert_eq!(parse_one(&incoming), Parameter::AddIncomingStreams(add));
        round_trip(&incoming);
    }

    #[test]
    fn a_response_may_have_tsns() {
        let short = [0, 16, 0, 12, 0, 0, 0, 1, 0, 0, 0, 6];
        let expected = ReconfigurationResponse {
            response: ReconfigurationNumber(1),
            result: ReconfigurationResult::InProgress,
            next_tsns: None,
        };
        assert_eq!(parse_one(&short), Parameter::ReconfigurationResponse(expected));
        round_trip(&short);
        let long = [0, 16, 0, 20, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 8];
        let expected = ReconfigurationResponse {
            response: ReconfigurationNumber(1),
            result: ReconfigurationResult::Performed,
            next_tsns: Some((Tsn(7), Tsn(8))),
        };
        assert_eq!(parse_one(&long), Parameter::ReconfigurationResponse(expected));
        round_trip(&long);
    }

    #[test]
    fn results_are_numbers() {
        for number in 0..9 {
            assert_eq!(ReconfigurationResult::from_number(number).number(), number);
        }
        assert_eq!(ReconfigurationResult::from_number(7), ReconfigurationResult::Unknown(7));
    }

    //= rfc6525 §4.1 to §4.6
    //# parameters shorter than their sections say are malformed
    #[test]
    fn requests_shorter_than_they_must_be_are_malformed() {
        for (number, shortest) in [(13, 16), (14, 8), (15, 8), (16, 12), (17, 10), (18, 10)] {
            for length in 4..shortest {
                let mut bytes = alloc::vec![0; length];
                bytes[1] = number;
                bytes[3] = u8::try_from(length).expect("small");
                let parameter_type = ParameterType(number.into());
                assert_eq!(parse_one(&bytes), Parameter::Malformed { parameter_type });
            }
        }
    }
}
