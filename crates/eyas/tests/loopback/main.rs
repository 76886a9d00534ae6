//! The drivers over real sockets on loopback.

mod attempt;
mod common;
#[cfg(feature = "sctp")]
mod ends;
mod examples;
mod fast_open;
mod listening;
mod mptcp;
mod own_quic;
#[path = "../ports/mod.rs"]
mod ports;
mod race;
mod resolver;
mod restarted;
#[cfg(feature = "sctp")]
mod sctp;
mod security;
