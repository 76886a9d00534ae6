//! What the proxy (`eyas-proxy`), the gateway (`eyas-gateway`) and the tunnel (`eyas-tunnel`) share.
//!
//! | module | job | source |
//! | --- | --- | --- |
//! | [`destination`] | a destination, and why it is refused; pure | RFC 1928 §6, RFC 9110 §15 |
//! | [`handshake`] | the messages of a client that requests a destination; pure | RFC 1928, RFC 1929, RFC 9110 §9.3.6 |
//! | [`body`] | the end of the body of a request; pure | RFC 9112 §6, §7.1 |
//! | [`connect_udp`] | the path of a request for datagrams; pure | RFC 9298 |
//! | [`rules`] | the destinations that clients may use; pure | RFC 6890 |
//! | [`permitted`] | a race to those addresses of a destination that the rules allow | |
//! | [`via`] | another proxy, through which destinations are reached | RFC 9110 §9.3.6, RFC 9113 §8.5, RFC 9114 §4.4 |
//! | [`destination_stream`] | the stream to a destination, directly or through another proxy | |
//! | [`accept`], [`copy`] | accepting connections, and joining two streams | |
//! | [`device`], [`packet`] | a TUN device, and the packets that are read from it | RFC 791, RFC 8200 |
//! | [`proxy_status`], [`pseudonym`] | why a response comes from a proxy, and how that recognises its own requests | RFC 9209, RFC 9110 §7.6.3 |
//!
//! ```
//! use eyas_relay::handshake::{HandshakeRequest, HandshakeStep, ProxyHandshake};
//!
//! // What a SOCKS5 client sends first: its methods, and then the destination.
//! let mut handshake = ProxyHandshake::new(false);
//! handshake.receive(&[5, 1, 0]);
//! assert_eq!(handshake.step(), HandshakeStep::Send(vec![5, 0].into()));
//! handshake.receive(b"\x05\x01\x00\x03\x0bexample.org\x01\xbb");
//! let HandshakeStep::Request(HandshakeRequest::Connect(destination)) = handshake.step() else { panic!() };
//! assert_eq!(destination.to_string(), "example.org:443");
//! ```

#![forbid(unsafe_code)]

pub mod accept;
pub mod body;
pub mod connect_udp;
pub mod copy;
pub mod destination;
pub mod destination_stream;
pub mod device;
pub mod handshake;
pub mod packet;
pub mod permitted;
pub mod proxy_status;
pub mod pseudonym;
pub mod rules;
pub mod via;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
