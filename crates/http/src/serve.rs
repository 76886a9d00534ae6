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
//! | `shared` | the state shared by all connections |
//! | `answer`, `service`, `fields` | answering requests |
//! | `tls`, `by_name` | certificates, its own and those of clients |
//! | `balancers` | clients behind a load balancer, by the PROXY protocol |
//! | `cleartext` | clients that speak HTTP without TLS to a port with TLS |
//! | `link` | details of a connection |
//! | `interim` | interim responses of a service |
//! | `admission`, `budget`, `limits` | limits per peer and in total |
//! | `activity`, `pace`, `turn` | timeouts, and which side is responsible for them |
//! | `exchange` | one request and its response |
//! | `request_body`, `content`, `body`, `piece` | bodies: what is read, what is sent, and how much of it has been sent |
//! | `source`, `metered` | content that accounts for the memory it uses |
//! | `reply` | the server's own responses |
//! | `access` | entries of the access log |
//! | `metrics` | the server's activity and cost, for Prometheus |

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
mod error;
mod exchange;
mod fault;
mod fields;
mod http2;
mod interim;
mod limits;
mod lingering;
mod link;
// For eyas-testserver; not part of the stable API.
#[doc(hidden)]
pub mod malformed;
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
    server::{Server, ServerBuilder},
    stats::Stats,
    stream_server::StreamServer,
    tls::ClientCertificates,
};

#[cfg(feature = "sctp")]
pub use self::sctp::SctpService;

// For servers that fail on purpose; not part of the stable API.
#[doc(hidden)]
pub use self::fault::FaultConfig;
