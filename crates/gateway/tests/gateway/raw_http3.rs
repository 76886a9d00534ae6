//! An upstream over HTTP/3 whose every frame the test decides.

use std::net::Ipv4Addr;
use std::sync::Arc;

use eyas::{SecurityParameters, ServerIdentity};
use eyas_gateway::{Gateway, GatewayBuilder};
use eyas_http::serve::Server;
use quinn::VarInt;
use quinn::crypto::rustls::QuicServerConfig;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::stage::{Stage, TIMEOUT};

/// SETTINGS on the control stream (RFC 9114 §6.2.1, §7.2.4): a request's head has at most 2,000 bytes (§7.2.4.1), and may
/// be an extended CONNECT (RFC 9220 §3).
const CONTROL: [u8; 8] = [0x00, 0x04, 5, 0x06, 0x47, 0xd0, 0x08, 1];

/// Codes of RFC 9114 §8.1.
pub(crate) const NO_ERROR: u32 = 0x100;
pub(crate) const INTERNAL_ERROR: u32 = 0x102;
pub(crate) const REQUEST_REJECTED: u32 = 0x10b;
pub(crate) const REQUEST_CANCELLED: u32 = 0x10c;

/// The upstream's side of a request.
pub(crate) struct RawStream {
    pub(crate) send: quinn::SendStream,
    pub(crate) recv: quinn::RecvStream,
    pub(crate) quic: quinn::Connection,
    control: Arc<Mutex<quinn::SendStream>>,
}

/// A gateway in the clear before an upstream that the test plays.
pub(crate) struct RawStage {
    pub(crate) stage: Stage,
    requests: UnboundedReceiver<RawStream>,
    _endpoint: quinn::Endpoint,
}

impl RawStage {
    /// Starts an upstream that allows so many streams at a time.
    pub(crate) async fn new(
        streams: u32,
        set: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
    ) -> Self {
        let identity = ServerIdentity::self_signed(["localhost"]).expect("an identity");
        let mut tls = identity.server_config().expect("a configuration");
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = QuicServerConfig::try_from(tls).expect("a cipher suite");
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
        let mut transport = quinn::TransportConfig::default();
        transport.max_concurrent_bidi_streams(streams.into());
        config.transport_config(Arc::new(transport));
        let endpoint = quinn::Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into());
        let endpoint = endpoint.expect("a port");
        let (accepted, requests) = unbounded_channel();
        tokio::spawn(accept(endpoint.clone(), accepted));
        let port = endpoint.local_addr().expect("bound").port();
        let upstream = format!("h3://localhost:{port}").parse().expect("an upstream");
        let roots = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
        let gateway = set(Gateway::builder(upstream).security(roots)).build().expect("a gateway");
        let server = Server::builder().plain().service(gateway.clone());
        let stage = Stage::of(server.start().await.expect("a server"), gateway);
        Self { stage, requests, _endpoint: endpoint }
    }

    /// Returns the next request.
    pub(crate) async fn request(&mut self) -> RawStream {
        let next = tokio::time::timeout(TIMEOUT, self.requests.recv()).await;
        next.expect("in time").expect("a request")
    }
}

async fn accept(endpoint: quinn::Endpoint, accepted: UnboundedSender<RawStream>) {
    while let Some(incoming) = endpoint.accept().await {
        let accepted = accepted.clone();
        tokio::spawn(async move {
            let Ok(quic) = incoming.await else { return };
            let mut control = quic.open_uni().await.expect("a stream");
            control.write_all(&CONTROL).await.expect("written");
            let control = Arc::new(Mutex::new(control));
            while let Ok((send, recv)) = quic.accept_bi().await {
                let (quic, control) = (quic.clone(), Arc::clone(&control));
                let _ = accepted.send(RawStream { send, recv, quic, control });
            }
        });
    }
}

impl RawStream {
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.send.write_all(bytes).await.expect("written");
    }

    /// Sends all of a response.
    pub(crate) async fn respond(&mut self, bytes: &[u8]) {
        self.write(bytes).await;
        self.send.finish().expect("open");
    }

    /// Sends a GOAWAY with the identifier of a stream (RFC 9114 §5.2), and closes the connection once it was received.
    pub(crate) async fn go_away(&mut self, id: u8) {
        let mut control = self.control.lock().await;
        control.write_all(&[0x07, 1, id]).await.expect("written");
        control.finish().expect("open");
        let received = tokio::time::timeout(TIMEOUT, control.stopped()).await;
        // A control stream that ends is an error of the connection, so the gateway may be the one that closes it.
        let _ = received.expect("in time");
        self.quic.close(NO_ERROR.into(), b"");
    }

    /// Reads until these bytes have come.
    pub(crate) async fn until(&mut self, mark: &[u8]) {
        let mut read = Vec::new();
        while !read.windows(mark.len()).any(|some| some == mark) {
            let chunk = tokio::time::timeout(TIMEOUT, self.recv.read_chunk(4096, true)).await;
            let chunk = chunk.expect("in time").expect("open").expect("more");
            read.extend_from_slice(&chunk.bytes);
        }
    }

    /// Waits until the gateway reads no more of the response, and returns its code.
    pub(crate) async fn stopped(&mut self) -> Option<VarInt> {
        let stopped = self.send.stopped();
        tokio::time::timeout(TIMEOUT, stopped).await.expect("in time").expect("a code")
    }

    /// Waits until the request is reset, and returns the code.
    pub(crate) async fn reset(&mut self) -> VarInt {
        let reset = tokio::time::timeout(TIMEOUT, self.recv.received_reset()).await;
        reset.expect("in time").expect("connected").expect("a reset")
    }
}

/// Returns a HEADERS frame with these fields.
pub(crate) fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    // No dynamic table; each field is a literal with a literal name (RFC 9204 §4.5.1, §4.5.6).
    let mut section = vec![0, 0];
    for (name, value) in fields {
        integer(&mut section, 0x20, 3, name.len());
        section.extend_from_slice(name.as_bytes());
        integer(&mut section, 0x00, 7, value.len());
        section.extend_from_slice(value.as_bytes());
    }
    frame(0x01, &section)
}

/// Returns a DATA frame.
pub(crate) fn data(payload: &[u8]) -> Vec<u8> {
    frame(0x00, payload)
}

/// Encodes an integer with a prefix of so many bits (RFC 7541 §5.1).
pub(crate) fn integer(to: &mut Vec<u8>, first: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        to.push(first | u8::try_from(value).expect("small"));
        return;
    }
    to.push(first | u8::try_from(most).expect("small"));
    let mut rest = value - most;
    while rest >= 0x80 {
        to.push(u8::try_from(rest & 0x7f).expect("7 bits") | 0x80);
        rest >>= 7;
    }
    to.push(u8::try_from(rest).expect("7 bits"));
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    // A variable-length integer of 4 bytes (RFC 9000 §16).
    let length = u32::try_from(payload.len()).expect("short") | 0x8000_0000;
    [&[kind][..], &length.to_be_bytes(), payload].concat()
}
