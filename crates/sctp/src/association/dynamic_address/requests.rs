//! Our requests: ASCONF, T4-RTO, ASCONF-ACK (RFC 5061 §5.1).

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;

use crate::association::retransmission_timer::RetransmissionTimer;
use crate::error::Error;
use crate::identifier::PathId;
use crate::serial::AsconfNumber;
use crate::wire::parameter::AddressRequest;
use crate::wire::{AsconfAckChunk, AsconfChunk, CauseCode, Parameter};

/// The maximum number of queued requests.
const MAX_QUEUED: usize = 32;

/// The maximum number of requests in one ASCONF, so that it fits a packet on any path.
const MAX_REQUESTS: usize = 8;

/// A change requested from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsconfRequest {
    /// Add this address of ours.
    Add(IpAddr),
    /// Remove this address of ours.
    Delete(IpAddr),
    /// Make this address of ours primary.
    SetPrimary(IpAddr),
}

impl AsconfRequest {
    /// Returns the address that the request concerns.
    pub(crate) const fn address(self) -> IpAddr {
        match self {
            Self::Add(address) | Self::Delete(address) | Self::SetPrimary(address) => address,
        }
    }

    const fn kind(self) -> RequestKind {
        match self {
            Self::Add(_) | Self::Delete(_) => RequestKind::Change,
            Self::SetPrimary(_) => RequestKind::SetPrimary,
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
enum RequestKind {
    Change,
    SetPrimary,
}

/// The result of an ASCONF-ACK.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AckOutcome {
    /// It acknowledges no outstanding request.
    Unrelated,
    /// It acknowledges a request that was never sent: the association has to be aborted (RFC 5061
    /// §5.3, F0).
    Illegal,
    /// It acknowledges the outstanding request.
    Answered {
        /// Where the request was sent.
        path: PathId,
        /// The requests, each with the cause if the peer refused it.
        results: Vec<(AsconfRequest, Option<CauseCode>)>,
    },
}

/// The outstanding ASCONF.
#[derive(Debug)]
struct OutstandingAsconf {
    chunk: AsconfChunk,
    /// Its requests by correlation identifier, in the order of the chunk.
    requests: Vec<(u32, AsconfRequest)>,
    /// T4-RTO.
    t4: RetransmissionTimer,
    /// Whether it has to be sent or retransmitted.
    unsent: bool,
}

/// Our requests.
#[derive(Debug)]
pub(crate) struct OutgoingRequests {
    next_serial: AsconfNumber,
    next_correlation: u32,
    requests: VecDeque<AsconfRequest>,
    /// Boxed, as most associations never send a request.
    outstanding: Option<Box<OutstandingAsconf>>,
    own: Vec<IpAddr>,
    /// Addresses of ours that have been deleted at the peer, the most recent last.
    deleted: VecDeque<IpAddr>,
    /// Kinds of requests that the peer does not support; they are not sent again (RFC 5061 §5.3,
    /// F3).
    unsupported_kinds: Vec<RequestKind>,
}

impl OutgoingRequests {
    pub(super) fn new(first: AsconfNumber, own: &[IpAddr]) -> Self {
        Self {
            next_serial: first,
            next_correlation: 0,
            requests: VecDeque::new(),
            outstanding: None,
            own: own.to_vec(),
            deleted: VecDeque::new(),
            unsupported_kinds: Vec::new(),
        }
    }

    /// Returns our addresses that the peer is known to have.
    pub(crate) fn own(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.own.iter().copied()
    }

    /// Queues a request, to be sent as soon as none is outstanding.
    pub(crate) fn request(&mut self, request: AsconfRequest) -> Result<(), Error> {
        if self.unsupported_kinds.contains(&request.kind()) {
            return Err(Error::NotSupported);
        }
        if self.requests.len() >= MAX_QUEUED {
            return Err(Error::Busy);
        }
        self.requests.push_back(request);
        Ok(())
    }

    /// Requests the changes that give the peer exactly these addresses of ours. Returns whether
    /// there are any.
    pub(crate) fn request_addresses(&mut self, addresses: &[IpAddr]) -> bool {
        let new = addresses.iter().filter(|address| !self.own.contains(address));
        let new = new.map(|address| AsconfRequest::Add(*address));
        let deleted =
            self.own.iter().filter(|own| !addresses.is_empty() && !addresses.contains(own));
        let deleted = deleted.map(|address| AsconfRequest::Delete(*address));
        // Additions go first, as the last address cannot be deleted.
        let requests: Vec<AsconfRequest> = new
            .chain(deleted)
            .filter(|request| !self.pending().any(|pending| pending == *request))
            .collect();
        requests.into_iter().filter(|request| self.request(*request).is_ok()).count() > 0
    }

    /// Returns the ASCONF to send now, if any, and its path. A new one goes over `path` and comes
    /// from `source`, if that is known.
    pub(crate) fn poll_chunk(
        &mut self,
        now: Duration,
        path: PathId,
        rto: Duration,
        source: Option<IpAddr>,
    ) -> Option<(PathId, AsconfChunk)> {
        if self.outstanding.is_none() && !self.requests.is_empty() {
            self.outstanding =
                Some(Box::new(self.next_asconf(RetransmissionTimer::new(now, rto, path), source)));
        }
        let outstanding = self.outstanding.as_mut().filter(|outstanding| outstanding.unsent)?;
        outstanding.unsent = false;
        Some((outstanding.t4.path, outstanding.chunk.clone()))
    }

    fn next_asconf(
        &mut self,
        t4: RetransmissionTimer,
        source: Option<IpAddr>,
    ) -> OutstandingAsconf {
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
        OutstandingAsconf { chunk, requests, t4, unsent: true }
    }

    /// Returns an address by which the peer can look up the association if the packet comes from a
    /// new one (RFC 5061 §4.1.1), or the unspecified address if none is known: then the tag must
    /// suffice.
    fn known_address(&self, source: Option<IpAddr>) -> IpAddr {
        let known = source.filter(|source| self.own.is_empty() || self.own.contains(source));
        known.or_else(|| self.own.first().copied()).unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }

    /// Returns whether a queued or outstanding request deletes this address of ours.
    pub(crate) fn deletes(&self, address: IpAddr) -> bool {
        self.pending().any(|request| request == AsconfRequest::Delete(address))
    }

    /// Returns whether a queued or outstanding request deletes any address of ours.
    pub(crate) fn deletes_any(&self) -> bool {
        self.pending().any(|request| matches!(request, AsconfRequest::Delete(_)))
    }

    /// Returns whether an address of ours has been deleted or is about to be: an ABORT that arrives
    /// there out of the blue may be the peer's reaction to what we sent from this address before
    /// (RFC 5061 §5.3.1).
    pub(crate) fn is_being_deleted(&self, address: IpAddr) -> bool {
        self.deletes(address) || self.deleted.contains(&address)
    }

    fn pending(&self) -> impl Iterator<Item = AsconfRequest> + '_ {
        let outstanding = self
            .outstanding
            .iter()
            .flat_map(|outstanding| outstanding.requests.iter().map(|(_, request)| request));
        outstanding.chain(&self.requests).copied()
    }

    /// Returns when T4-RTO expires.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.outstanding.as_ref().map(|outstanding| outstanding.t4.due)
    }

    /// Returns the path whose T4-RTO has expired, if any.
    pub(crate) fn expired(&self, now: Duration) -> Option<PathId> {
        self.outstanding
            .as_ref()
            .filter(|outstanding| outstanding.t4.due <= now)
            .map(|outstanding| outstanding.t4.path)
    }

    /// Retransmits the outstanding request over `path` (RFC 5061 §5.1, B4).
    pub(crate) fn retransmit(&mut self, now: Duration, path: PathId, rto_max: Duration) {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.t4.retransmitted(now, path, rto_max);
            outstanding.unsent = true;
        }
    }

    /// Returns and drops all requests, as the peer does not support ASCONF (RFC 5061 §5.1, A9).
    pub(crate) fn cancel_all(&mut self) -> Vec<AsconfRequest> {
        let outstanding =
            self.outstanding.take().into_iter().flat_map(|outstanding| outstanding.requests);
        outstanding.map(|(_, request)| request).chain(self.requests.drain(..)).collect()
    }

    /// Handles an ASCONF-ACK (RFC 5061 §5.1, A5 to A8).
    pub(crate) fn handle_ack(&mut self, ack: &AsconfAckChunk) -> AckOutcome {
        let answers =
            |outstanding: &mut Box<OutstandingAsconf>| outstanding.chunk.serial == ack.serial;
        let Some(outstanding) = self.outstanding.take_if(answers) else {
            let idle = self.outstanding.is_none();
            let never_sent = ack.serial.is_at_or_after(self.next_serial);
            return if idle && never_sent { AckOutcome::Illegal } else { AckOutcome::Unrelated };
        };
        let mut results = results(&outstanding.requests, ack);
        for (request, refused) in &results {
            if refused.is_none() {
                self.record(*request);
            }
        }
        self.record_unsupported(&outstanding.requests, ack);
        let (unsupported, kept): (VecDeque<_>, _) = self
            .requests
            .drain(..)
            .partition(|request| self.unsupported_kinds.contains(&request.kind()));
        self.requests = kept;
        let cause = Some(CauseCode::UNRECOGNIZED_PARAMETERS);
        results.extend(unsupported.into_iter().map(|request| (request, cause)));
        AckOutcome::Answered { path: outstanding.t4.path, results }
    }

    fn record(&mut self, done: AsconfRequest) {
        match done {
            AsconfRequest::Add(address) => {
                self.deleted.retain(|deleted| *deleted != address);
                if !self.own.contains(&address) {
                    self.own.push(address);
                }
            }
            AsconfRequest::Delete(address) => {
                self.own.retain(|own| *own != address);
                self.deleted.retain(|deleted| *deleted != address);
                if self.deleted.len() >= MAX_QUEUED {
                    self.deleted.pop_front();
                }
                self.deleted.push_back(address);
            }
            AsconfRequest::SetPrimary(_) => {}
        }
    }

    fn record_unsupported(&mut self, requests: &[(u32, AsconfRequest)], ack: &AsconfAckChunk) {
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
            self.unsupported_kinds
                .extend(kind.filter(|kind| !self.unsupported_kinds.contains(kind)));
        }
    }
}

/// Returns the outcome of each request. Those before the first refused one succeeded, those after
/// it only if the peer reports it (RFC 5061 §5.1, A7 and A8).
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
    let outcome_of = |&(correlation, request): &(u32, AsconfRequest)| {
        let cause = refused.iter().find(|(other, _)| *other == correlation).map(|(_, code)| *code);
        first_refusal = first_refusal.or(cause);
        let succeeded = cause.is_none() && performed.contains(&correlation);
        (request, if succeeded { None } else { cause.or(first_refusal) })
    };
    requests.iter().map(outcome_of).collect()
}
