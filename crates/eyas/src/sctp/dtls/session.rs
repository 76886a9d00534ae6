//! One DTLS session: handshake, verification of the peer, encryption and decryption of packets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::{Config, Dtls, Output, UnexpectedMessageError};
use rustls::client::danger::ServerCertVerifier;
use rustls::{CertificateError, Error as TlsError};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::cookie_exchange::{self, VerifiedClient, Version};
use super::identity::Identity;

/// Bytes of the largest UDP datagram that every path carries (RFC 8200 §5). A handshake does not
/// probe for more, and its first flight is padded to this size. A record with an SCTP packet may be
/// larger.
const MAX_DATAGRAM: usize = 1280 - 40 - 8;
/// Bytes of the largest UDP datagram in an Ethernet frame over IPv4.
const INITIAL_BUFFER: usize = 1500 - 20 - 8;
/// The most that a record can hold (RFC 9147 §4), and so the largest buffer that the library needs.
const MAX_RECORD: usize = 1 << 15;
/// The granularity of initial timeouts.
const RTO_STEP: Duration = Duration::from_millis(25);
/// The longest initial timeout is one second (RFC 9147 §5.8.2).
const MAX_RTO_STEPS: u128 = 40;
/// The configurations created so far, by their initial timeout in steps.
static CONFIGS: Mutex<BTreeMap<u32, Arc<Config>>> = Mutex::new(BTreeMap::new());
/// The content type of an unencrypted alert (RFC 9147 §4).
const ALERT: u8 = 21;

/// Whom a client trusts, and the name that the server must prove.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    /// The same verifier that TLS uses.
    pub(crate) verifier: Arc<dyn ServerCertVerifier>,
    /// The name that the certificate must contain.
    pub(crate) name: ServerName<'static>,
}

/// The result of a call: datagrams for the peer, and packets from it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Datagrams to send, in this order.
    pub(crate) datagrams: Vec<Bytes>,
    /// SCTP packets that were received.
    pub(crate) packets: Vec<Bytes>,
}

/// The state of a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    Handshake { is_connected: bool, is_verified: bool },
    Up,
    Over(EndReason),
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EndReason {
    /// One side sent close_notify, or there never was a session.
    Closed,
    /// The network reported that nothing is listening at the address.
    Refused,
    /// The peer did not respond.
    TimedOut,
    /// The certificate did not verify, or the peer violated the protocol.
    Failed(TlsError),
}

impl EndReason {
    fn of(error: &dimpl::Error) -> Self {
        match error {
            dimpl::Error::Timeout(_) => Self::TimedOut,
            dimpl::Error::ConnectionClosed => Self::Closed,
            error => Self::Failed(TlsError::General(format!("DTLS: {error}"))),
        }
    }
}

#[derive(Debug)]
pub(super) struct Session {
    dtls: Dtls,
    trust: Option<Trust>,
    stage: Stage,
    timeout: Option<Instant>,
    buffer: Vec<u8>,
}

/// Returns the configuration of sessions whose first flight is retransmitted after `initial_rto`,
/// rounded up to the next [`RTO_STEP`]. Configurations are cached, because the library tests all of
/// its cryptography whenever it creates one.
pub(super) fn config(initial_rto: Duration) -> Arc<Config> {
    let steps = initial_rto.as_micros().div_ceil(RTO_STEP.as_micros()).clamp(1, MAX_RTO_STEPS);
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    let mut configs = CONFIGS.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(configs.entry(steps).or_insert_with(|| new_config(RTO_STEP.saturating_mul(steps))))
}

fn new_config(initial_rto: Duration) -> Arc<Config> {
    let config = Config::builder()
        .with_crypto_provider(cookie_exchange::provider())
        .mtu(MAX_DATAGRAM)
        .require_client_certificate(false)
        .flight_start_rto(initial_rto)
        .build();
    Arc::new(config.unwrap_or_default())
}

impl Session {
    /// Opens a session. `handle_timeout` returns the first flight.
    pub(super) fn client(
        config: Arc<Config>,
        identity: &Identity,
        trust: Trust,
        now: Instant,
    ) -> Self {
        let mut dtls = Dtls::new_auto(config, identity.to_dtls(), now);
        dtls.set_active(true);
        Self::new(dtls, Some(trust))
    }

    /// Continues with a client whose cookie was valid: the library is given both of its
    /// ClientHellos. No client certificate is requested.
    pub(super) fn server(
        config: Arc<Config>,
        identity: &Identity,
        now: Instant,
        client: &VerifiedClient,
        second: &[u8],
        out: &mut Outcome,
    ) -> Self {
        let new = match client.version {
            Version::Dtls12 => Dtls::new_12,
            Version::Dtls13 => Dtls::new_13,
        };
        let mut session = Self::new(new(config, identity.to_dtls(), now), None);
        cookie_exchange::with_cookie(client.cookie, || {
            let mut sent = Outcome::default();
            session.handle_datagram(now, &client.first, &mut sent);
            // Both sides sign the response that the client received, so the library's must be the
            // same.
            if sent.datagrams == [&client.response[..]] {
                session.handle_datagram(now, second, out);
            }
        });
        if out.datagrams.is_empty() {
            session.stage = Stage::Over(EndReason::Closed);
        }
        session
    }

    fn new(dtls: Dtls, trust: Option<Trust>) -> Self {
        let stage = Stage::Handshake { is_connected: false, is_verified: trust.is_none() };
        Self { dtls, trust, stage, timeout: None, buffer: vec![0; 2 * INITIAL_BUFFER] }
    }

    pub(super) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Returns when to call `handle_timeout` again.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        if self.is_over() { None } else { self.timeout }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// Handles a report that nothing is listening at the peer's address.
    pub(super) fn refuse(&mut self) {
        if matches!(self.stage, Stage::Handshake { .. }) {
            self.stage = Stage::Over(EndReason::Refused);
        }
    }

    /// Returns `DTLSv1.2` or `DTLSv1.3`, once it is known.
    pub(super) fn version(&self) -> Option<&'static str> {
        match self.dtls.protocol_version()? {
            dimpl::ProtocolVersion::DTLS1_2 => Some("DTLSv1.2"),
            dimpl::ProtocolVersion::DTLS1_3 => Some("DTLSv1.3"),
            _ => None,
        }
    }

    /// Handles a datagram from the peer.
    pub(super) fn handle_datagram(&mut self, now: Instant, datagram: &[u8], out: &mut Outcome) {
        self.step(out, |dtls| {
            dtls.handle_timeout(now)?;
            match dtls.handle_packet(datagram) {
                // The first response decides the version. A record before it was forged or
                // reordered, and is dropped (RFC 9147 §4.5.2); an alert is a response.
                Err(dimpl::Error::UnexpectedMessage(
                    UnexpectedMessageError::UnrecognizedAutoServerResponse,
                )) if datagram.first() != Some(&ALERT) => Ok(()),
                result => result,
            }
        });
    }

    /// Handles the passing of time.
    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut Outcome) {
        self.step(out, |dtls| dtls.handle_timeout(now));
    }

    /// Encrypts a packet, or drops it, as if lost, while the session is not up.
    pub(super) fn send(&mut self, now: Instant, packet: &[u8], out: &mut Outcome) {
        if self.stage == Stage::Up {
            self.step(out, |dtls| {
                dtls.handle_timeout(now)?;
                dtls.send_application_data(packet).map(drop)
            });
        }
    }

    /// Sends close_notify.
    pub(super) fn close(&mut self, out: &mut Outcome) {
        self.step(out, Dtls::close);
        if !self.is_over() {
            self.stage = Stage::Over(EndReason::Closed);
        }
    }

    fn step(
        &mut self,
        out: &mut Outcome,
        action: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>,
    ) {
        if self.is_over() {
            return;
        }
        if let Err(error) = action(&mut self.dtls) {
            self.stage = Stage::Over(EndReason::of(&error));
            return;
        }
        self.drain(out);
    }

    fn drain(&mut self, out: &mut Outcome) {
        loop {
            let mut verified = None;
            match self.dtls.poll_output(&mut self.buffer) {
                Output::Packet(datagram) => out.datagrams.push(Bytes::copy_from_slice(datagram)),
                Output::ApplicationData(packet) if self.stage == Stage::Up => {
                    out.packets.push(Bytes::copy_from_slice(packet));
                }
                Output::PeerCert(certificate) => {
                    verified = self.trust.as_ref().map(|trust| verify(trust, certificate));
                }
                Output::Connected => self.record_progress(true, false),
                Output::CloseNotify => {
                    self.stage = Stage::Over(EndReason::Closed);
                    return;
                }
                Output::BufferTooSmall { needed } if needed <= MAX_RECORD => {
                    self.buffer.resize(needed, 0);
                }
                Output::BufferTooSmall { .. } => {
                    let reason = "DTLS: a record that is larger than the maximum".into();
                    self.stage = Stage::Over(EndReason::Failed(TlsError::General(reason)));
                    return;
                }
                Output::Timeout(time) => {
                    self.timeout = Some(time);
                    return;
                }
                _ => {}
            }
            match verified {
                Some(Ok(())) => self.record_progress(false, true),
                Some(Err(error)) => {
                    self.stage = Stage::Over(EndReason::Failed(error));
                    return;
                }
                None => {}
            }
        }
    }

    /// Records the progress of the handshake: nothing is passed on before the peer is verified.
    fn record_progress(&mut self, connected: bool, verified: bool) {
        let Stage::Handshake { is_connected, is_verified } = &mut self.stage else { return };
        *is_connected |= connected;
        *is_verified |= verified;
        if *is_connected && *is_verified {
            self.stage = Stage::Up;
        } else if *is_connected && self.trust.is_some() {
            // The library reports the certificate before it reports that the handshake is complete.
            self.stage = Stage::Over(EndReason::Failed(TlsError::NoCertificatesPresented));
        }
    }
}

fn verify(trust: &Trust, certificate: &[u8]) -> Result<(), TlsError> {
    if certificate.is_empty() {
        return Err(TlsError::InvalidCertificate(CertificateError::BadEncoding));
    }
    let certificate = CertificateDer::from(certificate);
    trust
        .verifier
        .verify_server_cert(&certificate, &[], &trust.name, &[], UnixTime::now())
        .map(drop)
}
