//! Measures throughput and latency between two programs over each transport that eyas has.
//!
//! | module | purpose | kind |
//! | --- | --- | --- |
//! | [`protocol`] | frames, both ends of a test as state machines, intervals, round trips, statistics | pure |
//! | [`server`] | a server that anybody may use: bounded in tests, time and bytes | I/O |
//! | [`client`] | one test over a connection | I/O |
//!
//! The pure part takes `(now, input)`, gives outputs, and reads no clock, randomness or socket. `docs/guide/perf.md` of the
//! repository says what is measured how.
//!
//! ```no_run
//! use std::time::{Duration, Instant};
//! use eyas::{Endpoint, Security, SecurityParameters, Target, TargetHost, Transport};
//! use eyas_perf::client::{PerfTest, TestConnector};
//! use eyas_perf::protocol::request::TestRequest;
//!
//! # async fn measure() -> Result<(), Box<dyn std::error::Error>> {
//! let security = SecurityParameters::platform().accept_any_certificate();
//! let endpoint = Endpoint::builder().security(security).build()?;
//! let host = TargetHost::parse("server.example")?;
//! let target = Target::plain(host.clone(), 7117, vec![Transport::Quic], Security::Tls)
//!     .with_alpn([eyas_perf::ALPN]);
//! let began = Instant::now();
//! let connection = endpoint.preconnection(target).connect().await?;
//! let connector = TestConnector { endpoint, host };
//! let test = PerfTest { request: TestRequest::default(), idle: Duration::from_secs(1), began };
//! let report = test.run(connection, &connector, std::future::pending(), |_| {}).await?;
//! println!("{:?}", report.outcome.up.map(|flow| flow.goodput()));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod client;
mod driver;
pub mod protocol;
pub mod server;

/// The application protocol that client and server offer in TLS.
pub const ALPN: &str = "eyas-perf/1";

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
