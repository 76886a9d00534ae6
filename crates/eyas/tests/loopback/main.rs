//! The drivers over real sockets on loopback.

mod attempt;
mod common;
mod race;
mod resolver;
