//! The frames of the tunnel's protocol.
//!
//! Each begins with seven bytes: its kind, its channel (0: the session itself) and the length of its payload, in
//! network byte order. The documentation of [`tunnel`](super) has the table.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use eyas::printable::printable;
use eyas::race::target::TargetHost;
use eyas_relay::destination::Destination;

/// The version of the protocol, which the documentation of [`tunnel`](super) specifies.
pub const VERSION: u16 = 1;

/// The application protocol (ALPN) of TLS and QUIC.
pub const ALPN: &str = "eyas-tunnel/1";

/// The length of the header.
pub const HEADER: usize = 7;

/// The limit on the data of one frame, in bytes.
pub const MAX_DATA: usize = 16 * 1024;

/// The limit on the payload of any frame, in bytes. A longer one violates the protocol.
pub const MAX_PAYLOAD: usize = MAX_DATA;

/// The limit on texts, in bytes. Longer ones are truncated.
const MAX_TEXT: usize = 512;

/// The kinds of frames. Any other number violates the protocol.
mod kind {
    pub(crate) const HELLO: u8 = 0;
    pub(crate) const OPEN: u8 = 1;
    pub(crate) const ACCEPT: u8 = 2;
    pub(crate) const REFUSE: u8 = 3;
    pub(crate) const DATA: u8 = 4;
    pub(crate) const CREDIT: u8 = 5;
    pub(crate) const FINISH: u8 = 6;
    pub(crate) const RESET: u8 = 7;
    pub(crate) const PING: u8 = 8;
    pub(crate) const PONG: u8 = 9;
    pub(crate) const GOODBYE: u8 = 10;
    pub(crate) const DELIVERED: u8 = 11;
}

/// The path of a Unix socket, which is absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixPath(String);

/// The limit on paths of Unix sockets, in bytes (unix(7)).
const MAX_PATH: usize = 107;

impl UnixPath {
    /// Returns the path, if this is one that a socket can have.
    pub fn parse(text: &str) -> Option<Self> {
        let is_path = text.starts_with('/') && text.len() <= MAX_PATH && !text.contains('\0');
        is_path.then(|| Self(text.to_owned()))
    }

    /// Returns the path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UnixPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.0))
    }
}

/// The purpose of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelPurpose {
    /// A byte stream to this destination, to which the other end connects.
    Connect(Destination),
    /// Has the other end listen at this address as long as the channel is open. An empty text is loopback, `*`
    /// every address; port 0 is any free one.
    Listen {
        /// The address.
        bind: String,
        /// The port.
        port: u16,
    },
    /// A byte stream to the Unix socket with this path, to which the other end connects.
    ConnectUnix(UnixPath),
    /// Has the other end listen at a Unix socket with this path as long as the channel is open.
    ListenUnix(UnixPath),
    /// A byte stream from a program that has connected to the listener of another channel.
    Accepted {
        /// The channel of the listener.
        listen: u32,
        /// The address of the program, which is unspecified at a Unix socket.
        peer: SocketAddr,
    },
    /// IP packets between the interfaces of both ends, each after its length
    /// (`packets::framing`).
    Packets {
        /// The addresses of the requesting end's interface.
        addresses: Vec<IpAddr>,
    },
}

/// Why a channel is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseReason {
    /// The key does not permit it.
    NotAllowed,
    /// Connecting or listening failed; the text has the reason.
    Failed,
    /// There are too many channels.
    TooMany,
    /// The other end does not support it.
    Unsupported,
}

impl RefuseReason {
    const ALL: [Self; 4] = [Self::NotAllowed, Self::Failed, Self::TooMany, Self::Unsupported];

    fn code(self) -> u8 {
        Self::ALL.iter().position(|one| *one == self).map_or(0, |place| place as u8)
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelFrame {
    /// The first frame of each stream, and no other.
    Hello {
        /// The version of the protocol.
        version: u16,
        /// The data that the other end may send on each channel before it gets credit, in bytes.
        window: u32,
    },
    /// Requests a channel.
    Open(ChannelPurpose),
    /// Accepts a channel. The port is the one that was bound for [`ChannelPurpose::Listen`], otherwise 0.
    Accept(u16),
    /// Refuses a channel.
    Refuse(RefuseReason, String),
    /// Data of a channel.
    Data(Bytes),
    /// Allows this many more bytes.
    Credit(u32),
    /// Ends the sender's direction of a channel.
    Finish,
    /// Ends a channel in both directions. Data in transit may be lost.
    Reset,
    /// Requests a sign of life.
    Ping(u64),
    /// Answers a ping.
    Pong(u64),
    /// Ends the session, for this reason.
    Goodbye(String),
    /// Confirms that everything up to the end was read.
    Delivered,
}

/// A violation of the protocol, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end violated the tunnel's protocol: {0}")]
pub struct ProtocolViolation(pub &'static str);

/// Appends a frame to the buffer.
pub fn encode(channel: u32, frame: &TunnelFrame, into: &mut BytesMut) {
    let at = into.len();
    into.put_bytes(0, HEADER);
    let kind = match frame {
        TunnelFrame::Hello { version, window } => {
            into.put_u16(*version);
            into.put_u32(*window);
            kind::HELLO
        }
        TunnelFrame::Open(purpose) => {
            encode_purpose(purpose, into);
            kind::OPEN
        }
        TunnelFrame::Accept(port) => {
            into.put_u16(*port);
            kind::ACCEPT
        }
        TunnelFrame::Refuse(why, text) => {
            into.put_u8(why.code());
            put_text(text, into);
            kind::REFUSE
        }
        TunnelFrame::Data(bytes) => {
            debug_assert!(bytes.len() <= MAX_DATA, "data is split before it is framed");
            into.put_slice(bytes);
            kind::DATA
        }
        TunnelFrame::Credit(bytes) => {
            into.put_u32(*bytes);
            kind::CREDIT
        }
        TunnelFrame::Finish => kind::FINISH,
        TunnelFrame::Reset => kind::RESET,
        TunnelFrame::Ping(token) => {
            into.put_u64(*token);
            kind::PING
        }
        TunnelFrame::Pong(token) => {
            into.put_u64(*token);
            kind::PONG
        }
        TunnelFrame::Goodbye(text) => {
            put_text(text, into);
            kind::GOODBYE
        }
        TunnelFrame::Delivered => kind::DELIVERED,
    };
    // MAX_PAYLOAD fits into the field, and no payload above is longer.
    let length = (into.len() - at - HEADER) as u16;
    let mut header = &mut into[at..at + HEADER];
    header.put_u8(kind);
    header.put_u32(channel);
    header.put_u16(length);
}

/// Removes the first frame from the buffer, if it is complete.
///
/// # Errors
/// If the buffer does not begin with a valid frame. Nothing after it can be decoded.
pub fn decode(from: &mut BytesMut) -> Result<Option<(u32, TunnelFrame)>, ProtocolViolation> {
    let Some(mut header) = from.get(..HEADER) else { return Ok(None) };
    let (kind, channel, length) =
        (header.get_u8(), header.get_u32(), usize::from(header.get_u16()));
    if length > MAX_PAYLOAD {
        return Err(ProtocolViolation("a frame is too long"));
    }
    if kind > kind::DELIVERED {
        return Err(ProtocolViolation("a frame of an unknown kind"));
    }
    if from.len() < HEADER + length {
        return Ok(None);
    }
    from.advance(HEADER);
    let payload = from.split_to(length).freeze();
    decode_payload(kind, payload).map(|frame| Some((channel, frame)))
}

fn decode_payload(kind: u8, mut payload: Bytes) -> Result<TunnelFrame, ProtocolViolation> {
    let of_length = |length: usize| match payload.len() == length {
        true => Ok(()),
        false => Err(ProtocolViolation("a frame has the wrong length for its kind")),
    };
    Ok(match kind {
        kind::HELLO => {
            of_length(6)?;
            TunnelFrame::Hello { version: payload.get_u16(), window: payload.get_u32() }
        }
        kind::OPEN => TunnelFrame::Open(decode_purpose(payload)?),
        kind::ACCEPT => {
            of_length(2)?;
            TunnelFrame::Accept(payload.get_u16())
        }
        kind::REFUSE => {
            let code = payload
                .try_get_u8()
                .map_err(|_| ProtocolViolation("a refusal without a reason"))?;
            // Other reasons may be those of later versions.
            let why =
                RefuseReason::ALL.get(usize::from(code)).copied().unwrap_or(RefuseReason::Failed);
            TunnelFrame::Refuse(why, printable_text(&payload))
        }
        kind::DATA if payload.is_empty() => return Err(ProtocolViolation("data without a byte")),
        kind::DATA => TunnelFrame::Data(payload),
        kind::CREDIT => {
            of_length(4)?;
            TunnelFrame::Credit(payload.get_u32())
        }
        kind::FINISH => {
            of_length(0)?;
            TunnelFrame::Finish
        }
        kind::RESET => {
            of_length(0)?;
            TunnelFrame::Reset
        }
        kind::PING => {
            of_length(8)?;
            TunnelFrame::Ping(payload.get_u64())
        }
        kind::PONG => {
            of_length(8)?;
            TunnelFrame::Pong(payload.get_u64())
        }
        kind::DELIVERED => {
            of_length(0)?;
            TunnelFrame::Delivered
        }
        _ => TunnelFrame::Goodbye(printable_text(&payload)),
    })
}

/// The kinds of purposes.
mod purpose {
    pub(crate) const CONNECT: u8 = 0;
    pub(crate) const LISTEN: u8 = 1;
    pub(crate) const ACCEPTED: u8 = 2;
    pub(crate) const PACKETS: u8 = 3;
    pub(crate) const CONNECT_UNIX: u8 = 4;
    pub(crate) const LISTEN_UNIX: u8 = 5;
}

fn encode_purpose(purpose: &ChannelPurpose, into: &mut BytesMut) {
    match purpose {
        ChannelPurpose::Connect(to) => {
            into.put_u8(purpose::CONNECT);
            into.put_u16(to.port);
            // A number that begins with 25 would be read as an escaped `%`.
            let text = match to.host {
                TargetHost::Literal(ip, scope @ 1..) => format!("[{ip}%25{scope}]"),
                _ => to.given_host(),
            };
            put_text(&text, into);
        }
        ChannelPurpose::Listen { bind, port } => {
            into.put_u8(purpose::LISTEN);
            into.put_u16(*port);
            put_text(bind, into);
        }
        ChannelPurpose::Accepted { listen, peer } => {
            into.put_u8(purpose::ACCEPTED);
            into.put_u32(*listen);
            put_text(&peer.to_string(), into);
        }
        ChannelPurpose::Packets { addresses } => {
            into.put_u8(purpose::PACKETS);
            let addresses: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
            put_text(&addresses.join(","), into);
        }
        ChannelPurpose::ConnectUnix(path) => {
            into.put_u8(purpose::CONNECT_UNIX);
            put_text(path.as_str(), into);
        }
        ChannelPurpose::ListenUnix(path) => {
            into.put_u8(purpose::LISTEN_UNIX);
            put_text(path.as_str(), into);
        }
    }
}

fn decode_purpose(mut payload: Bytes) -> Result<ChannelPurpose, ProtocolViolation> {
    const BROKEN: ProtocolViolation =
        ProtocolViolation("the purpose of a new channel cannot be parsed");
    let text = |payload: Bytes| match payload.len() <= MAX_TEXT {
        true => String::from_utf8(payload.to_vec()).map_err(|_| BROKEN),
        false => Err(BROKEN),
    };
    match payload.try_get_u8().map_err(|_| BROKEN)? {
        purpose::CONNECT => {
            let port = payload.try_get_u16().map_err(|_| BROKEN)?;
            let to = Destination::parse(&text(payload)?, port).map_err(|_| BROKEN)?;
            Ok(ChannelPurpose::Connect(to))
        }
        purpose::LISTEN => {
            let port = payload.try_get_u16().map_err(|_| BROKEN)?;
            Ok(ChannelPurpose::Listen { bind: text(payload)?, port })
        }
        purpose::ACCEPTED => {
            let listen = payload.try_get_u32().map_err(|_| BROKEN)?;
            let peer = text(payload)?.parse().map_err(|_| BROKEN)?;
            Ok(ChannelPurpose::Accepted { listen, peer })
        }
        purpose::PACKETS => {
            let text = text(payload)?;
            let addresses = text.split(',').map(|one| one.parse().map_err(|_| BROKEN));
            Ok(ChannelPurpose::Packets { addresses: addresses.collect::<Result<_, _>>()? })
        }
        purpose::CONNECT_UNIX => {
            Ok(ChannelPurpose::ConnectUnix(UnixPath::parse(&text(payload)?).ok_or(BROKEN)?))
        }
        purpose::LISTEN_UNIX => {
            Ok(ChannelPurpose::ListenUnix(UnixPath::parse(&text(payload)?).ok_or(BROKEN)?))
        }
        _ => Err(BROKEN),
    }
}

fn put_text(text: &str, into: &mut BytesMut) {
    into.put_slice(&text.as_bytes()[..text.floor_char_boundary(MAX_TEXT)]);
}

/// Returns a text of the other end as it can be printed to a terminal.
fn printable_text(payload: &[u8]) -> String {
    let payload = &payload[..payload.len().min(MAX_TEXT)];
    let mut text = printable(&String::from_utf8_lossy(payload)).into_owned();
    // Escapes and replacement characters are longer than what they stand for.
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<TunnelFrame> {
        let host = |text: &str| TargetHost::parse(text).expect("a host");
        vec![
            TunnelFrame::Hello { version: 1, window: 65_536 },
            TunnelFrame::Open(ChannelPurpose::Connect(Destination::new(host("a.example"), 22))),
            TunnelFrame::Open(ChannelPurpose::Connect(
                Destination::parse("a.example.", 22).expect("it"),
            )),
            TunnelFrame::Open(ChannelPurpose::Connect(Destination::new(host("2001:db8::1"), 80))),
            TunnelFrame::Open(ChannelPurpose::ConnectUnix(
                UnixPath::parse("/run/a.sock").expect("it"),
            )),
            TunnelFrame::Open(ChannelPurpose::ListenUnix(
                UnixPath::parse("/run/b.sock").expect("it"),
            )),
            TunnelFrame::Open(ChannelPurpose::Connect(Destination::new(host("fe80::1%3"), 80))),
            TunnelFrame::Open(ChannelPurpose::Connect(Destination::new(host("fe80::1%25253"), 80))),
            TunnelFrame::Open(ChannelPurpose::Connect(
                Destination::parse("fe80::1%eth0", 80).expect("it"),
            )),
            TunnelFrame::Open(ChannelPurpose::Listen { bind: String::new(), port: 0 }),
            TunnelFrame::Open(ChannelPurpose::Listen { bind: "*".into(), port: 8080 }),
            TunnelFrame::Open(ChannelPurpose::Accepted {
                listen: 7,
                peer: "[::1]:9".parse().expect("it"),
            }),
            TunnelFrame::Open(ChannelPurpose::Packets {
                addresses: vec!["10.9.0.2".parse().expect("it")],
            }),
            TunnelFrame::Open(ChannelPurpose::Packets {
                addresses: vec!["fd00::2".parse().expect("it"), "192.0.2.1".parse().expect("it")],
            }),
            TunnelFrame::Accept(8080),
            TunnelFrame::Refuse(RefuseReason::NotAllowed, "permit-open".into()),
            TunnelFrame::Refuse(RefuseReason::TooMany, String::new()),
            TunnelFrame::Data(Bytes::from(vec![7; MAX_DATA])),
            TunnelFrame::Credit(u32::MAX),
            TunnelFrame::Finish,
            TunnelFrame::Reset,
            TunnelFrame::Ping(1),
            TunnelFrame::Pong(u64::MAX),
            TunnelFrame::Goodbye("it stops".into()),
            TunnelFrame::Delivered,
        ]
    }

    #[test]
    fn every_frame_is_decoded_as_it_was_encoded_however_it_is_split() {
        let mut wire = BytesMut::new();
        for (channel, frame) in all().iter().enumerate() {
            encode(channel as u32, frame, &mut wire);
        }
        let (mut read, mut frames) = (BytesMut::new(), Vec::new());
        for byte in wire {
            read.put_u8(byte);
            while let Some(frame) = decode(&mut read).expect("frames") {
                frames.push(frame);
            }
        }
        let sent: Vec<_> =
            all().into_iter().zip(0..).map(|(frame, channel)| (channel, frame)).collect();
        assert_eq!(frames, sent);
        assert!(read.is_empty());
    }

    #[test]
    fn an_invalid_frame_is_refused_before_its_end_arrives() {
        let of = |bytes: &[u8]| decode(&mut BytesMut::from(bytes));
        assert_eq!(of(&[4, 0, 0, 0, 1, 0x40]), Ok(None));
        assert!(of(&[4, 0, 0, 0, 1, 0x40, 1]).is_err(), "longer than a frame can be");
        assert!(of(&[12, 0, 0, 0, 0, 0, 0]).is_err(), "no such kind");
        assert!(of(&[4, 0, 0, 0, 1, 0, 0]).is_err(), "data without a byte");
        assert!(of(&[5, 0, 0, 0, 1, 0, 1, 9]).is_err(), "a credit of one byte");
        assert!(of(&[1, 0, 0, 0, 1, 0, 4, 0, 0, 0, b'a']).is_err(), "port 0");
        assert!(of(&[1, 0, 0, 0, 1, 0, 1, 9]).is_err(), "no such purpose");
        assert!(of(&[1, 0, 0, 0, 1, 0, 1, 3]).is_err(), "an interface without an address");
    }

    #[test]
    fn texts_are_truncated_and_control_characters_escaped() {
        let mut wire = BytesMut::new();
        encode(0, &TunnelFrame::Goodbye("\u{e4}".repeat(1000)), &mut wire);
        let Ok(Some((0, TunnelFrame::Goodbye(text)))) = decode(&mut wire) else {
            panic!("a GOODBYE")
        };
        assert_eq!(text, "\u{e4}".repeat(MAX_TEXT / 2));
        assert_eq!(printable_text("a\x1b[2J\u{202e}b".as_bytes()), r"a\u{1b}[2J\u{202e}b");
    }

    #[test]
    fn texts_that_are_not_utf_8_stay_within_their_limit() {
        let text = printable_text(&[0xff; MAX_TEXT]);
        assert_eq!(text.len(), text.floor_char_boundary(MAX_TEXT));
        assert!(text.len() <= MAX_TEXT && text.len() > MAX_TEXT - 3);
    }
}
