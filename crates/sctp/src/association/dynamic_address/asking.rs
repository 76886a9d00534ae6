//! What this side asks of the peer: ASCONF, T4-RTO, ASCONF-ACK (RFC 5061 §5.1).

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;

use crate::association::state::Retry;
use crate::error::Error;
use crate::identifier::PathId;
use crate::serial::AsconfNumber;
use crate::wire::parameter::AddressRequest;
use crate::wire::{AsconfAckChunk, AsconfChunk, CauseCode, Parameter};

/// The most requests that wait.
const MAX_WAITING: usize = 32;

/// The most requests in one ASCONF, so that it fits a packet of any path.
const MAX_REQUESTS: usize = 8;

/// A change that the peer is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsconfRequest {
    /// Send to this address of ours, too.
    Add(IpAddr),
    /// Do not send to this address of ours any more.
    Delete(IpAddr),
    /// Send to this address of ours first.
    SetPrimary(IpAddr),
}

impl AsconfRequest {
    /// The address that it is about.
    pub(crate) const fn address(self) -> IpAddr {
        match self {
            Self::Add(address) | Self::Delete(address) | Self::SetPrimary(address) => address,
        }
    }

    const fn kind(self) -> Kind {
        match self {
            Self::Add(_) | Self::Delete(_) => Kind::Change,
            Self::SetPrimary(_) => Kind::SetPrimary,
        }
    }

    const fn parameter(self, correlation: u32) -> Parameter {
        let request = AddressRequest { correlation, address: self.address() };
        match self {
            Self::Add(_) => Parameter::AddAddress(request),
            Self::Delete(_) => Parameter::DeleteAddress(request),
            Self::SetPrimary(_) => Parameter::SetPrimaryAddress(request),
        }
    }
}

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Change,
    SetPrimary,
}

/// What an ASCONF-ACK means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It answers nothing that is under way.
    Nothing,
    /// It answers what was never asked: the association is to be aborted (RFC 5061 §5.3, F0).
    Illegal,
    /// It answers the request that went over this path.
    Answered {
        /// Where the request was sent.
        path: PathId,
        /// What was done, and what was not for which reason.
        results: Vec<(AsconfRequest, Option<CauseCode>)>,
    },
}

/// The request that is under way.
#[derive(Debug)]
struct Asked {
    chunk: AsconfChunk,
    /// By correlation identifier, in the order of the chunk.
    requests: Vec<(u32, AsconfRequest)>,
    /// T4-RTO.
    t4: Retry,
    /// Whether it waits to be sent.
    unsent: bool,
}

/// What this side asks.
#[derive(Debug)]
pub(crate) struct Asking {
    next_serial: AsconfNumber,
    next_correlation: u32,
    requests: VecDeque<AsconfRequest>,
    /// Behind a pointer, for most associations never ask for a change.
    asked: Option<Box<Asked>>,
    own: Vec<IpAddr>,
    /// Addresses of ours that the peer was told to forget, latest last.
    gone: VecDeque<IpAddr>,
    /// What the peer said that it does not know: nothing more of it is asked (RFC 5061 §5.3, F3).
    unknown: Vec<Kind>,
}

impl Asking {
    pub(super) fn new(first: AsconfNumber, own: &[IpAddr]) -> Self {
        Self {
            next_serial: first,
            next_correlation: 0,
            requests: VecDeque::new(),
            asked: None,
            own: own.to_vec(),
            gone: VecDeque::new(),
            unknown: Vec::new(),
        }
    }

    /// Our addresses that the peer sends to, as far as they are known here.
    pub(crate) fn own(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.own.iter().copied()
    }

    /// Takes a request; it is asked for as soon as nothing else is under way.
    pub(crate) fn request(&mut self, request: AsconfRequest) -> Result<(), Error> {
        if self.unknown.contains(&request.kind()) {
            return Err(Error::NotSupported);
        }
        if self.requests.len() >= MAX_WAITING {
            return Err(Error::Busy);
        }
        self.requests.push_back(request);
        Ok(())
    }

    /// Asks that the peer knew these addresses of ours, and no others. Says whether anything is
    /// wished.
    pub(crate) fn follow(&mut self, addresses: &[IpAddr]) -> bool {
        let new = addresses.iter().filter(|address| !self.own.contains(address));
        let new = new.map(|address| AsconfRequest::Add(*address));
        let gone = self.own.iter().filter(|own| !addresses.is_empty() && !addresses.contains(own));
        let gone = gone.map(|address| AsconfRequest::Delete(*address));
        // What is added goes first: the last address is never taken back.
        let requests: Vec<AsconfRequest> =
            new.chain(gone).filter(|request| !self.open().any(|open| open == *request)).collect();
        requests.into_iter().filter(|request| self.request(*request).is_ok()).count() > 0
    }

    /// The ASCONF to send now, if there is one, and over which path. A new one goes over `path` and
    /// comes from `source`, if that is known.
    pub(crate) fn poll_chunk(
        &mut self,
        now: Duration,
        path: PathId,
        rto: Duration,
        source: Option<IpAddr>,
    ) -> Option<(PathId, AsconfChunk)> {
        if self.asked.is_none() && !self.requests.is_empty() {
            self.asked = Some(Box::new(self.ask(Retry::new(now, rto, path), source)));
        }
        let asked = self.asked.as_mut().filter(|asked| asked.unsent)?;
        asked.unsent = false;
        Some((asked.t4.path, asked.chunk.clone()))
    }

    fn ask(&mut self, t4: Retry, source: Option<IpAddr>) -> Asked {
        let count = self.requests.len().min(MAX_REQUESTS);
        let requests: Vec<(u32, AsconfRequest)> = self
            .requests
            .drain(..count)
            .map(|request| {
                self.next_correlation = self.next_correlation.wrapping_add(1);
                (self.next_correlation, request)
            })
            .collect();
        let parameters =
            requests.iter().map(|(correlation, request)| request.parameter(*correlation));
        let chunk = AsconfChunk {
            serial: self.next_serial,
            address: self.known_address(source),
            parameters: parameters.collect(),
        };
        self.next_serial = self.next_serial.next();
        Asked { chunk, requests, t4, unsent: true }
    }

    /// An address by which the peer finds the association if the packet comes from a new one
    /// (RFC 5061 §4.1.1); unspecified if none is known: then the tag must do.
    fn known_address(&self, source: Option<IpAddr>) -> IpAddr {
        let known = source.filter(|source| self.own.is_empty() || self.own.contains(source));
        known.or_else(|| self.own.first().copied()).unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }

    /// Whether a request that waits or is under way takes this address of ours away.
    pub(crate) fn deletes(&self, address: IpAddr) -> bool {
        self.open().any(|request| request == AsconfRequest::Delete(address))
    }

    /// Whether a request that waits or is under way takes any address of ours away.
    pub(crate) fn deletes_any(&self) -> bool {
        self.open().any(|request| matches!(request, AsconfRequest::Delete(_)))
    }

    /// Whether an address of ours is not the peer's to send to any more, or soon will not be: what comes
    /// from there out of the blue may be its ABORT to what we sent from this address before
    /// (RFC 5061 §5.3.1).
    pub(crate) fn is_leaving(&self, address: IpAddr) -> bool {
        self.deletes(address) || self.gone.contains(&address)
    }

    fn open(&self) -> impl Iterator<Item = AsconfRequest> + '_ {
        let asked =
            self.asked.iter().flat_map(|asked| asked.requests.iter().map(|(_, request)| request));
        asked.chain(&self.requests).copied()
    }

    /// When T4-RTO runs out.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.asked.as_ref().map(|asked| asked.t4.due)
    }

    /// The path that T4-RTO has run out on, if it has.
    pub(crate) fn expired(&self, now: Duration) -> Option<PathId> {
        self.asked.as_ref().filter(|asked| asked.t4.due <= now).map(|asked| asked.t4.path)
    }

    /// Sends the same request again, over `path` (RFC 5061 §5.1, B4).
    pub(crate) fn ask_again(&mut self, now: Duration, path: PathId, rto_max: Duration) {
        if let Some(asked) = &mut self.asked {
            asked.t4.again(now, path, rto_max);
            asked.unsent = true;
        }
    }

    /// The peer does not know ASCONF: nothing more is asked (RFC 5061 §5.1, A9). What was wished.
    pub(crate) fn give_up(&mut self) -> Vec<AsconfRequest> {
        let asked = self.asked.take().into_iter().flat_map(|asked| asked.requests);
        asked.map(|(_, request)| request).chain(self.requests.drain(..)).collect()
    }

    /// ASCONF-ACK (RFC 5061 §5.1, A5 to A8).
    pub(crate) fn handle_ack(&mut self, ack: &AsconfAckChunk) -> Settled {
        let answers = |asked: &mut Box<Asked>| asked.chunk.serial == ack.serial;
        let Some(asked) = self.asked.take_if(answers) else {
            let idle = self.asked.is_none();
            let unasked = ack.serial.is_at_or_after(self.next_serial);
            return if idle && unasked { Settled::Illegal } else { Settled::Nothing };
        };
        let mut results = results(&asked.requests, ack);
        for (request, refused) in &results {
            if refused.is_none() {
                self.note(*request);
            }
        }
        self.note_unknown(&asked.requests, ack);
        let (vain, kept): (VecDeque<_>, _) =
            self.requests.drain(..).partition(|request| self.unknown.contains(&request.kind()));
        self.requests = kept;
        let unknown = Some(CauseCode::UNRECOGNIZED_PARAMETERS);
        results.extend(vain.into_iter().map(|request| (request, unknown)));
        Settled::Answered { path: asked.t4.path, results }
    }

    fn note(&mut self, done: AsconfRequest) {
        match done {
            AsconfRequest::Add(address) => {
                self.gone.retain(|gone| *gone != address);
                if !self.own.contains(&address) {
                    self.own.push(address);
                }
            }
            AsconfRequest::Delete(address) => {
                self.own.retain(|own| *own != address);
                self.gone.retain(|gone| *gone != address);
                if self.gone.len() >= MAX_WAITING {
                    self.gone.pop_front();
                }
                self.gone.push_back(address);
            }
            AsconfRequest::SetPrimary(_) => {}
        }
    }

    fn note_unknown(&mut self, requests: &[(u32, AsconfRequest)], ack: &AsconfAckChunk) {
        for response in ack.parameters.iter().take(2 * MAX_REQUESTS) {
            let Parameter::ErrorCauseIndication { correlation, causes } = response else {
                continue;
            };
            let is_unknown = causes
                .iter()
                .next()
                .is_some_and(|cause| cause.code() == CauseCode::UNRECOGNIZED_PARAMETERS);
            let request = requests.iter().find(|(other, _)| is_unknown && *other == correlation);
            let kind = request.map(|(_, request)| request.kind());
            self.unknown.extend(kind.filter(|kind| !self.unknown.contains(kind)));
        }
    }
}

/// What became of each request: what stands before the first one that was refused was done, what
/// stands behind it only if the peer says so (RFC 5061 §5.1, A7 and A8).
fn results(
    requests: &[(u32, AsconfRequest)],
    ack: &AsconfAckChunk,
) -> Vec<(AsconfRequest, Option<CauseCode>)> {
    let mut refused = Vec::new();
    let mut performed = Vec::new();
    for response in ack.parameters.iter().take(2 * MAX_REQUESTS) {
        match response {
            Parameter::ErrorCauseIndication { correlation, causes } => {
                let code = causes.iter().next().map_or(CauseCode(0), |cause| cause.code());
                refused.push((correlation, code));
            }
            Parameter::SuccessIndication { correlation } => performed.push(correlation),
            _ => {}
        }
    }
    let mut first_refusal = None;
    let judge = |&(correlation, request): &(u32, AsconfRequest)| {
        let own = refused.iter().find(|(other, _)| *other == correlation).map(|(_, code)| *code);
        first_refusal = first_refusal.or(own);
        let is_done = own.is_none() && performed.contains(&correlation);
        (request, if is_done { None } else { own.or(first_refusal) })
    };
    requests.iter().map(judge).collect()
}
