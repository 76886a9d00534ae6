//! The HTTP server: HTTP/1.1, 2 and 3 on one port number, over TCP, QUIC and SCTP.
//!
//! What it serves is what [`ServerBuilder::service`] is given: any tower service, such as an
//! `axum::Router`.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use axum::{Extension, Router, routing::get};
//! use eyas_http::serve::{PeerInfo, SctpService, Server};
//!
//! async fn greet(Extension(peer): Extension<PeerInfo>) -> String {
//!     format!("Hello {}, you came over {}.\n", peer.remote, peer.transport)
//! }
//!
//! let app = Router::new().route("/", get(greet));
//! let server = Server::builder().listen("[::]:4433".parse()?).mptcp(true);
//! let running = server.sctp(SctpService::default()).service(app).start().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Where things are:
//!
//! | file | job |
//! | --- | --- |
//! | `server`, `running` | building, starting; stopping |
//! | `stream`, `stream_server`, `preface` | TCP and TLS, streams of others; HTTP/1, by hyper |
//! | `http2` | HTTP/2, by h2 |
//! | `quic` | HTTP/3, by quinn and h3 |
//! | `sctp` | HTTP/1 over SCTP, on stream 0 of an association |
//! | `shared` | what all connections have in common |
//! | `answer`, `service`, `fields` | a request to its response, whoever gives it |
//! | `link` | what is known of a connection |
//! | `interim` | what a service says before its response |
//! | `admission`, `budget`, `limits` | what a peer may take |
//! | `activity`, `pace`, `turn` | for how long, and whom that is up to |
//! | `exchange` | one request and its response |
//! | `request_body`, `content`, `body`, `piece` | what is read, what is sent, and what of it has left |
//! | `source`, `metered` | content that accounts for what it holds |
//! | `reply` | the responses that the server itself makes |
//! | `access` | what an access log says of a request |
//! | `metrics` | what the server does and costs, for Prometheus |

mod access;
mod activity;
mod admission;
mod alt_svc;
mod answer;
mod body;
mod body_error;
mod budget;
mod content;
mod error;
mod exchange;
mod fault;
mod fields;
mod http2;
mod interim;
mod limits;
mod link;
// For eyas-testserver: no part of what programs are promised.
#[doc(hidden)]
pub mod metered;
mod metrics;
mod notices;
mod pace;
mod piece;
mod preface;
mod quic;
mod reply;
mod request_body;
mod running;
mod sctp;
mod server;
mod service;
mod shared;
mod source;
mod stats;
mod stream;
mod stream_server;
mod turn;

pub use eyas::ServerIdentity;

use crate::Versions;

pub use self::{
    access::Access,
    admission::Transport,
    alt_svc::AltSvcPolicy,
    error::ServeError,
    interim::InterimResponses,
    limits::Limits,
    link::{ConnectProtocol, PeerInfo},
    request_body::{RequestBody, RequestBodyError},
    running::Running,
    sctp::SctpService,
    server::{Server, ServerBuilder},
    stats::Stats,
    stream_server::StreamServer,
};

// For servers that are meant to fail: no part of what programs are promised.
#[doc(hidden)]
pub use self::fault::FaultConfig;
