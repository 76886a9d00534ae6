//! DTLS clients: ours, and one that supports only DTLS 1.2.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use bytes::BytesMut;
use dimpl::{Config, Dtls, DtlsCertificate, Output};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};

use crate::SERVER;
use crate::dtls::{
    DtlsEndReason, DtlsIdentity, DtlsTrust, Outcome, Role, SessionPath, Sessions, State,
};

/// The server's identity, created once: creating a key takes longer than a run.
static SERVER_IDENTITY: LazyLock<ServerIdentity> =
    LazyLock::new(|| ServerIdentity::generate("peer.test").expect("an identity"));

/// A certificate and its key.
struct ServerIdentity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl ServerIdentity {
    fn generate(name: &str) -> Result<Self, rcgen::Error> {
        let key = rcgen::KeyPair::generate()?;
        let params = rcgen::CertificateParams::new(vec![name.to_owned()])?;
        let certificate = params.self_signed(&key)?.der().clone();
        Ok(Self { certificate, key: PrivatePkcs8KeyDer::from(key.serialize_der()).into() })
    }
}

/// The clients' identity, which is never requested.
static CLIENT_IDENTITY: LazyLock<DtlsIdentity> =
    LazyLock::new(|| DtlsIdentity::anonymous().expect("an identity"));

/// Returns the identity of the server.
pub fn identity() -> DtlsIdentity {
    DtlsIdentity::new(&SERVER_IDENTITY.certificate, &SERVER_IDENTITY.key).expect("an ECDSA key")
}

/// Accepts the certificate of the server, or none.
#[derive(Debug)]
struct Verifier {
    accepts: bool,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.accepts && *certificate == SERVER_IDENTITY.certificate {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(CertificateError::BadSignature.into())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(CertificateError::BadSignature.into())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        Vec::new()
    }
}

/// The settings of the DTLS 1.2 client.
static SETTINGS: LazyLock<Arc<Config>> = LazyLock::new(Arc::default);

thread_local! {
    /// Sessions of previous clients: creating the settings takes longer than a handshake.
    static SPARE: RefCell<Vec<Sessions>> = const { RefCell::new(Vec::new()) };
}

/// A client of the server.
pub enum Client {
    Ours(Box<Ours>),
    Old(Box<Old>),
}

/// Our client, which accepts the certificate of the server or none.
pub struct Ours {
    sessions: Option<Sessions>,
    accepts: bool,
}

impl Ours {
    pub fn sessions(&mut self) -> &mut Sessions {
        self.sessions.as_mut().expect("present until it is dropped")
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let Some(mut sessions) = self.sessions.take() else { return };
        sessions.close_all();
        SPARE.with_borrow_mut(|spare| spare.push(sessions));
    }
}

/// A client that supports only DTLS 1.2, and accepts any certificate.
pub struct Old {
    dtls: Dtls,
    state: State,
    timeout: Option<Instant>,
    buffer: Vec<u8>,
}

impl Client {
    /// Opens a session; returns it and its first flight.
    pub fn open(now: Instant, is_old: bool, accepts: bool) -> (Self, Outcome) {
        if is_old {
            let certificate = DtlsCertificate {
                certificate: SERVER_IDENTITY.certificate.to_vec(),
                private_key: SERVER_IDENTITY.key.secret_der().to_vec(),
            };
            let mut dtls = Dtls::new_12(Arc::clone(&SETTINGS), certificate, now);
            dtls.set_active(true);
            let buffer = vec![0; 1 << 15];
            let mut old = Old { dtls, state: State::Handshake, timeout: None, buffer };
            let first = old.act(|dtls| dtls.handle_timeout(now));
            return (Self::Old(Box::new(old)), first);
        }
        let spare = SPARE.with_borrow_mut(Vec::pop);
        let mut sessions = spare.unwrap_or_else(|| Sessions::new(Role::Client));
        let name = ServerName::try_from("peer.test").expect("a name");
        let trust = DtlsTrust { verifier: Arc::new(Verifier { accepts }), name };
        let first = sessions.open(now, SERVER, &CLIENT_IDENTITY, trust, None);
        (Self::Ours(Box::new(Ours { sessions: Some(sessions), accepts })), first)
    }

    /// Returns the state of its session.
    pub fn state(&mut self) -> State {
        match self {
            Self::Ours(ours) => {
                let state = ours.sessions().state(SERVER);
                assert!(
                    ours.accepts || !matches!(state, State::Up(_)),
                    "established without verification"
                );
                state
            }
            Self::Old(old) => old.state.clone(),
        }
    }

    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Outcome {
        match self {
            Self::Ours(ours) => ours.sessions().handle_datagram(now, SERVER, datagram, || false),
            Self::Old(old) => old.act(|dtls| {
                dtls.handle_timeout(now)?;
                dtls.handle_packet(datagram)
            }),
        }
    }

    pub fn send(&mut self, now: Instant, packet: &[u8]) -> Outcome {
        match self {
            Self::Ours(ours) => {
                let path = SessionPath::from(SERVER);
                ours.sessions().send_to(now, path, None, [packet].into_iter()).1
            }
            Self::Old(old) if matches!(old.state, State::Up(_)) => {
                old.act(|dtls| dtls.send_application_data(packet).map(drop))
            }
            Self::Old(_) => Outcome::default(),
        }
    }

    pub fn close(&mut self) -> Outcome {
        match self {
            Self::Ours(ours) => ours.sessions().close(SERVER),
            Self::Old(old) => {
                let out = old.act(Dtls::close);
                old.end();
                out
            }
        }
    }

    /// Returns the next timeout.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        match self {
            Self::Ours(ours) => ours.sessions().next_timeout(),
            Self::Old(old) => old.timeout,
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) -> Vec<Outcome> {
        match self {
            Self::Ours(ours) => {
                let sessions = ours.sessions();
                let all = sessions.handle_timeout(now);
                assert!(
                    sessions.next_timeout().is_none_or(|at| at > now),
                    "a client makes no progress"
                );
                all.into_iter().map(|(_, out)| out).collect()
            }
            Self::Old(old) => vec![old.act(|dtls| dtls.handle_timeout(now))],
        }
    }
}

impl Old {
    fn act(&mut self, act: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>) -> Outcome {
        let mut out = Outcome::default();
        if matches!(self.state, State::Over(_)) {
            return out;
        }
        if act(&mut self.dtls).is_err() {
            self.end();
            return out;
        }
        loop {
            match self.dtls.poll_output(&mut self.buffer) {
                Output::Packet(datagram) => out.datagrams.push(BytesMut::from(datagram)),
                Output::ApplicationData(packet) => {
                    out.packets.push(BytesMut::from(packet));
                }
                Output::Connected => self.state = State::Up("DTLSv1.2"),
                Output::CloseNotify => break self.end(),
                Output::Timeout(at) => break self.timeout = Some(at),
                Output::BufferTooSmall { needed } => self.buffer.resize(needed, 0),
                _ => {}
            }
        }
        out
    }

    fn end(&mut self) {
        self.state = State::Over(DtlsEndReason::Closed);
        self.timeout = None;
    }
}
