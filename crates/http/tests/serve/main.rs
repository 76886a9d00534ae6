//! Tests of the server with foreign clients: hyper, h3 over quinn, and raw sockets. Its limits are
//! tested in `eyas-testserver`, whose site has the necessary resources.

#[cfg(all(feature = "client", feature = "sctp"))]
mod application;
mod balancers;
mod bound_sockets;
#[cfg(feature = "client")]
mod cancellation;
#[cfg(all(feature = "client", feature = "sctp"))]
mod certificates;
#[expect(dead_code, reason = "the tests of the site use more of it")]
mod clients;
#[cfg(feature = "client")]
mod early_data;
#[cfg(feature = "client")]
mod eviction;
#[cfg(feature = "client")]
mod field_tables;
#[cfg(feature = "client")]
mod http3_errors;
#[cfg(feature = "client")]
mod malformed;
mod metrics;
#[cfg(all(feature = "client", feature = "sctp"))]
#[path = "../../../eyas/tests/observer/mod.rs"]
mod observer;
#[cfg(all(feature = "client", feature = "sctp"))]
mod service;
mod threads;
#[cfg(feature = "client")]
mod tunnels;
#[cfg(feature = "client")]
#[path = "../wire/mod.rs"]
mod wire;
