//! The gateway between clients and an upstream that the test plays byte by byte.

mod early;
mod failures;
mod multiplexed;
#[path = "../../../eyas/tests/ports/mod.rs"]
mod ports;
mod requests;
mod smuggling;
mod stage;
mod streams;
mod upstreams;
mod websockets;
