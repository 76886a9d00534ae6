//! For programs without support for eyas: a SOCKS and HTTP proxy that races to every destination.
//!
//! | module or type | job | source |
//! | --- | --- | --- |
//! | [`users`] | the users of a proxy | RFC 1929, RFC 7617 |
//! | [`Proxy`] | the proxy: its sockets, clients and races | |
//! | [`ProxyClientReport`], [`ProxyStats`] | the outcome of one client, and of all | |
//! | [`relay`] | what it shares with the tunnel and the gateway: requests, destinations, rules, other proxies | |
//!
//! ```no_run
//! use eyas::{Endpoint, MemoryStore};
//! use eyas_proxy::Proxy;
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = Endpoint::builder().memory(MemoryStore::default()).build()?;
//! let running = Proxy::builder(endpoint).start()?;
//! println!("export ALL_PROXY=socks5h://{}", running.local_addr());
//! # tokio::time::sleep(std::time::Duration::from_secs(60)).await;
//! running.shutdown().await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
// What only fuzzers and tests reach is public with `internals` alone.
#![cfg_attr(not(feature = "internals"), allow(unreachable_pub))]

mod admission;
mod associate;
mod client;
mod client_hello;
mod connect;
mod connect_udp;
mod connection;
mod guesses;
mod interception;
mod limits;
mod metrics;
mod peers;
mod report;
mod requester;
mod server;
mod shared;
mod stats;
mod streams;
mod traffic;
mod unanswered;
pub mod users;

pub use eyas_relay as relay;
pub use interception::{HOST, PEER};
pub use limits::ProxyLimits;
pub use report::{ClientEnding, DatagramReport, DropReason, ProxyClientReport, WonBy};
pub use server::{Proxy, ProxyBuilder, ProxyError, RunningProxy};
pub use stats::ProxyStats;

/// The pure parts behind a proxy, for fuzzers and tests: they may change with every version.
#[cfg(feature = "internals")]
pub mod internals {
    pub use crate::associate::datagram;
    pub use crate::client_hello::{FirstFlight, first_flight};
    pub use crate::connect_udp::capsule;
    pub use crate::interception::{
        FlowDenial, FlowTranslator, ProgramFlow, RepresentedNames, TranslatorOutput, dns,
    };
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
