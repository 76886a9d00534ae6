//! Tests of a whole connection: bytes in, error codes out, and pairs that talk.

mod connection_rules;
mod lies;
mod pair;
mod rules;
mod wire;
