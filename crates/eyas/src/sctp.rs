//! SCTP as a transport of connections, over the associations of `eyas_sctp_tokio`.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `secured` | TLS over a pair of streams | RFC 3436 |
//! | `streams` | further pairs of streams of an association, and messages beside them | RFC 3436, RFC 7496 |
//! | `failure` | why an attempt failed, for the race | |
//!
//! An attempt (`attempt/sctp.rs`) pauses at the INIT ACK, reports `Answered` and waits for
//! `RaceOutput::Proceed`. A loser is dropped there, before its COOKIE ECHO, so the server never holds state
//! for it.
//!
//! TLS runs over pairs of streams (RFC 3436), with certificates verified exactly as for TCP. It
//! cannot protect messages that are unordered or given up (RFC 7496), so messages exist only inside
//! DTLS.

mod failure;
pub(crate) mod secured;
mod streams;

#[cfg(test)]
mod dtls_paths_tests;
#[cfg(test)]
mod messages_tests;
#[cfg(test)]
mod secured_pair;

pub(crate) use failure::{association_failure, attempt_failure};
pub use streams::SctpStreams;
