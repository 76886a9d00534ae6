//! The HTTP server: HTTP/1.1, 2 and 3 on one port number, over TCP, QUIC and SCTP.
//!
//! It serves any tower service passed to [`ServerBuilder::service`], such as an `axum::Router`.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use axum::{Extension, Router, routing::get};
//! use eyas_http::serve::{PeerInfo, Server};
//!
//! async fn greet(Extension(peer): Extension<PeerInfo>) -> String {
//!     format!("Hello {}, you came over {}.\n", peer.remote, peer.transport)
//! }
//!
//! let app = Router::new().route("/", get(greet));
//! let server = Server::builder().listen("[::]:4433".parse()?).mptcp(true);
//! let running = server.service(app).start().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The files:
//!
//! | file | purpose |
//! | --- | --- |
//! | `server`, `running` | building and starting; stopping |
//! | `stream`, `stream_server`, `preface` | TCP and TLS, streams accepted elsewhere; HTTP/1, by hyper |
//! | `http2` | HTTP/2, by h2 |
//! | `quic` | HTTP/3, by quinn and h3 |
//! | `sctp` | HTTP/1 over SCTP, on stream 0 of an association (feature `sctp`) |
//! | `workers` | threads that serve byte streams |
//! | `shared` | the state shared by all connections |
//! | `answer`, `service`, `fields`, `date` | answering requests |
//! | `tls`, `by_name` | certificates, its own and those of clients |
//! | `balancers` | clients behind a load balancer, by the PROXY protocol |
//! | `cleartext` | clients that speak HTTP without TLS to a port with TLS |
//! | `link` | details of a connection |
//! | `upgrade` | CONNECT and extended CONNECT over HTTP/2 and HTTP/3 |
//! | `interim` | interim responses of a service |
//! | `admission`, `budget`, `limits` | limits per peer and in total |
//! | `activity`, `pace`, `turn` | timeouts, and which side is responsible for them |
//! | `rare` | polls for what ends a connection |
//! | `exchange` | one request and its response |
//! | `request_body`, `content`, `body`, `piece` | bodies: what is read, what is sent, and how much of it has been sent |
//! | `source`, `metered` | content that accounts for the memory it uses |
//! | `malformed` | requests that no service and no gateway should see |
//! | `reply` | the server's own responses |
//! | `access` | entries of the access log |
//! | `metrics` | the server's activity and cost, for Prometheus |
//!
//! # From a request to its response
//!
//! ```text
//! stream (hyper, HTTP/1) ─┐
//! http2  (h2)            ─┼─▶ answer ─▶ Application ─▶ the caller's tower service
//! quic   (h3)            ─┘     ▲
//!                               │ RequestBody in, Content out
//! ```
//!
//! `answer` rejects requests that no service should see (425, 413, and what `malformed` finds),
//! counts and logs, calls the only `Application`, and completes the fields. The service is behind
//! that one trait object, so no protocol is generic. If it fails or panics, the response becomes a
//! 500, or ends early if it has begun.
//!
//! A `Turn` records whom an exchange waits for. While that is the service, nothing is held against
//! the peer; while the service waits for the request's body, the peer must make progress. Over
//! HTTP/2 the service is polled for its next bytes before more than one byte of the connection's
//! window is requested, since a silent response would otherwise keep the window from others.
//!
//! # What is held for peers
//!
//! `budget` counts bytes, open files and requests in flight, for each connection and in total, and
//! no part of a response is read before a byte of it can be sent. hyper polls a body without saying
//! how many bytes there is room for, which is why HTTP/2 uses h2 directly. A `Piece` releases its
//! budget once the transport has taken it; `Flow` tracks how much of a response has been sent, and
//! `Pace` ends one that is too slow. A shortage never aborts a response that has begun: without
//! room it continues in pieces of 4 KiB. The frames of a service's body are produced before there
//! is room for them, one for each response; bodies of the module `metered` (files and listings of
//! `eyas serve`) are asked for as many bytes as can be sent.
//!
//! # What is replaced while a server runs
//!
//! Certificates and the CAs of clients are behind locks that a handshake reads once, so replacing
//! them touches no connection, and a half-loaded state is never seen. A load balancer's connection
//! is read up to the end of its PROXY header before anything else happens with it; no other part
//! knows of balancers.

mod access;
mod activity;
mod admission;
mod alt_svc;
mod answer;
mod balancers;
mod body;
mod body_error;
mod budget;
mod by_name;
mod cleartext;
mod content;
mod date;
mod error;
mod exchange;
mod fault;
mod fields;
mod http2;
mod interim;
mod limits;
mod lingering;
mod link;
pub mod malformed;
pub mod metered;
mod metrics;
mod notices;
mod pace;
mod piece;
mod preface;
mod quic;
mod rare;
mod reply;
mod request_body;
mod request_line;
mod running;
#[cfg(feature = "sctp")]
mod sctp;
mod server;
mod service;
mod shared;
mod source;
mod stats;
mod stream;
mod stream_server;
mod tls;
mod turn;
mod upgrade;
mod workers;

pub use eyas::ServerIdentity;

use crate::Versions;

pub use self::{
    access::Access,
    admission::Transport,
    alt_svc::AltSvcPolicy,
    error::ServeError,
    interim::InterimResponses,
    limits::Limits,
    link::PeerInfo,
    request_body::{RequestBody, RequestBodyError},
    running::Running,
    server::{Server, ServerBuilder},
    stats::Stats,
    stream_server::StreamServer,
    tls::ClientCertificates,
};

#[cfg(feature = "sctp")]
pub use self::sctp::SctpService;

pub use self::fault::FaultConfig;
