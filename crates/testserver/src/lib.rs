//! The site of `eyas serve`, and a test server that misbehaves on purpose, for `eyas demo`, tests and
//! benchmarks.
//!
//! ```
//! # async fn example() -> Result<(), eyas_http::serve::ServeError> {
//! use eyas_testserver::{ServerPersonality, TestAuthority};
//!
//! let authority = TestAuthority::new(["peer.test"])?;
//! let server = ServerPersonality::UdpSwallowed.start(&authority).await?;
//! // A client that trusts `authority.root()` reaches it over TCP and never over QUIC.
//! println!("https://localhost:{}/", server.local_addr().port());
//! # Ok(())
//! # }
//! ```
//!
//! A [`Site`](site::Site) is the service that answers requests, for
//! [`ServerBuilder::service`](eyas_http::serve::ServerBuilder::service). A [`ServerPersonality`] is a name
//! for a pair of [`TransportFace`]s: the behaviour of the server over TCP and over QUIC, at one address.
//! [`TestServer::start`] accepts any pair, and several addresses on one port.

#![forbid(unsafe_code)]

mod authority;
mod face;
mod personality;
mod silent;
pub mod site;
mod stage;
mod tcp_shim;
mod udp_shim;

pub use authority::TestAuthority;
pub use face::{SctpFace, ServerCredentials, ServerFaces, TransportFace, TransportReach};
pub use personality::{ServerPersonality, TransportSide};
pub use stage::TestServer;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
