//! What the peer asks: ASCONF and its ASCONF-ACK (RFC 5061 §5.2, §5.3).

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::association::addresses::is_plausible;
use crate::serial::AsconfNumber;
use crate::wire::parameter::AddressRequest;
use crate::wire::{AsconfAckChunk, AsconfChunk, Cause, Causes, Parameter, Parameters};

/// The most requests of one ASCONF that are looked at, so that the answer fits a packet.
const MAX_REQUESTS: usize = 16;

/// Unknown requests with more bytes than this are not reported: the report holds the request.
const MAX_REPORTED: usize = 64;

/// What is known of the peer's addresses.
#[derive(Clone, Debug)]
pub(crate) struct PeerAddresses {
    /// Those that the association has.
    pub(crate) known: Vec<IpAddr>,
    /// The most that it may have.
    pub(crate) limit: usize,
}

/// A change that a request of the peer's makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerChange {
    /// A new address, not yet verified.
    Added(IpAddr),
    /// An address less.
    Deleted(IpAddr),
    /// The address to send to first.
    MadePrimary(IpAddr),
}

/// What to do about an ASCONF.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing: its number is not the one that is due.
    Discard,
    /// It came again: so does the answer.
    Again(AsconfAckChunk),
    /// It is new.
    New(AsconfAckChunk, Vec<PeerChange>),
    /// It cannot be read.
    Malformed,
}

/// What the peer asks.
#[derive(Debug)]
pub(crate) struct Answering {
    /// The number of the last request that was answered.
    serial: AsconfNumber,
    answer: Option<AsconfAckChunk>,
}

impl Answering {
    pub(super) fn new(first: AsconfNumber) -> Self {
        Self { serial: first.previous(), answer: None }
    }

    /// ASCONF, in a packet from `source` that was found to be authentic.
    pub(crate) fn handle_asconf(
        &mut self,
        asconf: &AsconfChunk,
        source: IpAddr,
        peer: PeerAddresses,
    ) -> Answer {
        if asconf.serial == self.serial {
            return self.answer.clone().map_or(Answer::Discard, Answer::Again);
        }
        if asconf.serial != self.serial.next() {
            return Answer::Discard;
        }
        let malformed = |parameter: Parameter| matches!(parameter, Parameter::Malformed { .. });
        if asconf.parameters.iter().any(malformed) {
            return Answer::Malformed;
        }
        let (changes, responses) = (Vec::new(), Vec::new());
        let mut work = Work { source, peer, changes, responses, refuses: false };
        work.answer_all(&asconf.parameters);
        let ack = AsconfAckChunk { serial: asconf.serial, parameters: work.responses() };
        self.serial = asconf.serial;
        self.answer = Some(ack.clone());
        Answer::New(ack, work.changes)
    }
}

/// An answer on its way.
struct Work {
    source: IpAddr,
    peer: PeerAddresses,
    changes: Vec<PeerChange>,
    responses: Vec<(u32, Result<(), Cause>)>,
    /// Whether an address was not added or deleted: then none behind it is (RFC 5061 §5.3, F11). Who
    /// moves would else lose the old address without having the new one.
    refuses: bool,
}

impl Work {
    fn answer_all(&mut self, requests: &Parameters) {
        for (count, parameter) in requests.iter().enumerate() {
            let (correlation, outcome) = match &parameter {
                _ if count >= MAX_REQUESTS => {
                    let request = parameter.to_bytes();
                    (correlation(&parameter), Err(Cause::ResourceShortage { request }))
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
                        let cause = Cause::UnrecognizedParameters(whole);
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
        make: fn(&mut Self, AddressRequest, &Parameter) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        if self.refuses {
            return Err(Cause::ResourceShortage { request: parameter.to_bytes() });
        }
        let outcome = make(self, request, parameter);
        self.refuses = outcome.is_err();
        outcome
    }

    /// RFC 5061 §4.2.1; an address that is there already is no error.
    fn add(&mut self, request: AddressRequest, parameter: &Parameter) -> Result<(), Cause> {
        let address = self.meant(request.address);
        if self.peer.known.contains(&address) {
            return Ok(());
        }
        if !is_plausible(address, self.source) {
            return Err(Cause::UnresolvableAddress { parameter: parameter.to_bytes() });
        }
        if self.peer.known.len() >= self.peer.limit {
            return Err(Cause::ResourceShortage { request: parameter.to_bytes() });
        }
        self.peer.known.push(address);
        self.changes.push(PeerChange::Added(address));
        Ok(())
    }

    /// RFC 5061 §4.2.2, §5.3 F7 and F8: neither the last address goes nor the one that the request came
    /// from. An unspecified one stands for all others.
    fn delete(&mut self, request: AddressRequest, parameter: &Parameter) -> Result<(), Cause> {
        let (address, source) = (request.address, self.source);
        if address.is_unspecified() {
            if !self.peer.known.contains(&source) {
                return Err(Cause::DeleteLastAddress { request: parameter.to_bytes() });
            }
            let others = self.peer.known.iter().filter(|known| **known != source);
            self.changes.extend(others.map(|other| PeerChange::Deleted(*other)));
            self.peer.known = alloc::vec![source];
            return Ok(());
        }
        let Some(at) = self.peer.known.iter().position(|known| *known == address) else {
            return Err(Cause::UnresolvableAddress { parameter: parameter.to_bytes() });
        };
        if self.peer.known.len() == 1 {
            return Err(Cause::DeleteLastAddress { request: parameter.to_bytes() });
        }
        if address == source {
            return Err(Cause::DeleteSourceAddress { request: parameter.to_bytes() });
        }
        self.peer.known.remove(at);
        self.changes.push(PeerChange::Deleted(address));
        Ok(())
    }

    /// RFC 5061 §4.2.4.
    fn set_primary(&mut self, request: AddressRequest, parameter: &Parameter) -> Result<(), Cause> {
        let address = self.meant(request.address);
        if !self.peer.known.contains(&address) {
            return Err(Cause::UnresolvableAddress { parameter: parameter.to_bytes() });
        }
        self.changes.push(PeerChange::MadePrimary(address));
        Ok(())
    }

    /// An unspecified address stands for the one that the packet came from.
    fn meant(&self, address: IpAddr) -> IpAddr {
        if address.is_unspecified() { self.source } else { address }
    }

    /// What was done is said only if something was not (RFC 5061 §5.2, V2).
    fn responses(&mut self) -> Parameters {
        let responses = core::mem::take(&mut self.responses);
        if responses.iter().all(|(_, outcome)| outcome.is_ok()) {
            return Parameters::default();
        }
        let response = |(correlation, outcome): (u32, Result<(), Cause>)| match outcome {
            Ok(()) => Parameter::SuccessIndication { correlation },
            Err(cause) => {
                Parameter::ErrorCauseIndication { correlation, causes: Causes::from(cause) }
            }
        };
        responses.into_iter().map(response).collect()
    }
}

/// The correlation identifier: the first four bytes of any request's value.
fn correlation(parameter: &Parameter) -> u32 {
    let bytes = parameter.to_bytes();
    let value = bytes.get(4..).and_then(|value| value.first_chunk::<4>());
    value.map_or(0, |value| u32::from_be_bytes(*value))
}
