//! One attempt: one address, one transport, one security layer.
//!
//! An attempt is a future; dropping it closes its socket and leaves nothing behind.

use std::time::{Duration, Instant};

use eyas_race::candidate::{Candidate, Security, Transport};
use eyas_race::evidence::{Cause, Failure, Level};
use eyas_race::io::AttemptId;
use eyas_race::target::Host;
use rustls_pki_types::ServerName;
use tokio::sync::mpsc;
#[cfg(feature = "sctp")]
use tokio::sync::oneshot;

use crate::connection_info::{ConnectionInfo, Timings};
use crate::connector::Connector;
use crate::driver_event::DriverEvent;
use crate::failure::failure;
use event::{Established, Event};
use opening::OpeningOfRace;

pub(crate) mod event;
mod first_byte;
pub(crate) mod mptcp;
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
pub(crate) mod tls;

/// What to try, and what the transport needs to know beyond the candidate.
pub(crate) struct Attempt {
    pub(crate) candidate: Candidate,
    pub(crate) server_name: Result<ServerName<'static>, String>,
    pub(crate) initial_rtt: Option<Duration>,
    /// What the times of [`Timings`] count from.
    pub(crate) origin: Instant,
    /// No other attempt races it.
    pub(crate) alone: bool,
    /// It is complete only when the peer's application has said something.
    pub(crate) until_first_byte: bool,
    /// It is complete only when the peer has answered this, if there is to be something to answer.
    pub(crate) opening: Option<OpeningOfRace>,
    /// What it waits for once it was answered, if its transport waits there.
    #[cfg(feature = "sctp")]
    pub(crate) go_on: Option<oneshot::Receiver<()>>,
    /// The UDP port at which the peer awaits SCTP, if that is not the one of the endpoint.
    #[cfg(feature = "sctp")]
    pub(crate) encapsulation_port: Option<u16>,
    /// The configuration of QUIC, if it is not to be one of the endpoint's.
    #[cfg(feature = "quic")]
    pub(crate) quic_config: Option<quinn::ClientConfig>,
}

/// Carries what an attempt tells, in the order of happening.
pub(crate) struct Reporter {
    to: Option<(AttemptId, mpsc::Sender<DriverEvent>)>,
}

impl Reporter {
    /// Returns the value for an attempt that is not observed.
    pub(crate) const fn none() -> Self {
        Self { to: None }
    }

    pub(crate) const fn new(id: AttemptId, to: mpsc::Sender<DriverEvent>) -> Self {
        Self { to: Some((id, to)) }
    }

    pub(crate) async fn report(&self, event: Event) {
        if let Some((id, sender)) = &self.to {
            // A driver that is gone has dropped the attempt too, or is about to.
            let _ = sender.send(DriverEvent::Attempt(*id, event)).await;
        }
    }

    async fn progress(&self, level: Level, rtt: Option<Duration>) {
        self.report(Event::Progress { level, rtt }).await;
    }
}

/// Returns the name that the peer's certificate must be valid for.
pub(crate) fn server_name(host: &Host) -> Result<ServerName<'static>, String> {
    match host {
        Host::Name(name) => ServerName::try_from(name.clone())
            .map_err(|_| format!("`{name}` is not a name that a certificate can be verified for")),
        Host::Literal(ip, _) => Ok(ServerName::IpAddress((*ip).into())),
    }
}

impl Attempt {
    /// Connects.
    pub(crate) async fn run(
        self,
        connector: &Connector,
        reporter: &Reporter,
    ) -> Result<Established, Failure> {
        let (until_first_byte, origin) = (self.until_first_byte, self.origin);
        let name = self.server_name.clone();
        let mut attempt = self;
        let opening = attempt.opening.take();
        let mut established = attempt
            .establish(connector, reporter)
            .await
            .map_err(|failure| connector.refusals().explain(failure, &name))?;
        if let Some(opening) = opening {
            opening.hold(&mut established, origin, reporter).await?;
        } else if until_first_byte {
            reporter.progress(Level::Security, established.info.rtt).await;
            first_byte::wait(&mut established).await?;
            reporter.progress(Level::FirstByte, established.info.rtt).await;
        }
        Ok(established)
    }

    async fn establish(
        self,
        connector: &Connector,
        reporter: &Reporter,
    ) -> Result<Established, Failure> {
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
                Cause::Unsupported,
                Level::Started,
                format!("this build does not support {transport} with security {security}"),
            )),
        }
    }

    /// Returns what is known before the first packet.
    fn info(&self) -> ConnectionInfo {
        let reasons = match self.candidate.ech {
            Some(_) => vec![tls::ECH_LEFT_OUT.to_owned()],
            None => Vec::new(),
        };
        let Candidate { transport, address, .. } = self.candidate;
        let timings = Timings { started: self.origin.elapsed(), ..Timings::default() };
        ConnectionInfo { timings, reasons, ..ConnectionInfo::begun(transport, address) }
    }
}
