//! Binds the sockets of a listener.

use eyas_race::candidate::Transport;

use super::ListenParameters;
use crate::Error;
use crate::built_in;
use crate::sockets::{self, BoundAddress, StreamProtocol, WantedSockets};

pub(super) fn bind(parameters: &ListenParameters) -> Result<BoundAddress, Error> {
    let wanted = wanted(parameters)?;
    if wanted == WantedSockets::default() {
        // The sockets of SCTP are opened elsewhere.
        return Ok(BoundAddress { address: parameters.address, tcp: None, udp: None });
    }
    let mut bound = sockets::bind(&[parameters.address], wanted)?;
    bound.pop().ok_or_else(|| Error::Parameters("no address is given".into()))
}

/// Returns those of the sockets that the parameters request.
pub(super) fn selected(
    mut bound: BoundAddress,
    parameters: &ListenParameters,
) -> Result<BoundAddress, Error> {
    let wanted = wanted(parameters)?;
    bound.tcp = bound.tcp.filter(|_| wanted.stream.is_some());
    bound.udp = bound.udp.filter(|_| wanted.udp);
    let requests_sctp = [Transport::Sctp, Transport::SctpUdp]
        .iter()
        .any(|transport| parameters.transports.contains(transport));
    if bound.tcp.is_none() && bound.udp.is_none() && !requests_sctp {
        let why = format!("{} has no socket for any of the transports", bound.address);
        return Err(Error::Parameters(why));
    }
    Ok(bound)
}

/// Returns the sockets that the parameters request, if they are consistent.
fn wanted(parameters: &ListenParameters) -> Result<WantedSockets, Error> {
    let mut wanted = WantedSockets::default();
    for transport in &parameters.transports {
        if let Some(why) = built_in::missing(*transport) {
            return Err(Error::Parameters(why.into()));
        }
        if transport.has_own_security() && parameters.security.is_none() {
            let why = format!("{transport} requires security: give the listener an identity");
            return Err(Error::Parameters(why));
        }
    }
    let requests = |transport| parameters.transports.contains(&transport);
    wanted.stream = match (requests(Transport::Tcp), requests(Transport::Mptcp)) {
        (true, true) => Some(StreamProtocol::MptcpIfPossible),
        (false, true) => Some(StreamProtocol::Mptcp),
        (true, false) => Some(StreamProtocol::Tcp),
        (false, false) => None,
    };
    wanted.udp = requests(Transport::Quic);
    if parameters.transports.is_empty() {
        return Err(Error::Parameters("no transport was requested".into()));
    }
    Ok(wanted)
}
