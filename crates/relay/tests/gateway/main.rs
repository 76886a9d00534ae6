//! The gateway between clients and an upstream whose every byte the test decides.

mod failures;
#[path = "../../../eyas/tests/ports/mod.rs"]
mod ports;
mod requests;
mod smuggling;
mod stage;
mod streams;
mod upstreams;
mod websockets;
