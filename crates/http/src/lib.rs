//! HTTP/1.1, 2 and 3 over eyas.
//!
//! | module or type | purpose | source |
//! | --- | --- | --- |
//! | [`Client`] | the client: sends requests over the best transport that works | RFC 9110, 9112, 9113, 9114 |
//! | [`Direct`], [`DirectConnection`] | connections without a pool, for load generators and the like | |
//! | [`Client::connect`], [`Tunnel`] | a byte stream through a proxy | RFC 9110 §9.3.6 |
//! | [`Reuse`] | how a connection from the pool fared under a request | |
//! | [`HttpPolicy`] | how HTTP/3 and the older versions are tried | HEv3, RFC 7838 |
//! | [`Body`] | request and response bodies, in memory or streaming | |
//! | `multipart` | forms with files (feature `multipart`) | RFC 7578 |
//! | [`Error`], [`Kind`] | what went wrong, with which candidate, and what to do next | |
//! | `alt_svc` | alternative services: parser, cache, broken alternatives (feature `internals`) | RFC 7838 |
//! | `connector` | connectors for other clients: hyper-util's, tonic, ureq (feature `connector`) | |
//! | [`serve`], [`Server`] | a server for any tower service, with all versions on one port | |
//! | [`EarlyAnswer`], [`InformationalLimit`], [`Patience`] | parts of a client, for proxies that have one of their own | |
//! | [`pipe`] | a byte stream as a body, for tunnels | RFC 9110 §9.3.6 |
//! | [`metrics`] | a metrics page for Prometheus, at an address of its own | |
//!
#![cfg_attr(feature = "client", doc = "```no_run")]
#![cfg_attr(not(feature = "client"), doc = "```ignore")]
//! # async fn example() -> Result<(), eyas_http::Error> {
//! let client = eyas_http::Client::builder().build()?;
//! let response = client.get("https://example.com/").send().await?;
//! println!("{:?} over {}", response.version(), response.connection().transport);
//! println!("{}", response.text().await?);
//! # Ok(())
//! # }
//! ```
//!
//! A server of your own application, an `axum::Router` or any other tower service:
//!
#![cfg_attr(feature = "server", doc = "```no_run")]
#![cfg_attr(not(feature = "server"), doc = "```ignore")]
//! # async fn example(app: axum::Router) -> Result<(), eyas_http::serve::ServeError> {
//! use eyas_http::Server;
//!
//! let server = Server::builder().names(["example.com"]);
//! let running = server.service(app).start().await?;
//! println!("https://localhost:{}/", running.local_addr().port());
//! # Ok(())
//! # }
//! ```
//!
//! # Events
//!
//! A client reports its requests as `tracing` events at level `debug` under the target `eyas_http::request`: `request`
//! when one is sent on a connection, and `reuse` if the connection had carried one before, with `host`, `transport` and
//! `remote`. The target and the messages are stable. The races below report theirs under `eyas::race` (see the crate
//! `eyas`). [`Client::stats`] counts. A server reports each request at level `info` under the target
//! `eyas_http::serve::access`, with `remote`, `version`, `method` and `path`, which is without the query.
//!
//! Features: `client` and `server` enable one half each; `cookies`, `compression`, `json`, `form`, `multipart`, `connector` and `ureq` extend the client; `sctp` adds SCTP to both halves, and 31 crates to the 188 of the default features; `internals` exposes `alt_svc`, without stability guarantees.
//! The first four are on by default.
//!
//! Deliberately absent: an upgrade of `http` URLs by HTTPS records (RFC 9460 §9.5), an upgrade
//! to HTTP/2 without TLS, server push, and HTTP/2 ALTSVC frames, which the HTTP/2 library does not expose.

#[cfg(feature = "internals")]
pub mod alt_svc;
// Much of it is only used by the client and `internals`.
#[cfg(not(feature = "internals"))]
#[cfg_attr(not(feature = "internals"), allow(dead_code, unreachable_pub, unused_imports))]
mod alt_svc;
#[cfg(feature = "connector")]
pub mod connector;
#[cfg(feature = "server")]
pub mod metrics;
#[cfg(feature = "multipart")]
pub mod multipart;
#[cfg(any(feature = "client", feature = "server"))]
pub mod pipe;
#[cfg(feature = "server")]
pub mod proxy_protocol;
#[cfg(feature = "server")]
pub mod serve;

#[cfg(feature = "client")]
mod body;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod connection_report;
#[cfg(feature = "client")]
mod destination;
#[cfg(feature = "client")]
mod error;
#[cfg(any(feature = "client", feature = "server"))]
mod http3;
#[cfg(feature = "client")]
mod pool;
#[cfg(feature = "client")]
mod protocol;
#[cfg(feature = "client")]
mod reuse;
mod version;
#[cfg(feature = "client")]
mod zoned_url;

#[cfg(feature = "client")]
pub use body::Body;
#[cfg(feature = "cookies")]
pub use client::CookieJar;
#[cfg(feature = "client")]
pub use client::{
    Client, ClientBuilder, ClientStats, Connected, CookieStore, Direct, DirectConnection,
    HttpPolicy, Proxy, Redirect, RequestBuilder, Response, Reuse, ReuseVerdict, Tunnel,
};
#[cfg(feature = "client")]
pub use error::{Error, Kind, shortened, text_without_password, without_password};
#[cfg(any(feature = "client", feature = "server"))]
pub use http3::{HttpDatagrams, StreamDatagrams};
#[cfg(feature = "client")]
pub use pool::PoolLimits;
// For proxies with a client of their own, such as a gateway.
#[cfg(feature = "client")]
pub use protocol::{
    EarlyAnswer, Http3Body, Http3Failure, Http3FailureKind, Http3Sender, Http3Stream,
    InformationalLimit, InputEnd, Patience, TooManyInformational,
};
#[cfg(feature = "server")]
pub use serve::Server;
pub use version::{Versions, version_name};
#[cfg(feature = "client")]
pub use zoned_url::{UrlError, host_of, parse_url};

/// Compiles the examples of the README.
#[cfg(all(doctest, feature = "client", feature = "server"))]
#[doc = include_str!("../README.md")]
struct Readme;
