//! UDP over HTTP: CONNECT-UDP (RFC 9298).
//!
//! | module | job |
//! | --- | --- |
//! | [`capsule`] | datagrams in a byte stream; pure |
//!
//! The path of a request, and the destination that it names, are those of [`eyas_relay::connect_udp`].
//!
//! A tunnel is a stream of capsules, at both ends and over every version of HTTP
//! (`eyas_http::Client::upgrade`); over HTTP/3 also QUIC DATAGRAM frames beside it. It never queues more than
//! its bound: what arrives beyond that is left to the system, or dropped.

pub mod capsule;
mod serve;
mod stream;

pub(crate) use serve::{UdpRoute, forward, reach, serve};
pub(crate) use stream::{CapsuleEvent, CapsuleStream};
