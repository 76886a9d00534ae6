//! One DTLS session: handshake, verification of the peer, packets in and out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::{Config, Dtls, Output, UnexpectedMessageError};
use rustls::client::danger::ServerCertVerifier;
use rustls::{CertificateError, Error as TlsError};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::doorkeeper::{self, Guest, Version};
use super::identity::Identity;

/// Bytes of the largest UDP datagram that every path carries (RFC 8200 §5). A handshake does not look
/// for more, and its first flight is padded to this; what holds an SCTP packet is as large as it must be.
const DATAGRAM: usize = 1280 - 40 - 8;
/// Of the largest UDP datagram in an Ethernet frame over IPv4.
const ROOM: usize = 1500 - 20 - 8;
/// The most that a record can hold (RFC 9147 §4), and so all that the library can ask room for.
const MAX_RECORD: usize = 1 << 15;
/// First timeouts differ by this.
const RTO_STEP: Duration = Duration::from_millis(25);
/// The longest is one second (RFC 9147 §5.8.2).
const MAX_RTO_STEPS: u128 = 40;
/// The settings made so far, by their timeout in steps.
static MADE: Mutex<BTreeMap<u32, Arc<Config>>> = Mutex::new(BTreeMap::new());
/// The content type of an alert in clear (RFC 9147 §4).
const ALERT: u8 = 21;

/// Whom a client trusts, and as whom the server must show itself.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    /// The very verifier that TLS uses.
    pub(crate) verifier: Arc<dyn ServerCertVerifier>,
    /// The name in the certificate.
    pub(crate) name: ServerName<'static>,
}

/// What came of a call: datagrams for the peer, packets from it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// To be sent, in this order.
    pub(crate) datagrams: Vec<Bytes>,
    /// SCTP packets that came in.
    pub(crate) packets: Vec<Bytes>,
}

/// Where a session stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    Handshake { is_connected: bool, is_verified: bool },
    Up,
    Over(Ending),
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    /// One side said goodbye, or there never was a session.
    Closed,
    /// The network said that nobody listens there.
    Refused,
    /// The peer did not answer.
    Silent,
    /// The certificate did not verify, or the peer broke the protocol.
    Broken(TlsError),
}

impl Ending {
    fn of(error: &dimpl::Error) -> Self {
        match error {
            dimpl::Error::Timeout(_) => Self::Silent,
            dimpl::Error::ConnectionClosed => Self::Closed,
            error => Self::Broken(TlsError::General(format!("DTLS: {error}"))),
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

/// Settings of sessions whose first flight is sent again after `initial_rto`, rounded up to the next
/// [`RTO_STEP`]. Each is made once: the library tries out all of its cryptography before it gives one.
pub(super) fn config(initial_rto: Duration) -> Arc<Config> {
    let steps = initial_rto.as_micros().div_ceil(RTO_STEP.as_micros()).clamp(1, MAX_RTO_STEPS);
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(made.entry(steps).or_insert_with(|| new_config(RTO_STEP.saturating_mul(steps))))
}

fn new_config(initial_rto: Duration) -> Arc<Config> {
    let config = Config::builder()
        .with_crypto_provider(doorkeeper::provider())
        .mtu(DATAGRAM)
        .require_client_certificate(false)
        .flight_start_rto(initial_rto)
        .build();
    Arc::new(config.unwrap_or_default())
}

impl Session {
    /// Opens a session. The first flight is what `handle_timeout` gives.
    pub(super) fn client(config: Arc<Config>, own: &Identity, trust: Trust, now: Instant) -> Self {
        let mut dtls = Dtls::new_auto(config, own.shown(), now);
        dtls.set_active(true);
        Self::new(dtls, Some(trust))
    }

    /// Goes on with a client whose cookie was right: the library is shown both its ClientHellos.
    /// Clients are not asked who they are.
    pub(super) fn server(
        config: Arc<Config>,
        own: &Identity,
        now: Instant,
        guest: &Guest,
        second: &[u8],
        out: &mut Outcome,
    ) -> Self {
        let new = match guest.version {
            Version::Dtls12 => Dtls::new_12,
            Version::Dtls13 => Dtls::new_13,
        };
        let mut session = Self::new(new(config, own.shown(), now), None);
        doorkeeper::dictate(guest.cookie, || {
            let mut sent = Outcome::default();
            session.handle_datagram(now, &guest.first, &mut sent);
            // What the client was answered is part of what both sign: it must be this.
            if sent.datagrams == [&guest.answer[..]] {
                session.handle_datagram(now, second, out);
            }
        });
        if out.datagrams.is_empty() {
            session.stage = Stage::Over(Ending::Closed);
        }
        session
    }

    fn new(dtls: Dtls, trust: Option<Trust>) -> Self {
        let stage = Stage::Handshake { is_connected: false, is_verified: trust.is_none() };
        Self { dtls, trust, stage, timeout: None, buffer: vec![0; 2 * ROOM] }
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
            self.stage = Stage::Over(Ending::Refused);
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

    /// Takes in a datagram of the peer.
    pub(super) fn handle_datagram(&mut self, now: Instant, datagram: &[u8], out: &mut Outcome) {
        self.step(out, |dtls| {
            dtls.handle_timeout(now)?;
            match dtls.handle_packet(datagram) {
                // The first answer tells the version. What comes before it was forged, or overtook
                // it, and is as good as lost (RFC 9147 §4.5.2); an alert is an answer.
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

    /// Protects a packet; dropped, as if lost, while the session is not up.
    pub(super) fn send(&mut self, now: Instant, packet: &[u8], out: &mut Outcome) {
        if self.stage == Stage::Up {
            self.step(out, |dtls| {
                dtls.handle_timeout(now)?;
                dtls.send_application_data(packet).map(drop)
            });
        }
    }

    /// Says goodbye.
    pub(super) fn close(&mut self, out: &mut Outcome) {
        self.step(out, Dtls::close);
        if !self.is_over() {
            self.stage = Stage::Over(Ending::Closed);
        }
    }

    fn step(&mut self, out: &mut Outcome, act: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>) {
        if self.is_over() {
            return;
        }
        if let Err(error) = act(&mut self.dtls) {
            self.stage = Stage::Over(Ending::of(&error));
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
                Output::Connected => self.note(true, false),
                Output::CloseNotify => {
                    self.stage = Stage::Over(Ending::Closed);
                    return;
                }
                Output::BufferTooSmall { needed } if needed <= MAX_RECORD => {
                    self.buffer.resize(needed, 0);
                }
                Output::BufferTooSmall { .. } => {
                    let what = "DTLS: a record larger than any can be".into();
                    self.stage = Stage::Over(Ending::Broken(TlsError::General(what)));
                    return;
                }
                Output::Timeout(time) => {
                    self.timeout = Some(time);
                    return;
                }
                _ => {}
            }
            match verified {
                Some(Ok(())) => self.note(false, true),
                Some(Err(error)) => {
                    self.stage = Stage::Over(Ending::Broken(error));
                    return;
                }
                None => {}
            }
        }
    }

    /// Records the progress of the handshake: nothing is passed on before the peer is verified.
    fn note(&mut self, connected: bool, verified: bool) {
        let Stage::Handshake { is_connected, is_verified } = &mut self.stage else { return };
        *is_connected |= connected;
        *is_verified |= verified;
        if *is_connected && *is_verified {
            self.stage = Stage::Up;
        } else if *is_connected && self.trust.is_some() {
            // The library names the certificate before it calls the handshake complete.
            self.stage = Stage::Over(Ending::Broken(TlsError::NoCertificatesPresented));
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
