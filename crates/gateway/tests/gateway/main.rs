//! The gateway between clients and an upstream that the test plays byte by byte.

mod early;
mod failures;
mod http3_fallback;
mod http3_streams;
mod multiplexed;
mod odd_requests;
#[path = "../../../eyas/tests/ports/mod.rs"]
mod ports;
mod raw_http3;
mod requests;
mod smuggling;
mod stage;
mod streams;
mod upstreams;
mod websockets;
