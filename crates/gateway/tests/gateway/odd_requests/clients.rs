//! Clients that send anything, and understand no more than the status of the response.

use std::net::SocketAddr;
use std::sync::Arc;

use eyas_http::serve::Running;
use quinn::crypto::rustls::QuicClientConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::request::OddRequest;
use crate::raw_http3::integer;

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Status(u16),
    /// The stream is reset as malformed (RFC 9113 §8.1.1, RFC 9114 §4.1.2).
    Malformed,
    /// The stream is reset for another reason.
    Reset(u64),
    /// The connection is closed because of an error.
    Closed,
}

pub(crate) async fn http1(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.expect("connects");
    let _ = stream.write_all(request).await;
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read).await;
    let status = read.strip_prefix(b"HTTP/1.1 ").or_else(|| read.strip_prefix(b"HTTP/1.0 "));
    match status.and_then(|rest| std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok()) {
        Some(status) => Answer::Status(status),
        None => Answer::Closed,
    }
}

/// Encodes fields without tables: HPACK (RFC 7541 §6.2.2).
fn hpack(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            integer(&mut block, 0, 7, text.len());
            block.extend(text);
        }
    }
    block
}

/// The same for QPACK (RFC 9204 §4.5.6).
fn qpack(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        integer(&mut section, 0x20, 3, name.len());
        section.extend(name);
        integer(&mut section, 0, 7, value.len());
        section.extend(value);
    }
    section
}

/// Returns the three digits of a string literal with the first bit for Huffman's code (RFC 7541 §5.2, appendix B).
fn digits(literal: &[u8]) -> Option<u16> {
    let (&length, text) = literal.split_first()?;
    if length & 0x80 == 0 {
        return std::str::from_utf8(text.get(..3)?).ok()?.parse().ok();
    }
    let mut bits = text.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
    let mut number = 0;
    for _ in 0..3 {
        let mut code = 0;
        for _ in 0..5 {
            code = code << 1 | u16::from(bits.next()?);
        }
        // 0, 1 and 2 have five bits; 3 to 9 have six, from 011001 on.
        let digit =
            if code < 3 { code } else { (code << 1 | u16::from(bits.next()?)) - 0b01_1001 + 3 };
        number = number * 10 + digit;
    }
    Some(number)
}

fn http2_frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

pub(crate) async fn http2(address: SocketAddr, request: &OddRequest) -> Answer {
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;
    let mut stream = TcpStream::connect(address).await.expect("connects");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(http2_frame(4, 0, 0, &[]));
    let (has_body, trailers) = (!request.body.is_empty(), request.trailers.as_ref());
    let ends = |is_last: bool| if is_last { END_STREAM } else { 0 };
    let flags = END_HEADERS | ends(!has_body && trailers.is_none());
    bytes.extend(http2_frame(1, flags, 1, &hpack(&request.head())));
    if has_body {
        bytes.extend(http2_frame(0, ends(trailers.is_none()), 1, &request.body));
    }
    if let Some(trailers) = trailers {
        bytes.extend(http2_frame(1, END_HEADERS | END_STREAM, 1, &hpack(trailers)));
    }
    let _ = stream.write_all(&bytes).await;
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return Answer::Closed;
        }
        let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
        if stream.read_exact(&mut payload).await.is_err() {
            return Answer::Closed;
        }
        match head[3] {
            // The status comes first, after changes of the table's size.
            1 => {
                let at = payload.iter().position(|byte| byte & 0xe0 != 0x20).expect("a field");
                return Answer::Status(http2_status(&payload[at..]).expect("a status"));
            }
            3 if payload == [0, 0, 0, 1] => return Answer::Malformed,
            3 => return Answer::Reset(u64::from(payload[3])),
            _ => {}
        }
    }
}

/// Returns the status, from the entries 8 to 14 of the static table (RFC 7541 appendix A).
fn http2_status(field: &[u8]) -> Option<u16> {
    const INDEXED: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    let (&first, rest) = field.split_first()?;
    match first {
        0x88..=0x8e => Some(INDEXED[usize::from(first - 0x88)]),
        0x48..=0x4e | 0x08..=0x0e | 0x18..=0x1e => digits(rest),
        _ => None,
    }
}

/// One connection, on which requests follow each other.
pub(crate) struct Http3Client {
    quic: quinn::Connection,
    _endpoint: quinn::Endpoint,
    _control: quinn::SendStream,
}

impl Http3Client {
    pub(crate) async fn connect(server: &Running) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        let identity = server.identity().expect("a server with TLS");
        roots.add(identity.certificate().clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = QuicClientConfig::try_from(tls).expect("a cipher suite");
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut endpoint = quinn::Endpoint::client(address).expect("an endpoint");
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(tls)));
        let address = SocketAddr::from(([127, 0, 0, 1], server.local_addr().port()));
        let connecting = endpoint.connect(address, "localhost").expect("a target");
        let quic = connecting.await.expect("a handshake");
        let mut control = quic.open_uni().await.expect("a stream");
        control.write_all(&[0, 4, 0]).await.expect("room");
        Self { quic, _endpoint: endpoint, _control: control }
    }

    pub(crate) async fn send(&mut self, request: &OddRequest) -> Answer {
        let Ok((mut send, mut recv)) = self.quic.open_bi().await else { return Answer::Closed };
        let mut bytes = Vec::new();
        let mut frame = |kind: u8, payload: &[u8]| {
            bytes.push(kind);
            bytes.extend(((payload.len() as u16) | 0x4000).to_be_bytes());
            bytes.extend(payload);
        };
        frame(1, &qpack(&request.head()));
        if !request.body.is_empty() {
            frame(0, &request.body);
        }
        if let Some(trailers) = &request.trailers {
            frame(1, &qpack(trailers));
        }
        let _ = send.write_all(&bytes).await;
        let _ = send.finish();
        match recv.read_to_end(1 << 16).await {
            Ok(response) => Answer::Status(http3_status(&response).expect("a status")),
            Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => {
                match code.into_inner() {
                    // H3_MESSAGE_ERROR.
                    0x10e => Answer::Malformed,
                    code => Answer::Reset(code),
                }
            }
            Err(_) => Answer::Closed,
        }
    }
}

/// Returns the status, which comes first in the first HEADERS, with the static table (RFC 9204 appendix A).
fn http3_status(response: &[u8]) -> Option<u16> {
    const INDEXED: [(u8, u16); 14] = [
        (24, 103),
        (25, 200),
        (26, 304),
        (27, 404),
        (28, 503),
        (63, 100),
        (64, 204),
        (65, 206),
        (66, 302),
        (67, 400),
        (68, 403),
        (69, 421),
        (70, 425),
        (71, 500),
    ];
    // The type, a length of one byte or two, and the prefix of the section.
    let at = if *response.get(1)? < 0x40 { 4 } else { 5 };
    let field = response.get(at..)?;
    let number = |bits: u8| -> Option<(u8, &[u8])> {
        let most = (1 << bits) - 1;
        match field[0] & most {
            all if all == most => Some((most + field.get(1)?, &field[2..])),
            less => Some((less, &field[1..])),
        }
    };
    match field.first()? {
        0xc0.. => {
            let (index, _) = number(6)?;
            INDEXED.iter().find(|(entry, _)| *entry == index).map(|(_, status)| *status)
        }
        0x50..=0x7f => digits(number(4)?.1),
        _ => None,
    }
}
