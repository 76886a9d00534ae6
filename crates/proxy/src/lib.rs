//! For programs without support for eyas: a SOCKS and HTTP proxy that races to every destination.
//!
//! | module or type | job | source |
//! | --- | --- | --- |
//! | [`client_hello`] | whether a client's first bytes may be sent to several servers; pure | RFC 8446 §4.1.2 |
//! | [`associate`] | UDP for SOCKS5 clients; pure except for its sockets | RFC 1928 §7 |
//! | [`connect_udp`] | UDP over HTTP; pure except for its sockets and streams | RFC 9298, RFC 9297 |
//! | [`interception`] | programs whose connections are intercepted | RFC 9110 §3.7 |
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

mod admission;
pub mod associate;
mod client;
pub mod client_hello;
mod connect;
pub mod connect_udp;
mod connection;
mod guesses;
pub mod interception;
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
pub use limits::ProxyLimits;
pub use report::{ClientEnding, DatagramReport, DropReason, ProxyClientReport, WonBy};
pub use server::{Proxy, ProxyBuilder, ProxyError, RunningProxy};
pub use stats::ProxyStats;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
