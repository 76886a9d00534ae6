//! The client against the server, well and with every personality.

mod bodies;
mod faults;
mod stage;
