//! One attempt: one address, one transport, one security layer.
//!
//! An attempt is a future; dropping it closes its socket and leaves nothing behind.
//!
//! Which attempt an ICMP error ends ([`eyas_host::icmp`]) depends on what it can prove:
//!
//! | transport | reports |
//! | --- | --- |
//! | TCP | until it is connected (`attempt/tcp_connect.rs`): they are no reason to end a connection |
//! | MPTCP | by the kernel, which allows nobody to ask (the same file) |
//! | QUIC | to attempts towards the address that the report names, while nobody there has answered: anyone can forge one (`quic_sockets/unanswered.rs`) |
//! | SCTP | to the association whose verification tag the report quotes (RFC 9260 §10) |

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use eyas_race::candidate::{Candidate, Security, Transport};
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use eyas_race::io::AttemptId;
use eyas_race::target::TargetHost;
#[cfg(feature = "sctp")]
use eyas_sctp_tokio::SctpPeer;
use rustls_pki_types::ServerName;
use tokio::sync::mpsc;
#[cfg(feature = "sctp")]
use tokio::sync::oneshot;

use crate::connection_info::{ConnectionInfo, ConnectionTimings};
use crate::connector::EndpointConnector;
use crate::driver_event::DriverEvent;
use crate::ech::EchAttempt;
use crate::failure::failure;
use crate::security::CertificateRejection;
use event::{AttemptEvent, EstablishedTransport};
use opening::RaceOpening;

pub(crate) mod client_hello;
pub(crate) mod event;
mod first_byte;
mod handshakes;
pub(crate) mod opening;
#[cfg(feature = "quic")]
pub(crate) mod quic;
#[cfg(feature = "quic")]
pub(crate) mod quic_failure;
#[cfg(feature = "sctp")]
pub(crate) mod sctp;
#[cfg(feature = "sctp")]
mod sctp_dtls;
pub(crate) mod tcp;
mod tcp_connect;
mod tcp_hello;
pub(crate) mod tls;

/// The candidate to try, and what the transport needs beyond it.
pub(crate) struct CandidateAttempt {
    pub(crate) candidate: Candidate,
    /// How its ClientHello is encrypted.
    pub(crate) ech: EchAttempt,
    /// Whether its name may be in the clear, whatever the endpoint's ECH policy.
    pub(crate) without_ech: bool,
    /// Whether its ClientHello takes one packet, because one of two is known not to get through.
    pub(crate) short_hello: AtomicBool,
    pub(crate) server_name: Result<ServerName<'static>, UnverifiableName>,
    pub(crate) initial_rtt: Option<Duration>,
    /// The origin of the times in [`ConnectionTimings`].
    pub(crate) origin: Instant,
    /// Whether no other attempt races this one.
    pub(crate) is_unraced: bool,
    /// Whether the attempt is complete only when the peer's application has sent something.
    pub(crate) until_first_byte: bool,
    /// If set, the attempt is complete only when the peer has responded to this opening.
    pub(crate) opening: Option<RaceOpening>,
    /// The signal that it waits for once it has been answered, if its transport pauses there.
    #[cfg(feature = "sctp")]
    pub(crate) proceed: Option<oneshot::Receiver<()>>,
    /// The UDP port at which the peer expects SCTP, if that is not the one of the endpoint.
    #[cfg(feature = "sctp")]
    pub(crate) encapsulation_port: Option<u16>,
    /// The QUIC configuration, if it replaces the endpoint's.
    #[cfg(feature = "quic")]
    pub(crate) quic_config: Option<quinn::ClientConfig>,
    /// Whether the caller keeps QUIC connections alive.
    #[cfg(feature = "quic")]
    pub(crate) without_keep_alive: bool,
}

/// Sends the events of an attempt to its driver, in order.
pub(crate) struct AttemptReporter {
    to: Option<(AttemptId, mpsc::Sender<DriverEvent>)>,
}

impl AttemptReporter {
    /// Returns a reporter for an attempt that is not observed.
    pub(crate) const fn none() -> Self {
        Self { to: None }
    }

    pub(crate) const fn new(id: AttemptId, to: mpsc::Sender<DriverEvent>) -> Self {
        Self { to: Some((id, to)) }
    }

    pub(crate) async fn report(&self, event: AttemptEvent) {
        if let Some((id, sender)) = &self.to {
            // A driver that has ended has also dropped the attempt, or is about to.
            let _ = sender.send(DriverEvent::Attempt(*id, event)).await;
        }
    }

    async fn progress(&self, level: EvidenceLevel, rtt: Option<Duration>) {
        self.report(AttemptEvent::Progress { level, rtt }).await;
    }
}

/// The error of a host whose certificate could not be verified, because no certificate has such a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name that a certificate can be verified for")]
pub(crate) struct UnverifiableName(String);

/// Returns the name that the peer's certificate must be valid for.
pub(crate) fn server_name(host: &TargetHost) -> Result<ServerName<'static>, UnverifiableName> {
    match host {
        TargetHost::Name(name) => {
            ServerName::try_from(name.clone()).map_err(|_| UnverifiableName(name.clone()))
        }
        TargetHost::Literal(ip, _) => Ok(ServerName::IpAddress((*ip).into())),
    }
}

impl CandidateAttempt {
    /// Connects.
    pub(crate) async fn run(
        self,
        connector: &EndpointConnector,
        reporter: &AttemptReporter,
    ) -> Result<EstablishedTransport, AttemptFailure> {
        let (until_first_byte, origin) = (self.until_first_byte, self.origin);
        let mut attempt = self;
        let opening = attempt.opening.take();
        let mut established = attempt.establish_with_ech(connector, reporter).await?;
        if let Some(opening) = opening {
            opening.exchange(&mut established, origin, reporter).await?;
        } else if until_first_byte {
            reporter.progress(EvidenceLevel::Security, established.info.rtt).await;
            first_byte::wait(&mut established).await?;
            reporter.progress(EvidenceLevel::FirstByte, established.info.rtt).await;
        }
        if established.has_fallen_back() {
            reporter.report(AttemptEvent::FellBack).await;
        }
        Ok(established)
    }

    /// Connects, and once more if the server asks for another way to encrypt the ClientHello, or for none.
    async fn establish_with_ech(
        mut self,
        connector: &EndpointConnector,
        reporter: &AttemptReporter,
    ) -> Result<EstablishedTransport, AttemptFailure> {
        self.ech = self.first_ech(connector)?;
        loop {
            match self.establish(connector, reporter).await {
                Ok(mut established) => {
                    established.info.ech = self.ech.outcome();
                    let notes = self.ech.note().into_iter().chain(self.hello_note());
                    established.info.reasons.extend(notes.map(str::to_owned));
                    return Ok(established);
                }
                Err(failure) if !self.ech.advance()? => return Err(failure),
                Err(failure) => tracing::debug!(%failure, "trying again with another ECH offer"),
            }
        }
    }

    /// Returns how the first ClientHello is encrypted.
    pub(crate) fn first_ech(
        &self,
        connector: &EndpointConnector,
    ) -> Result<EchAttempt, AttemptFailure> {
        #[cfg(feature = "quic")]
        if self.quic_config.is_some() {
            // The caller's own TLS.
            return Ok(EchAttempt::default());
        }
        if self.without_ech {
            return Ok(EchAttempt::default());
        }
        let has_tls13_alone =
            self.candidate.transport.has_own_security() || connector.has_tls13_alone();
        let Candidate { security, ech, .. } = &self.candidate;
        EchAttempt::begin(*security, ech.as_deref(), connector.ech(), has_tls13_alone)
    }

    /// Returns the failure of a handshake over a stream.
    fn failed_handshake(
        &self,
        error: &io::Error,
        reached: EvidenceLevel,
        rejection: Option<CertificateRejection>,
    ) -> AttemptFailure {
        let own = self.server_name.as_ref().ok();
        tls::handshake_failure(error, reached, &self.ech, own, rejection)
    }

    async fn establish(
        &mut self,
        connector: &EndpointConnector,
        reporter: &AttemptReporter,
    ) -> Result<EstablishedTransport, AttemptFailure> {
        tracing::trace!(candidate = %self.candidate, initial_rtt = ?self.initial_rtt, "attempt");
        match (self.candidate.transport, self.candidate.security) {
            (Transport::Tcp | Transport::Mptcp, Security::None | Security::Tls) => {
                tcp::run(self, connector, reporter).await
            }
            #[cfg(feature = "quic")]
            (Transport::Quic, Security::Tls) => quic::run(self, connector, reporter).await,
            #[cfg(feature = "sctp")]
            (Transport::Sctp | Transport::SctpUdp, Security::None | Security::Tls) => {
                sctp::run(self, connector, reporter).await
            }
            #[cfg(feature = "sctp")]
            (Transport::SctpUdp, Security::Dtls) => sctp_dtls::run(self, connector, reporter).await,
            (transport, security) => Err(failure(
                FailureCause::Unsupported,
                EvidenceLevel::Started,
                format!("this build does not support {transport} with security {security}"),
            )),
        }
    }

    /// Returns the peer as SCTP knows it.
    #[cfg(feature = "sctp")]
    fn sctp_peer(&self) -> SctpPeer {
        let (address, rtt) = (self.candidate.address, self.initial_rtt);
        SctpPeer { address, encapsulation_port: self.encapsulation_port, rtt }
    }

    /// Returns what is known about the connection before the first packet.
    fn info(&self) -> ConnectionInfo {
        let Candidate { transport, address, .. } = self.candidate;
        let timings =
            ConnectionTimings { started: self.origin.elapsed(), ..ConnectionTimings::default() };
        ConnectionInfo { timings, ..ConnectionInfo::new(transport, address) }
    }
}
