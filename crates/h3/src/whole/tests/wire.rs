//! Bytes as a peer would send them, made without the code under test.

use bytes::Bytes;
use core::time::Duration;

use crate::code::ErrorCode;
use crate::connection::{ConnectionConfig, ConnectionSetup};
use crate::fault::{ConnectionFault, StreamFault};
use crate::stream::{Role, StreamId};
use crate::whole::{Event, Failure, Input, Output, WholeConnection};

pub(super) const NOW: Duration = Duration::ZERO;

/// The streams of a client.
pub(super) const REQUEST: u64 = 0;
pub(super) const CLIENT_CONTROL: u64 = 2;
/// The streams of a server.
pub(super) const SERVER_CONTROL: u64 = 3;

/// The types of frames.
pub(super) const DATA: u64 = 0x00;
pub(super) const HEADERS: u64 = 0x01;
pub(super) const CANCEL_PUSH: u64 = 0x03;
pub(super) const SETTINGS: u64 = 0x04;
pub(super) const PUSH_PROMISE: u64 = 0x05;
pub(super) const GOAWAY: u64 = 0x07;
pub(super) const ORIGIN: u64 = 0x0c;
pub(super) const MAX_PUSH_ID: u64 = 0x0d;
pub(super) const PRIORITY_UPDATE: u64 = 0xf_0700;
pub(super) const PRIORITY_UPDATE_OF_PUSH: u64 = 0xf_0701;

/// An integer of QUIC in eight bytes if it is large, in one otherwise.
pub(super) fn integer(value: u64) -> Vec<u8> {
    if value < 0x40 { vec![value as u8] } else { (value | 0b11 << 62).to_be_bytes().to_vec() }
}

pub(super) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [integer(kind), integer(payload.len() as u64), payload.to_vec()].concat()
}

/// A control stream with empty settings and these frames.
pub(super) fn control(frames: &[Vec<u8>]) -> Vec<u8> {
    [vec![0], frame(SETTINGS, b""), frames.concat()].concat()
}

/// A HEADERS frame with literal fields (RFC 9204 §4.5.6).
pub(super) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        prefixed(0x20, 3, name.len(), &mut section);
        section.extend_from_slice(name.as_bytes());
        prefixed(0x00, 7, value.len(), &mut section);
        section.extend_from_slice(value.as_bytes());
    }
    frame(HEADERS, &section)
}

/// An integer with a prefix (RFC 7541 §5.1).
fn prefixed(mark: u8, bits: u32, length: usize, out: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if length < most {
        return out.push(mark | length as u8);
    }
    out.push(mark | most as u8);
    let mut left = length - most;
    while left >= 128 {
        out.push(left as u8 | 128);
        left >>= 7;
    }
    out.push(left as u8);
}

pub(super) fn get() -> Vec<u8> {
    request("GET", &[])
}

pub(super) fn request(method: &str, further: &[(&str, &str)]) -> Vec<u8> {
    let head =
        [(":method", method), (":scheme", "https"), (":authority", "example.com"), (":path", "/")];
    headers(&[&head, further].concat())
}

pub(super) fn response(status: &str, further: &[(&str, &str)]) -> Vec<u8> {
    headers(&[&[(":status", status)], further].concat())
}

/// How a connection has reacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Nothing is wrong.
    Fine,
    /// The connection ends.
    Connection(ErrorCode),
    /// The stream of a request ends.
    Stream(ErrorCode),
}

/// A step of a peer.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Send(u64, Vec<u8>),
    End(u64, Vec<u8>),
    Reset(u64),
    Stop(u64),
    Datagram(Vec<u8>),
}

impl Step {
    pub(super) fn into_input(self) -> Input {
        match self {
            Self::Send(stream, data) => {
                Input::Stream { stream: StreamId(stream), data: data.into(), fin: false }
            }
            Self::End(stream, data) => {
                Input::Stream { stream: StreamId(stream), data: data.into(), fin: true }
            }
            Self::Reset(stream) => Input::Reset { stream: StreamId(stream), code: 0x10c },
            Self::Stop(stream) => Input::Stopped { stream: StreamId(stream), code: 0x10c },
            Self::Datagram(frame) => Input::Datagram(frame.into()),
        }
    }
}

pub(super) fn config() -> ConnectionConfig {
    ConnectionConfig {
        max_field_section_size: 1000,
        datagrams: true,
        grease: false,
        ..ConnectionConfig::default()
    }
}

/// A connection that has sent what it sends first; a client has sent requests with these methods.
pub(super) fn begin(role: Role, config: ConnectionConfig, methods: &[&str]) -> WholeConnection {
    let setup = ConnectionSetup { role, config, seed: 7, remembered: None };
    let mut connection = WholeConnection::new(setup, NOW);
    for method in methods {
        let fields = [
            (&b":method"[..], method.as_bytes()),
            (b":scheme", b"https"),
            (b":authority", b"example.com"),
            (b":path", b"/"),
        ];
        let used = if *method == "CONNECT" { vec![fields[0], fields[2]] } else { fields.to_vec() };
        let fields = used.into_iter().map(|(name, value)| (name, value, Default::default()));
        connection.send_request(fields, *method != "CONNECT").expect("a valid request");
    }
    drain(&mut connection);
    connection
}

pub(super) fn drain(connection: &mut WholeConnection) -> Vec<Output> {
    let next = || Some(connection.poll_output(NOW));
    core::iter::from_fn(next).take_while(|output| !matches!(output, Output::Timeout(_))).collect()
}

/// Takes these steps, each at once or in parts of one byte, and returns what has come of it, with the
/// violation if there was one.
pub(super) fn react(
    connection: &mut WholeConnection,
    steps: &[Step],
    in_bytes: bool,
) -> (Reaction, Vec<Output>) {
    let mut outputs = Vec::new();
    for step in steps {
        match step.clone() {
            Step::Send(stream, data) | Step::End(stream, data) if in_bytes => {
                let fin = matches!(step, Step::End(..));
                let stream = StreamId(stream);
                for byte in data {
                    let data = Bytes::copy_from_slice(&[byte]);
                    connection.handle_input(NOW, Input::Stream { stream, data, fin: false });
                }
                if fin {
                    connection.handle_input(NOW, Input::Stream { stream, data: Bytes::new(), fin });
                }
            }
            step => connection.handle_input(NOW, step.into_input()),
        }
        outputs.extend(drain(connection));
    }
    let reaction = outputs.iter().find_map(reaction).unwrap_or(Reaction::Fine);
    (reaction, outputs)
}

fn reaction(output: &Output) -> Option<Reaction> {
    match output {
        Output::Close(fault) => {
            assert_is_explained::<ConnectionFault>(&fault.to_string(), fault.section().to_string());
            Some(Reaction::Connection(fault.code()))
        }
        Output::Event(Event::Failed { failure: Failure::Fault(fault), .. }) => {
            assert_is_explained::<StreamFault>(&fault.to_string(), fault.section().to_string());
            Some(Reaction::Stream(fault.code()))
        }
        _ => None,
    }
}

fn assert_is_explained<T>(text: &str, section: String) {
    let kind = core::any::type_name::<T>();
    assert!(!text.is_empty() && section.starts_with("RFC "), "{kind}: {text}, {section}");
}

/// A rule in words, what the peer sends, and the reaction.
pub(super) type Row = (&'static str, Vec<Step>, Reaction);

/// Checks rows against an endpoint with this role. A client has sent a GET request.
pub(super) fn check(role: Role, rows: Vec<Row>) {
    let methods: &[&str] = if role == Role::Client { &["GET"] } else { &[] };
    check_after(role, methods, rows);
}

pub(super) fn check_after(role: Role, methods: &[&str], rows: Vec<Row>) {
    for (rule, steps, expected) in rows {
        for in_bytes in [false, true] {
            let mut connection = begin(role, config(), methods);
            let (reaction, outputs) = react(&mut connection, &steps, in_bytes);
            assert_eq!(reaction, expected, "{rule}, in single bytes: {in_bytes}: {outputs:?}");
        }
    }
}

pub(super) fn send(stream: u64, parts: &[Vec<u8>]) -> Step {
    Step::Send(stream, parts.concat())
}

pub(super) fn end(stream: u64, parts: &[Vec<u8>]) -> Step {
    Step::End(stream, parts.concat())
}

/// A client's control stream with these frames.
pub(super) fn client_says(frames: &[Vec<u8>]) -> Vec<Step> {
    vec![Step::Send(CLIENT_CONTROL, control(frames))]
}

/// A server's control stream with these frames.
pub(super) fn server_says(frames: &[Vec<u8>]) -> Vec<Step> {
    vec![Step::Send(SERVER_CONTROL, control(frames))]
}

/// A request with these frames.
pub(super) fn client_asks(frames: &[Vec<u8>]) -> Vec<Step> {
    vec![end(REQUEST, frames)]
}
