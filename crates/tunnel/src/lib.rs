//! All connections between two hosts over one session, and the packets of network interfaces: `eyas tunnel`.
//!
//! | module or type | job |
//! | --- | --- |
//! | `frame` | the frames of the protocol; pure |
//! | `session` | channels and their windows; pure |
//! | [`keys`] | what a key may do, and the known keys of servers; pure |
//! | [`forward`] | forwardings in the syntax of ssh; pure |
//! | [`TunnelInterface`] | IP packets between interfaces, one at each end |
//! | [`SessionTransport`] | the connection below a session, with its streams |
//! | [`TunnelServer`] | the end that accepts connections |
//! | [`reach`], [`ServerTunnel`], [`TunnelClient`] | the end that connects: a connection, a session, a series of sessions |
//! | [`ProbingTimes`] | when a transport with streams is tried again while the session has none |
//! | [`TunnelError`] | why a tunnel cannot be used |
//! | [`ServerProxy`] | a proxy through which the server is reached |
//! | `local` | TCP and Unix sockets of this host |
//! | `demand` | the programs that wait for a session |
//! | `liveness` | when a silent session is doubted, and when to reconnect; pure |
//! | `vigil`, `doubt` | the signs of life of a session in real time |
//! | [`TunnelNotice`] | what either end reports |
//! | `shares` | what each key may have of what all clients share |
//! | [`CurrentSessions`] | the current sessions of either end, with their paths |
//!
//! A channel stays on the lane that it was opened on, so nothing needs reordering across lanes; lanes are added
//! while all are in use. The client holds one session at a time. When that runs over a transport without
//! streams, `ProbingTimes` looks for one that has them, and the old session stays until nothing is open on it; the
//! same happens to a session that does not answer.
//!
//! Access control is below the session: `ListenParameters::client_keys` and
//! `SecurityParameters::with_pinned_keys` make the TLS verifiers look at nothing but a key, so an impostor
//! loses the race, and an unknown client is rejected before a byte of it is read. The command creates the
//! device of a network interface, because the calls are unsafe and confined to `eyas-emulator`.
//!
//! # The protocol on the wire
//!
//! It uses byte streams, each reliable and ordered by itself. The first exists from the start: over QUIC it is the
//! client's first bidirectional stream, over SCTP the pair of streams 0, over TCP and MPTCP the connection, and
//! through a proxy the stream of a CONNECT. Each is below TLS 1.3, except that over SCTP inside UDP there is DTLS
//! below SCTP instead. The application protocol (ALPN) is `eyas-tunnel/1`; DTLS does not negotiate one. The
//! protocol has no security of its own.
//!
//! Over QUIC and SCTP the client opens up to 32 further streams, one more whenever all have a channel: over QUIC
//! bidirectional streams, over SCTP the pairs 1, 2, 3 …. Over SCTP without DTLS, each is below its own TLS session
//! (RFC 3436), in which both ends must show the same certificate as on stream 0. So a new connection does not wait
//! for a handshake, and a finished one leaves its stream to the next. A channel stays on one stream: all its frames
//! go there, in both directions. The end that opens it chooses the emptiest stream, or the first for listening
//! channels and if no other is emptier. A further stream is used only after the other end's HELLO has arrived on it.
//!
//! ## Frames
//!
//! A frame is seven bytes and a payload: the kind (1 byte), the channel (4 bytes, 0 for the session itself), and
//! the payload length (2 bytes, at most 16384). Numbers are in network byte order; texts are UTF-8 without a
//! terminator, at most 512 bytes long.
//!
//! | kind | name | payload | concerns |
//! | --- | --- | --- | --- |
//! | 0 | HELLO | version (2), window (4) | the session |
//! | 1 | OPEN | purpose (1), see below | a new channel |
//! | 2 | ACCEPT | port (2): where it listens, for LISTEN; otherwise 0 | a channel that the receiver opened |
//! | 3 | REFUSE | reason (1), text | a channel that the receiver opened |
//! | 4 | DATA | bytes, at least one | a channel |
//! | 5 | CREDIT | bytes (4) | a channel |
//! | 6 | FINISH | nothing | a channel |
//! | 7 | RESET | nothing | a channel |
//! | 8, 9 | PING, PONG | token (8), echoed | the session |
//! | 10 | GOODBYE | text | the session |
//! | 11 | DELIVERED | nothing | a channel |
//!
//! | purpose | name | payload |
//! | --- | --- | --- |
//! | 0 | CONNECT | port (2), host as a text |
//! | 1 | LISTEN | port (2, 0: any free one), address as a text (empty: loopback, `*`: all) |
//! | 2 | ACCEPTED | the LISTEN's channel (4), address and port of the connecting program, as a text (`0.0.0.0:0` at a Unix socket) |
//! | 3 | PACKETS | the addresses of the client's interface, as a comma-separated text |
//! | 4 | CONNECT-UNIX | the path of a Unix socket, from the root, at most 107 bytes |
//! | 5 | LISTEN-UNIX | the same |
//!
//! Reasons for REFUSE: 0 not allowed, 1 failed, 2 too many, 3 unsupported; any other value is treated as 1.
//!
//! - Each end starts each stream with HELLO: version 1, and the window, which is the same on all streams: how many
//!   bytes of data the other end may send on each new channel before it gets credit.
//! - The client numbers its channels 1, 3, 5 …, the server 2, 4, 6 …; a number is used once, and each is larger
//!   than those before it on its stream. Session frames other than HELLO are sent only on the first stream.
//! - The end that opens a channel may send data immediately; the other end sends nothing on it before ACCEPT.
//! - CREDIT allows that many more bytes. A connection that nobody reads gets none, and stops only itself.
//! - FINISH ends one direction; the other continues. RESET ends both and must not overtake anything: data sent
//!   before it arrives before it, but need not be read. Frames of a finished channel are ignored.
//! - An end that has read everything up to FINISH sends DELIVERED, once. An end that stops waits for it, for at
//!   most 5 s, on the channels that both programs have closed, before it sends GOODBYE, which overtakes data on
//!   other streams.
//! - An end that has heard nothing for 5 s sends PING. An end that has heard nothing for 20 s, and for 15 s after
//!   its PING, gives the session up, and everything on it is reset. One that was suspended therefore asks first.
//! - Anything else violates the protocol, such as a frame of another kind, an invalid length, data without credit
//!   or after FINISH, DELIVERED without FINISH, an unsolicited PONG, an invalid channel number, or a frame on a
//!   stream other than its channel's: the end sends GOODBYE with the reason, and the session is over.
//!
//! ## Packets
//!
//! The data of a PACKETS channel, which only the client opens, consists of IP packets in both directions, each
//! preceded by its length (2 bytes). Data that is not a packet, or whose source is not the sender's, is dropped,
//! and the session continues.
//!
//! Over QUIC and SCTP, an end that accepts packets as datagrams or messages, too, says so first: by a byte 0 in the
//! place of a packet, with its length. The other end may then send any packet as a QUIC datagram (RFC 9221), which
//! contains that packet and nothing else, or as an unordered SCTP message on stream 1023, which does the same, and
//! others through the channel as before. An end that does not know this byte drops it, as it is no packet. There are
//! messages only where DTLS is below SCTP, which drops what arrives a second time, and once in a session: a second
//! PACKETS channel uses its channel only.
//!
//! ## Bounds
//!
//! A server has at most 512 sessions, each with at most 64 listeners, and 65,536 channels in all of them together.
//! [`session::SessionLimits`] names the other limits: 32 further streams, 4096 channels in each direction, 64 KiB
//! for a new channel, at most 4 MiB for one that is read as fast as it is filled, 512 KiB for packets, 64 MiB of
//! such growth in all channels together, and 256 KiB waiting to be sent on each. Apart from data, a channel queues
//! each kind of frame at most once, so no flood of frames grows a queue; a peer that requests more channels than
//! allowed and reads no answer is disconnected.

#![forbid(unsafe_code)]
// What only fuzzers reach is public with `internals` alone.
#![cfg_attr(not(feature = "internals"), allow(unreachable_pub))]

mod client;
mod client_session;
mod demand;
mod doubt;
mod dynamic;
mod error;
pub mod forward;
mod frame;
pub mod keys;
mod leases;
mod link;
mod liveness;
mod local;
mod notice;
mod packet_counts;
mod packets;
mod paths;
mod ports;
mod probing;
mod proxied;
mod server;
mod server_tunnel;
mod session;
mod sessions;
mod setup;
mod shares;
mod sockets;
mod transport;
mod vigil;

pub use client::{ClientForwards, TunnelClient};
pub use error::{ProxyFault, TunnelError};
pub use frame::{ALPN, ChannelPurpose, ProtocolViolation, RefuseReason, UnixPath};
pub use notice::TunnelNotice;
pub use packet_counts::PacketCounts;
pub use packets::{InterfaceConfig, TunnelInterface};
pub use paths::PathReading;
pub use probing::ProbingTimes;
pub use proxied::ServerProxy;
pub use server::{GrantLookup, TunnelServer};
pub use server_tunnel::{ServerTunnel, reach};
pub use session::{
    ChannelReading, ChannelTraffic, ServerLimits, SessionEnd, SessionLimits, TunnelLane,
};
pub use sessions::{CurrentSessions, SessionPresence, SessionReading};
pub use transport::SessionTransport;

/// The destinations, rules and other proxies of a tunnel.
pub use eyas_relay as relay;

/// The pure parts behind a tunnel, for fuzzers: they may change with every version.
#[cfg(feature = "internals")]
pub mod internals {
    pub use crate::packets::{
        LIFETIME, MAX_BYTES, MAX_PACKETS, PacketHeader, PacketQueue, PeerRoutes, TakenNetwork,
        framing,
    };
    pub use crate::session::{
        ChannelAnswer, ReadResult, SessionEvent, SessionSide, TRANSMIT, TunnelSession,
    };

    /// The frames of the protocol.
    pub mod frame {
        pub use crate::frame::{
            HEADER, MAX_DATA, MAX_PAYLOAD, TunnelFrame, VERSION, decode, encode,
        };
    }
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
