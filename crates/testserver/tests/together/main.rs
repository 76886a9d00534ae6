//! The client against the server, well and with every personality.

mod bodies;
mod faults;
#[path = "../stage/mod.rs"]
mod stage;
