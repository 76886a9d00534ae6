//! The drivers over real sockets on loopback.

mod attempt;
mod common;
mod ech;
#[cfg(feature = "sctp")]
mod ends;
mod events;
mod examples;
#[cfg(target_os = "linux")]
mod expired;
mod fast_open;
mod faults;
mod listening;
mod mptcp;
#[path = "../observer/mod.rs"]
mod observer;
mod own_quic;
#[path = "../ports/mod.rs"]
mod ports;
mod race;
mod resolver;
mod restarted;
#[cfg(feature = "sctp")]
mod sctp;
mod security;
mod short_hello;
