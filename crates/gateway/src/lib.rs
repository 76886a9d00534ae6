//! A gateway (RFC 9110 §3.7): a service that forwards each request to an upstream, which is any web server, over
//! HTTP/1.1, HTTP/2 or HTTP/3.
//!
//! | module or type | job | source |
//! | --- | --- | --- |
//! | [`Gateway`], [`GatewayBuilder`] | the service, and its configuration | |
//! | `limits` | times and sizes | |
//! | [`Upstream`] | the address of the upstream | RFC 3986, RFC 9110 §4.2 |
//! | `validation` | which requests are rejected before the upstream sees them | RFC 9110, RFC 9112 §11, RFC 9113 §8.2, §8.3 |
//! | `fields` | which fields are forwarded | RFC 9110 §7.6.1 |
//! | `forwarded` | the client's address, and the host that it requested | RFC 7239 |
//! | `head` | the head of the request for the upstream | RFC 9112 §3.2.1 |
//! | `request_body`, `response_body` | data and trailers in both directions; checks the announced length | RFC 9112 §6 |
//! | `received` | a response over any version, and what is checked of one over HTTP/3 | RFC 9114 §4.1.2 |
//! | `expect` | when a body may be sent | RFC 9110 §10.1.1 |
//! | `interims` | informational responses | RFC 9110 §15.2 |
//! | `dial`, `handshake`, `pool` | new and kept connections to the upstream | RFC 9112 §9 |
//! | `connection` | a connection to the upstream, and what a request needs of it | RFC 9112 §9 |
//! | `http1_connection` | one over HTTP/1.1 | RFC 9112 §9 |
//! | `multiplexed` | the head of a request on a stream of HTTP/2 or HTTP/3 | RFC 9113 §8.3.1, RFC 9114 §4.3.1 |
//! | `share` | a stream's share of a connection over HTTP/2 or HTTP/3 | RFC 9113 §5, RFC 9114 §4.1 |
//! | `forward` | sends a request and waits for its response; retries where that is safe | RFC 9110 §9.2.2 |
//! | `attempt` | what it means that there was no response | RFC 9110 §9.2.2, RFC 9114 §4.1.1 |
//! | `settings` | whether an upstream over HTTP/2 takes WebSockets | RFC 8441 §3 |
//! | `websocket`, `websocket_stream` | WebSockets over HTTP/1.1, and on a stream to the upstream | RFC 6455, RFC 8441, RFC 9220 |
//! | `tunnel` | upgraded connections | RFC 9110 §7.8 |
//! | `failure`, `notices` | why there was no response: for the client, and for the operator | RFC 9110 §15.6 |
//!
//! ```no_run
//! use eyas_http::Server;
//! use eyas_gateway::Gateway;
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = Gateway::builder("http://127.0.0.1:3000".parse()?).build()?;
//! let running = Server::builder().names(["example.org"]).service(gateway).start().await?;
//! println!("https://localhost:{}/", running.local_addr().port());
//! # Ok(())
//! # }
//! ```
//!
//! The server in front enforces the limits on clients. A request has the form of HTTP/1.1 until it is sent, so
//! that it may be repeated over any version. `validation` is stricter than the parsers of the three versions,
//! and nothing is written before a request has passed it; `fields` and `head` build the forwarded head from
//! what was understood, never from the raw input. A body is held to its announced length, because HTTP/3 does
//! not enforce it. How the end of a body was signalled on one side has no influence on the other.

#![forbid(unsafe_code)]

mod attempt;
mod builder;
mod connection;
mod dial;
mod expect;
mod failure;
mod fields;
mod forward;
mod forwarded;
mod handshake;
mod head;
mod http1_connection;
mod interims;
mod limits;
mod multiplexed;
mod notices;
mod peer;
mod pool;
mod received;
mod request_body;
mod response_body;
mod service;
mod settings;
mod share;
mod shared;
mod stats;
mod tunnel;
mod upgrade;
mod upstream;
mod validation;
mod websocket;
mod websocket_stream;

pub use builder::{GatewayBuilder, GatewayError};
pub use forwarded::{NetworkError, TrustedNetwork};
pub use limits::GatewayLimits;
pub use response_body::{ResponseBody, ResponseBodyError};
pub use service::Gateway;
pub use stats::GatewayStats;
pub use upstream::{Upstream, UpstreamError};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
