//! The server, seen by clients that are not ours: hyper, h3 over quinn, and raw sockets.

#[cfg(feature = "client")]
mod application;
mod clients;
#[cfg(feature = "client")]
mod early_data;
mod files;
mod given_sockets;
mod hostile;
mod hostile_peers;
mod limits;
mod metrics;
#[path = "../../../eyas/tests/ports/mod.rs"]
mod ports;
mod routes;
mod sctp;
#[cfg(feature = "client")]
mod service;
mod shutdown;
