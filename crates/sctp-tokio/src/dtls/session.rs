//! One DTLS session: handshake, verification of the peer, encryption and decryption of packets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use dimpl::{Config, Dtls, Output, UnexpectedMessageError};
use eyas_host::fault::HostFault;
use eyas_sctp::io::PeerIdentity;
use ring::digest::{SHA256, digest};
use rustls::client::danger::ServerCertVerifier;
use rustls::server::ParsedCertificate;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, Error as TlsError};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::cookie_exchange::{self, VerifiedClient, Version};
use super::identity::DtlsIdentity;

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
/// The configurations created so far, by their initial timeout in steps and who authenticates.
static CONFIGS: Mutex<BTreeMap<(u32, Authentication), Arc<Config>>> = Mutex::new(BTreeMap::new());
/// The content type of an unencrypted alert (RFC 9147 §4).
const ALERT: u8 = 21;

/// Whom a client trusts, and the name that the server must prove.
#[derive(Clone, Debug)]
pub struct DtlsTrust {
    /// The verifier of the server's certificate, as rustls has it. It gets the end-entity certificate
    /// alone.
    pub verifier: Arc<dyn ServerCertVerifier>,
    /// The name that the certificate must contain.
    pub name: ServerName<'static>,
}

/// Which ends show certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Authentication {
    /// The server, in DTLS 1.2 or 1.3.
    OneSided,
    /// Both, in DTLS 1.3.
    Mutual,
}

/// How the certificate of the peer is verified.
#[derive(Clone, Debug)]
enum Check {
    /// There is none: clients are anonymous.
    None,
    Server(DtlsTrust),
    /// The same verifier that TLS uses for clients.
    Client(Arc<dyn ClientCertVerifier>),
}

/// The result of a call: datagrams for the peer, and packets from it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Datagrams to send, in this order.
    pub(crate) datagrams: Vec<BytesMut>,
    /// SCTP packets that were received.
    pub(crate) packets: Vec<BytesMut>,
    /// Who the packets are from, if both ends show certificates.
    pub(crate) peer: Option<PeerIdentity>,
    /// Memory for what follows.
    pub(super) room: BytesMut,
}

impl Outcome {
    /// Returns a copy of `bytes`, which adjoins the one before if there is room.
    fn keep(&mut self, bytes: &[u8]) -> BytesMut {
        self.room.extend_from_slice(bytes);
        self.room.split()
    }
}

/// The state of a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    Handshake { is_connected: bool, is_verified: bool },
    Up,
    Over(DtlsEndReason),
}

/// Why a DTLS session ended.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DtlsEndReason {
    /// One side sent close_notify, or there never was a session.
    #[error("the peer ended the DTLS handshake")]
    Closed,
    /// The network reported that nothing is listening at the address.
    #[error("nothing is listening on the UDP port of SCTP")]
    Refused,
    /// This host did not send the handshake.
    #[error("{}", HostFault::Forbidden)]
    NotSent,
    /// The peer did not respond.
    #[error("the DTLS handshake was not answered")]
    TimedOut,
    /// The certificate did not verify, or the peer violated the protocol.
    #[error("{0}")]
    Failed(TlsError),
}

impl DtlsEndReason {
    fn from_error(error: &dimpl::Error) -> Self {
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
    check: Check,
    authentication: Authentication,
    /// The certificate of the peer, once it is verified.
    certificate: Option<CertificateDer<'static>>,
    /// Who the peer is, if both ends show certificates.
    identity: Option<PeerIdentity>,
    /// Why the certificate of the peer is refused, until that can be reported to the peer.
    refusal: Option<TlsError>,
    stage: Stage,
    timeout: Option<Instant>,
    buffer: Vec<u8>,
}

/// Returns the configuration of sessions whose first flight is retransmitted after `initial_rto`,
/// rounded up to the next [`RTO_STEP`]. Configurations are cached, because the library tests all of
/// its cryptography whenever it creates one.
pub(super) fn config(initial_rto: Duration, authentication: Authentication) -> Arc<Config> {
    let steps = initial_rto.as_micros().div_ceil(RTO_STEP.as_micros()).clamp(1, MAX_RTO_STEPS);
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    let mut configs = CONFIGS.lock().unwrap_or_else(PoisonError::into_inner);
    let create = || new_config(RTO_STEP.saturating_mul(steps), authentication);
    Arc::clone(configs.entry((steps, authentication)).or_insert_with(create))
}

fn new_config(initial_rto: Duration, authentication: Authentication) -> Arc<Config> {
    let is_mutual = authentication == Authentication::Mutual;
    let mut config = Config::builder()
        .with_crypto_provider(cookie_exchange::provider())
        .mtu(MAX_DATAGRAM)
        .require_client_certificate(is_mutual)
        .flight_start_rto(initial_rto);
    if is_mutual {
        // Without these there is no DTLS 1.2.
        config = config.dtls12_cipher_suites(&[]);
    }
    Arc::new(config.build().unwrap_or_default())
}

impl Session {
    /// Opens a session. `handle_timeout` returns the first flight.
    pub(super) fn client(
        config: Arc<Config>,
        identity: &DtlsIdentity,
        trust: DtlsTrust,
        authentication: Authentication,
        now: Instant,
    ) -> Self {
        let mut dtls = match authentication {
            Authentication::OneSided => Dtls::new_auto(config, identity.to_dtls(), now),
            Authentication::Mutual => Dtls::new_13(config, identity.to_dtls(), now),
        };
        dtls.set_active(true);
        Self::new(dtls, Check::Server(trust), authentication)
    }

    /// Continues with a client whose cookie was valid: the library is given both of its
    /// ClientHellos. With a verifier, the client must show a certificate.
    pub(super) fn server(
        config: Arc<Config>,
        identity: &DtlsIdentity,
        verifier: Option<Arc<dyn ClientCertVerifier>>,
        now: Instant,
        client: &VerifiedClient,
        second: &[u8],
        out: &mut Outcome,
    ) -> Self {
        let new = match client.version {
            Version::Dtls12 => Dtls::new_12,
            Version::Dtls13 => Dtls::new_13,
        };
        let (check, authentication) = match verifier {
            None => (Check::None, Authentication::OneSided),
            Some(verifier) => (Check::Client(verifier), Authentication::Mutual),
        };
        let mut session = Self::new(new(config, identity.to_dtls(), now), check, authentication);
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
            session.stage = Stage::Over(DtlsEndReason::Closed);
        }
        session
    }

    fn new(dtls: Dtls, check: Check, authentication: Authentication) -> Self {
        let is_verified = matches!(check, Check::None);
        let stage = Stage::Handshake { is_connected: false, is_verified };
        Self {
            dtls,
            check,
            authentication,
            certificate: None,
            identity: None,
            refusal: None,
            stage,
            timeout: None,
            buffer: vec![0; 2 * INITIAL_BUFFER],
        }
    }

    /// Returns the verified certificate of the peer.
    pub(super) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.certificate.as_ref()
    }

    /// Returns who the peer is, if both ends show certificates.
    pub(super) fn identity(&self) -> Option<PeerIdentity> {
        self.identity
    }

    pub(super) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Returns when to call `handle_timeout` again.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        if self.is_over() { None } else { self.timeout }
    }

    pub(super) fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Handshake { .. })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// Handles a report that nothing is listening at the peer's address.
    pub(super) fn refuse(&mut self, reason: DtlsEndReason) {
        if matches!(self.stage, Stage::Handshake { .. }) {
            self.stage = Stage::Over(reason);
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

    /// Records why the session is over.
    pub(super) fn fail(&mut self, reason: TlsError) {
        self.stage = Stage::Over(DtlsEndReason::Failed(reason));
    }

    /// Sends close_notify.
    pub(super) fn close(&mut self, out: &mut Outcome) {
        self.step(out, Dtls::close);
        if !self.is_over() {
            self.stage = Stage::Over(DtlsEndReason::Closed);
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
            self.stage = Stage::Over(DtlsEndReason::from_error(&error));
            return;
        }
        self.drain(out);
    }

    fn drain(&mut self, out: &mut Outcome) {
        let mut is_refused = false;
        loop {
            let mut verified = None;
            match self.dtls.poll_output(&mut self.buffer) {
                Output::Packet(datagram) => {
                    let datagram = out.keep(datagram);
                    out.datagrams.push(datagram);
                }
                Output::ApplicationData(packet) if self.stage == Stage::Up => {
                    let packet = out.keep(packet);
                    out.packets.push(packet);
                }
                Output::PeerCert(certificate) => {
                    let certificate = CertificateDer::from(certificate);
                    verified = verify(&self.check, &certificate);
                    if verified == Some(Ok(())) && self.authentication == Authentication::Mutual {
                        self.identity = identity_of(&certificate);
                        if self.identity.is_none() {
                            verified = Some(Err(CertificateError::BadEncoding.into()));
                        }
                    }
                    if verified == Some(Ok(())) {
                        self.certificate = Some(certificate.into_owned());
                    }
                }
                Output::Connected if self.refusal.is_some() => {
                    // Only now can the client be told that it is refused.
                    let _ = self.dtls.close();
                    is_refused = true;
                }
                Output::Connected => self.record_progress(true, false),
                Output::CloseNotify => {
                    self.stage = Stage::Over(DtlsEndReason::Closed);
                    return;
                }
                Output::BufferTooSmall { needed } if needed <= MAX_RECORD => {
                    self.buffer.resize(needed, 0);
                }
                Output::BufferTooSmall { .. } => {
                    let reason = "DTLS: a record that is larger than the maximum".into();
                    self.stage = Stage::Over(DtlsEndReason::Failed(TlsError::General(reason)));
                    return;
                }
                Output::Timeout(time) => {
                    self.timeout = Some(time);
                    if is_refused && let Some(reason) = self.refusal.take() {
                        self.stage = Stage::Over(DtlsEndReason::Failed(reason));
                    }
                    return;
                }
                _ => {}
            }
            match verified {
                Some(Ok(())) => self.record_progress(false, true),
                Some(Err(error)) if matches!(self.check, Check::Client(_)) => {
                    self.refusal = Some(error);
                }
                Some(Err(error)) => {
                    self.stage = Stage::Over(DtlsEndReason::Failed(error));
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
        } else if *is_connected {
            // The library reports the certificate before it reports that the handshake is complete.
            self.stage = Stage::Over(DtlsEndReason::Failed(TlsError::NoCertificatesPresented));
        }
    }
}

/// Returns who has this certificate: the SHA-256 hash of its SubjectPublicKeyInfo, of which 128 bits
/// cannot be imitated with another key. It is parsed by the same code that verifies the signatures of
/// the handshake, so that both use the same key.
fn identity_of(certificate: &CertificateDer<'_>) -> Option<PeerIdentity> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let hash = digest(&SHA256, &parsed.subject_public_key_info());
    hash.as_ref().first_chunk().map(|half| PeerIdentity(*half))
}

/// Returns the result of the verification, if certificates are verified at all.
fn verify(check: &Check, certificate: &CertificateDer<'_>) -> Option<Result<(), TlsError>> {
    if certificate.is_empty() {
        return Some(Err(TlsError::InvalidCertificate(CertificateError::BadEncoding)));
    }
    let now = UnixTime::now();
    match check {
        Check::None => None,
        Check::Server(DtlsTrust { verifier, name }) => {
            Some(verifier.verify_server_cert(certificate, &[], name, &[], now).map(drop))
        }
        Check::Client(verifier) => {
            Some(verifier.verify_client_cert(certificate, &[], now).map(drop))
        }
    }
}
