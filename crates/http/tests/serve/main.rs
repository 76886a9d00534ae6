//! The server, seen by clients that are not ours: hyper, h3 over quinn, and raw sockets.

mod application;
mod clients;
mod early_data;
mod files;
mod hostile;
mod hostile_peers;
mod limits;
mod metrics;
mod personalities;
#[path = "../../../eyas/tests/ports/mod.rs"]
mod ports;
mod routes;
mod sctp;
mod service;
mod shutdown;
