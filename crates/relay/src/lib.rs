//! For programs without support for eyas: a SOCKS and HTTP proxy that races to every destination.
//!
//! | module or type | job | source |
//! | --- | --- | --- |
//! | [`handshake`] | the messages of a client before its own data; pure | RFC 1928, RFC 1929, RFC 9110 §9.3.6 |
//! | [`body`] | the end of the body of a request; pure | RFC 9112 §6, §7.1 |
//! | [`client_hello`] | whether a client's first bytes may be sent to several servers; pure | RFC 8446 §4.1.2 |
//! | [`associate`] | UDP for SOCKS5 clients; pure except for its sockets | RFC 1928 §7 |
//! | [`connect_udp`] | UDP over HTTP; pure except for its sockets and streams | RFC 9298, RFC 9297 |
//! | [`interception`] | programs whose connections are intercepted | RFC 9110 §3.7 |
//! | [`rules`] | the destinations that clients may use; pure | RFC 6890 |
//! | [`users`] | the users of a proxy | RFC 1929, RFC 7617 |
//! | [`Proxy`] | the proxy: its sockets, clients and races | |
//! | [`via`] | another proxy, through which destinations are reached | RFC 9110 §9.3.6, RFC 9113 §8.5, RFC 9114 §4.4 |
//! | [`Report`], [`Stats`] | the outcome of one client, and of all | |
//! | [`copy`], [`accept`], [`device`], [`packet`] | streams, connections and packets | |
//! | [`proxy_status`], [`pseudonym`] | why a response comes from a proxy, and the name of one | RFC 9209, RFC 9110 §7.6.3 |
//!
//! ```no_run
//! use eyas::{Endpoint, MemoryStore};
//! use eyas_relay::Proxy;
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

pub mod accept;
mod admission;
pub mod associate;
pub mod body;
mod client;
pub mod client_hello;
mod connect;
pub mod connect_udp;
mod connection;
pub mod copy;
pub mod destination_stream;
pub mod device;
mod guesses;
pub mod handshake;
pub mod interception;
mod limits;
mod metrics;
pub mod packet;
pub mod permitted;
pub mod proxy_status;
pub mod pseudonym;
mod report;
mod requester;
pub mod rules;
mod server;
mod shared;
mod stats;
mod streams;
mod traffic;
pub mod users;
pub mod via;

pub use limits::Limits;
pub use report::{Datagrams, Ending, Report, WonBy};
pub use server::{Proxy, ProxyBuilder, ProxyError, Running};
pub use stats::Stats;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
