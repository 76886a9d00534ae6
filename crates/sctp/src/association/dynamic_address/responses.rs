//! The peer's requests: ASCONF and its ASCONF-ACK (RFC 5061 §5.2, §5.3).

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::association::addresses::is_plausible;
use crate::serial::AsconfNumber;
use crate::wire::parameter::AddressRequest;
use crate::wire::{AsconfAckChunk, AsconfChunk, Causes, ErrorCause, Parameter, Parameters};

/// The maximum number of requests of one ASCONF that are processed, so that the response fits a
/// packet.
const MAX_REQUESTS: usize = 16;

/// Unknown requests larger than this many bytes are not reported, as the report contains the
/// request.
const MAX_REPORTED: usize = 64;

/// The peer's addresses.
#[derive(Clone, Debug)]
pub(crate) struct PeerAddresses {
    /// The addresses that the association has.
    pub(crate) known: Vec<IpAddr>,
    /// The maximum number of addresses.
    pub(crate) limit: usize,
}

/// A change made by a request of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerChange {
    /// A new, unconfirmed address was added.
    Added(IpAddr),
    /// An address was removed.
    Deleted(IpAddr),
    /// An address was made primary.
    MadePrimary(IpAddr),
}

/// The result of an ASCONF.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AsconfAnswer {
    /// Ignore it: its serial number is not the expected one.
    Discard,
    /// It is a retransmission: repeat the response.
    Repeat(AsconfAckChunk),
    /// It is new: respond, and apply the changes.
    New(AsconfAckChunk, Vec<PeerChange>),
    /// It is malformed.
    Malformed,
}

/// The peer's requests.
#[derive(Debug)]
pub(crate) struct IncomingRequests {
    /// The serial number of the last request that was answered.
    serial: AsconfNumber,
    answer: Option<AsconfAckChunk>,
}

impl IncomingRequests {
    pub(super) fn new(first: AsconfNumber) -> Self {
        Self { serial: first.previous(), answer: None }
    }

    /// Handles an authenticated ASCONF from `source`.
    pub(crate) fn handle_asconf(
        &mut self,
        asconf: &AsconfChunk,
        source: IpAddr,
        peer: PeerAddresses,
    ) -> AsconfAnswer {
        if asconf.serial == self.serial {
            return self.answer.clone().map_or(AsconfAnswer::Discard, AsconfAnswer::Repeat);
        }
        if asconf.serial != self.serial.next() {
            return AsconfAnswer::Discard;
        }
        let malformed = |parameter: Parameter| matches!(parameter, Parameter::Malformed { .. });
        if asconf.parameters.iter().any(malformed) {
            return AsconfAnswer::Malformed;
        }
        let (changes, responses) = (Vec::new(), Vec::new());
        let mut builder = ResponseBuilder { source, peer, changes, responses, has_failed: false };
        builder.answer_all(&asconf.parameters);
        let ack = AsconfAckChunk { serial: asconf.serial, parameters: builder.responses() };
        self.serial = asconf.serial;
        self.answer = Some(ack.clone());
        AsconfAnswer::New(ack, builder.changes)
    }
}

/// A response under construction.
struct ResponseBuilder {
    source: IpAddr,
    peer: PeerAddresses,
    changes: Vec<PeerChange>,
    responses: Vec<(u32, Result<(), ErrorCause>)>,
    /// Whether an addition or deletion failed: then all later ones fail too (RFC 5061 §5.3, F11).
    /// Otherwise a moving peer would lose its old address without having the new one.
    has_failed: bool,
}

impl ResponseBuilder {
    fn answer_all(&mut self, requests: &Parameters) {
        for (count, parameter) in requests.iter().enumerate() {
            let (correlation, outcome) = match &parameter {
                _ if count >= MAX_REQUESTS => {
                    let request = parameter.to_bytes();
                    (correlation(&parameter), Err(ErrorCause::ResourceShortage { request }))
                }
                Parameter::AddAddress(request) => {
                    (request.correlation, self.change(*request, &parameter, Self::add))
                }
                Parameter::DeleteAddress(request) => {
                    (request.correlation, self.change(*request, &parameter, Self::delete))
                }
                Parameter::SetPrimaryAddress(request) => {
                    (request.correlation, self.set_primary(*request, &parameter))
                }
                Parameter::Unknown(unknown) => {
                    let stops = unknown.action().stops();
                    if unknown.action().reports() && unknown.value.len() <= MAX_REPORTED {
                        let whole = Parameters::from_bytes(unknown.whole());
                        let cause = ErrorCause::UnrecognizedParameters(whole);
                        self.responses.push((correlation(&parameter), Err(cause)));
                    }
                    if stops {
                        return;
                    }
                    continue;
                }
                _ => continue,
            };
            self.responses.push((correlation, outcome));
            if count >= MAX_REQUESTS {
                return;
            }
        }
    }

    fn change(
        &mut self,
        request: AddressRequest,
        parameter: &Parameter,
        apply: fn(&mut Self, AddressRequest, &Parameter) -> Result<(), ErrorCause>,
    ) -> Result<(), ErrorCause> {
        if self.has_failed {
            return Err(ErrorCause::ResourceShortage { request: parameter.to_bytes() });
        }
        let outcome = apply(self, request, parameter);
        self.has_failed = outcome.is_err();
        outcome
    }

    /// Adds an address (RFC 5061 §4.2.1). Adding one that is present is not an error.
    fn add(&mut self, request: AddressRequest, parameter: &Parameter) -> Result<(), ErrorCause> {
        let address = self.resolve(request.address);
        if self.peer.known.contains(&address) {
            return Ok(());
        }
        if !is_plausible(address, self.source) {
            return Err(ErrorCause::UnresolvableAddress { parameter: parameter.to_bytes() });
        }
        if self.peer.known.len() >= self.peer.limit {
            return Err(ErrorCause::ResourceShortage { request: parameter.to_bytes() });
        }
        self.peer.known.push(address);
        self.changes.push(PeerChange::Added(address));
        Ok(())
    }

    /// Deletes an address, but neither the last one nor the request's source (RFC 5061 §4.2.2, §5.3
    /// F7 and F8). The unspecified address stands for all addresses except the source.
    fn delete(&mut self, request: AddressRequest, parameter: &Parameter) -> Result<(), ErrorCause> {
        let (address, source) = (request.address, self.source);
        if address.is_unspecified() {
            if !self.peer.known.contains(&source) {
                return Err(ErrorCause::DeleteLastAddress { request: parameter.to_bytes() });
            }
            let others = self.peer.known.iter().filter(|known| **known != source);
            self.changes.extend(others.map(|other| PeerChange::Deleted(*other)));
            self.peer.known = alloc::vec![source];
            return Ok(());
        }
        let Some(at) = self.peer.known.iter().position(|known| *known == address) else {
            return Err(ErrorCause::UnresolvableAddress { parameter: parameter.to_bytes() });
        };
        if self.peer.known.len() == 1 {
            return Err(ErrorCause::DeleteLastAddress { request: parameter.to_bytes() });
        }
        if address == source {
            return Err(ErrorCause::DeleteSourceAddress { request: parameter.to_bytes() });
        }
        self.peer.known.remove(at);
        self.changes.push(PeerChange::Deleted(address));
        Ok(())
    }

    /// Makes an address the primary one (RFC 5061 §4.2.4).
    fn set_primary(
        &mut self,
        request: AddressRequest,
        parameter: &Parameter,
    ) -> Result<(), ErrorCause> {
        let address = self.resolve(request.address);
        if !self.peer.known.contains(&address) {
            return Err(ErrorCause::UnresolvableAddress { parameter: parameter.to_bytes() });
        }
        self.changes.push(PeerChange::MadePrimary(address));
        Ok(())
    }

    /// Returns the packet's source if `address` is unspecified.
    fn resolve(&self, address: IpAddr) -> IpAddr {
        if address.is_unspecified() { self.source } else { address }
    }

    /// Returns the responses: none if all requests succeeded (RFC 5061 §5.2, V2).
    fn responses(&mut self) -> Parameters {
        let responses = core::mem::take(&mut self.responses);
        if responses.iter().all(|(_, outcome)| outcome.is_ok()) {
            return Parameters::default();
        }
        let response = |(correlation, outcome): (u32, Result<(), ErrorCause>)| match outcome {
            Ok(()) => Parameter::SuccessIndication { correlation },
            Err(cause) => {
                Parameter::ErrorCauseIndication { correlation, causes: Causes::from(cause) }
            }
        };
        responses.into_iter().map(response).collect()
    }
}

/// Returns the correlation identifier, the first four bytes of any request's value.
fn correlation(parameter: &Parameter) -> u32 {
    let bytes = parameter.to_bytes();
    let value = bytes.get(4..).and_then(|value| value.first_chunk::<4>());
    value.map_or(0, |value| u32::from_be_bytes(*value))
}
