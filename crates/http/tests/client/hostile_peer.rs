//! An HTTP/3 server over real QUIC that sends arbitrary bytes.

use std::{
    future::Future,
    net::Ipv4Addr,
    sync::{
        Arc, Once,
        atomic::{AtomicUsize, Ordering},
    },
};

use eyas::ServerIdentity;
use eyas_http::{ClientBuilder, Versions};
use tokio::task::JoinSet;

use crate::site::{NAME, builder_for, identity};

/// A frame's type (RFC 9114 §7.2).
pub(crate) const DATA: u64 = 0x00;
pub(crate) const HEADERS: u64 = 0x01;
pub(crate) const SETTINGS: u64 = 0x04;
pub(crate) const GOAWAY: u64 = 0x07;
/// A reserved frame type (RFC 9114 §7.2.8).
pub(crate) const UNKNOWN: u64 = 0x21;

/// A hostile peer; dropping it stops it.
pub(crate) struct Peer {
    pub(crate) port: u16,
    pub(crate) identity: ServerIdentity,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Peer {
    /// Starts a peer that handles each connection with `act`.
    pub(crate) fn start<F>(act: impl Fn(quinn::Connection) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let identity = identity(&[NAME]);
        let config = server_config(&identity, 0);
        Self::start_with(identity, config, act)
    }

    /// Starts a peer that accepts 0-RTT data.
    pub(crate) fn start_early<F>(act: impl Fn(quinn::Connection) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let identity = identity(&[NAME]);
        let config = server_config(&identity, u32::MAX);
        Self::start_with(identity, config, act)
    }

    fn start_with<F>(
        identity: ServerIdentity,
        config: quinn::ServerConfig,
        act: impl Fn(quinn::Connection) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let endpoint = quinn::Endpoint::server(config, address);
        let endpoint = endpoint.expect("a free port");
        let port = endpoint.local_addr().expect("an address").port();
        let connections = Arc::<AtomicUsize>::default();
        let (counter, mut tasks) = (Arc::clone(&connections), JoinSet::new());
        tasks.spawn(async move {
            let mut acting = JoinSet::new();
            while let Some(incoming) = endpoint.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let Ok(connecting) = incoming.accept() else { continue };
                match connecting.into_0rtt() {
                    Ok((quic, _)) => drop(acting.spawn(act(quic))),
                    Err(connecting) => {
                        if let Ok(quic) = connecting.await {
                            acting.spawn(act(quic));
                        }
                    }
                }
            }
        });
        Self { port, identity, connections, _tasks: tasks }
    }

    /// Starts a peer that answers every request with these bytes, and then behaves as `end`
    /// specifies.
    pub(crate) fn answering(control: Vec<u8>, answer: Vec<u8>, end: End) -> Self {
        Self::start(move |quic| {
            let (control, answer, end) = (control.clone(), answer.clone(), end.clone());
            async move {
                let _control = open_control(&quic, &control).await;
                let mut answering = JoinSet::new();
                while let Ok((mut send, mut recv)) = quic.accept_bi().await {
                    let (answer, end) = (answer.clone(), end.clone());
                    answering.spawn(async move {
                        let _ = recv.read(&mut [0; 2048]).await;
                        let _ = send.write_all(&answer).await;
                        end.act(send, recv).await;
                    });
                }
            }
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{NAME}:{}/", self.port)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Returns a client that uses only HTTP/3 and trusts this peer.
    pub(crate) fn client(&self) -> ClientBuilder {
        builder_for(&[self.port], &[&self.identity]).versions(Versions::HTTP_3)
    }
}

/// The behaviour after an answer.
#[derive(Clone)]
pub(crate) enum End {
    Finish,
    KeepOpen,
    Reset,
    StopAndReset,
    Repeat(Vec<u8>),
}

impl End {
    async fn act(self, mut send: quinn::SendStream, mut recv: quinn::RecvStream) {
        let code = quinn::VarInt::from_u32(0x102);
        match self {
            Self::Finish => {
                let _ = send.finish();
                let _ = send.stopped().await;
            }
            Self::KeepOpen => drop(send.stopped().await),
            Self::Reset => drop(send.reset(code)),
            Self::StopAndReset => {
                let _ = recv.stop(code);
                let _ = send.reset(code);
            }
            Self::Repeat(bytes) => while send.write_all(&bytes).await.is_ok() {},
        }
    }
}

fn server_config(identity: &ServerIdentity, early_data: u32) -> quinn::ServerConfig {
    let mut tls = identity.server_config().expect("a configuration");
    tls.max_early_data_size = early_data;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let tls = quinn::crypto::rustls::QuicServerConfig::try_from(tls).expect("a cipher suite");
    quinn::ServerConfig::with_crypto(Arc::new(tls))
}

/// Opens the control stream with these frames.
pub(crate) async fn open_control(quic: &quinn::Connection, frames: &[u8]) -> quinn::SendStream {
    let mut control = quic.open_uni().await.expect("a stream");
    let _ = control.write_all(&[&[0x00], frames].concat()).await;
    control
}

/// Encodes a variable-length integer of eight bytes (RFC 9000 §16).
fn varint(value: u64) -> [u8; 8] {
    (value | 0b11 << 62).to_be_bytes()
}

/// Returns the head of a frame that announces `length` bytes.
pub(crate) fn announce(kind: u64, length: u64) -> Vec<u8> {
    [varint(kind), varint(length)].concat()
}

pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [announce(kind, payload.len() as u64), payload.to_vec()].concat()
}

pub(crate) fn settings() -> Vec<u8> {
    frame(SETTINGS, &[])
}

/// Returns HEADERS of a 200 response, with QPACK's static table (RFC 9204 appendix A).
pub(crate) fn ok() -> Vec<u8> {
    frame(HEADERS, &[0, 0, 0xc0 | 25])
}

/// Returns HEADERS of 103 Early Hints.
pub(crate) fn early_hints() -> Vec<u8> {
    frame(HEADERS, &[0, 0, 0xc0 | 24])
}

/// Returns HEADERS of a response that announces a body of this many bytes, below ten.
pub(crate) fn ok_of_length(length: u8) -> Vec<u8> {
    frame(HEADERS, &[0, 0, 0xc0 | 25, 0x50 | 4, 1, b'0' + length])
}

/// Returns the trailers `age: 0`.
pub(crate) fn trailers() -> Vec<u8> {
    frame(HEADERS, &[0, 0, 0xc0 | 2])
}

/// Returns the number of panics so far outside the tests themselves, because a panic in a task does
/// not fail a test.
pub(crate) fn panics() -> usize {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.location().is_some_and(|location| location.file().contains("tests/")) {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            report(panic);
        }));
    });
    PANICS.load(Ordering::SeqCst)
}
