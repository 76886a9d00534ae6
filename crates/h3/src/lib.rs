//! HTTP/3 ([RFC 9114](https://www.rfc-editor.org/rfc/rfc9114)) with QPACK
//! ([RFC 9204](https://www.rfc-editor.org/rfc/rfc9204)) without I/O.
//!
//! The bytes of QUIC's streams go in; bytes, events and error codes come out. There are no sockets, no
//! clock and no randomness here, so the same inputs give the same outputs, byte for byte.
//!
//! ```text
//!                 a request's stream                         unidirectional streams
//!             ┌──────────┴───────────┐                  ┌───────────────┴──────────────┐
//!   bytes ──▶ RequestReceiver     RequestSender ──▶ bytes    Connection: settings, GOAWAY,
//!                │  encoded field sections ▲               priorities, QPACK, datagrams
//!                └──────────▶ decode_section, encode_section ◀──────┘
//!                                    │
//!                             message::check_…
//! ```
//!
//! A driver owns the parts separately: each half of a request's stream where it reads or writes the
//! stream, and one [`Connection`](connection::Connection) behind a lock, which it takes for heads and
//! control streams alone. [`WholeConnection`](whole::WholeConnection) is all of it in one type.
//!
//! | module | purpose | source |
//! | --- | --- | --- |
//! | [`connection`] | settings, the end of a connection, unidirectional streams | RFC 9114 §5 to §7 |
//! | [`request`] | the halves of a request's stream | RFC 9114 §4.1, §4.4 |
//! | [`message`] | well-formed heads and trailers | RFC 9114 §4.2 to §4.5, §10.3 |
//! | [`qpack`] | field compression | RFC 9204 |
//! | [`frame`], [`frame_type`], [`settings`] | the wire | RFC 9114 §7 |
//! | [`stream`], [`varint`] | what they take from QUIC | RFC 9000 §2.1, §16 |
//! | [`code`], [`fault`] | what a peer did wrong, and its code | RFC 9114 §8 |
//! | [`misuse`] | what the local caller did wrong | |
//! | [`priority`] | which response goes first | RFC 9218 |
//! | [`datagram`], [`capsule`] | HTTP Datagrams | RFC 9297 |
//! | [`whole`] | a connection with all of its requests | |
//!
//! # Errors
//!
//! What a peer does wrong is a [`Fault`] and comes as an output: a [`ConnectionFault`] ends the
//! connection, a [`StreamFault`] one request. Each says the rule that was broken, its section and its
//! [`ErrorCode`]. An `Err` of a call because of its own arguments is a [`Misuse`]; then nothing has
//! changed.
//!
//! # Bounds
//!
//! | what a peer can make grow | bound |
//! | --- | --- |
//! | a field section | [`max_field_section_size`](connection::ConnectionConfig::max_field_section_size) |
//! | interim responses | [`MAX_INTERIM_RESPONSES`](request::MAX_INTERIM_RESPONSES) |
//! | frames of the control stream | [`MAX_CONTROL_FRAME`](connection::MAX_CONTROL_FRAME) |
//! | frames of unknown types | [`MAX_IGNORED_FRAME`](frame::MAX_IGNORED_FRAME), skipped unbuffered |
//! | settings | [`MAX_SETTINGS`](settings::MAX_SETTINGS) |
//! | unidirectional streams without a type | [`MAX_UNDETERMINED_STREAMS`](connection::MAX_UNDETERMINED_STREAMS) |
//! | priorities of requests to come | [`MAX_PENDING_PRIORITIES`](connection::MAX_PENDING_PRIORITIES) |
//! | origins | [`MAX_ORIGINS`](connection::MAX_ORIGINS) |
//! | instructions that the peer does not read | [`MAX_UNSENT`](connection::MAX_UNSENT) |
//! | the table of fields | [`qpack_max_table_capacity`](connection::ConnectionConfig::qpack_max_table_capacity) |
//! | sections that wait for it | [`qpack_blocked_streams`](connection::ConnectionConfig::qpack_blocked_streams), [`MAX_SECTIONS_OF_BLOCKED_STREAM`](qpack::MAX_SECTIONS_OF_BLOCKED_STREAM) each |
//! | values of capsules | what a [`CapsuleReader`](capsule::CapsuleReader) is created with |
//! | requests of a whole connection | [`MAX_OPEN_STREAMS`](whole::MAX_OPEN_STREAMS) |
//!
//! The outputs of one input are bounded by its size: take them before the next. QUIC bounds the rest, by
//! its flow control and its limit of streams.
//!
//! # What is left out
//!
//! Pushes: a client never allows one, and a server never sends one.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod capsule;
pub mod code;
pub mod connection;
pub mod datagram;
pub mod fault;
pub mod frame;
pub mod frame_type;
pub mod message;
pub mod misuse;
pub mod priority;
pub mod qpack;
pub mod request;
pub mod settings;
pub mod stream;
pub mod varint;
pub mod whole;

pub use code::ErrorCode;
pub use fault::{ConnectionFault, Fault, StreamFault};
pub use misuse::Misuse;
pub use stream::{Role, StreamId};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
