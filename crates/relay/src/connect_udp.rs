//! UDP over HTTP: CONNECT-UDP (RFC 9298).
//!
//! | module or function | job |
//! | --- | --- |
//! | [`capsule`] | datagrams in a byte stream; pure |
//! | [`path`], [`destination`] | the path of a request, and the destination that it names; pure |
//!
//! A tunnel is a stream of capsules, at both ends and over every version of HTTP
//! (`eyas_http::Client::upgrade`); over HTTP/3 also QUIC DATAGRAM frames beside it. It never queues more than
//! its bound: what arrives beyond that is left to the system, or dropped.

pub mod capsule;
mod serve;
mod stream;
mod target;
mod unanswered;

pub(crate) use serve::{UdpRoute, forward, reach, serve};
pub(crate) use stream::{CapsuleStream, Event};
pub(crate) use target::{CAPSULE_PROTOCOL, asks_for_udp};
pub use target::{PROTOCOL, destination, path};
pub(crate) use unanswered::Unanswered;
