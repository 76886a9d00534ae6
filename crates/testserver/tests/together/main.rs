//! Tests of the client against the server with every personality.

mod bodies;
mod faults;
#[path = "../stage/mod.rs"]
mod stage;
