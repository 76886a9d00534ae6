//! HTTP/3 (RFC 9114) over QUIC, for client and server: the driver of [`eyas_h3`], which knows the protocol.
//!
//! | part | job |
//! | --- | --- |
//! | [`transport`] | what HTTP/3 needs of QUIC, implemented [by quinn](over_quinn) |
//! | [`connection`] | what the streams of a connection share: the core behind one lock, which is taken for field sections and control streams only |
//! | [`side_streams`] | the unidirectional streams of both ends, in one task |
//! | [`sending`], [`receiving`] | the halves of a request's stream, which own their parts of the core: content passes without a lock, a task or a copy |
//! | `client`, `server` | opening and accepting requests, and their heads |
//! | [`message`] | the fields of messages as those of the http crate, and back |
//! | [`datagrams`] | HTTP Datagrams (RFC 9297) |
//!
//! What the halves promise: a response counts as sent only once the peer has acknowledged it, so that a graceful shutdown
//! loses nothing; a stream that is dropped midway is reset, not finished as if it were complete; and the peer's window
//! follows the reader.

#[cfg(feature = "client")]
mod client;
mod connection;
mod datagrams;
mod error;
mod message;
mod over_quinn;
mod receiving;
mod sending;
#[cfg(feature = "server")]
mod server;
mod side_streams;
mod transport;

use quinn::ConnectionStats;

pub use self::datagrams::{HttpDatagrams, StreamDatagrams};
#[cfg(feature = "client")]
pub(crate) use self::{client::ClientConnection, connection::ServerSettings};
pub(crate) use self::{
    connection::ConnectionOptions, datagrams::ConnectionDatagrams, error::StreamError,
    receiving::Receiving, sending::Sending,
};
#[cfg(feature = "server")]
pub(crate) use self::{
    error::ConnectionEnd,
    server::{RequestStream, ServerConnection, response_content},
    side_streams::SideStreams,
};

/// Returns the number of frames received, whose packets were authenticated.
pub(crate) fn frames_received(stats: &ConnectionStats) -> u64 {
    let frames = &stats.frame_rx;
    frames.acks
        + frames.stream
        + frames.datagram
        + frames.ping
        + frames.max_data
        + frames.max_stream_data
        + frames.max_streams_bidi
        + frames.max_streams_uni
        + frames.new_connection_id
        + frames.reset_stream
        + frames.stop_sending
}
