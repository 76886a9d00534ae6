//! SCTP (RFC 9260) with several paths, as a pure state machine.
//!
//! `eyas-sctp` takes packets, times and calls, and gives packets, events and the time at which it
//! wants to be called again. It has no sockets, reads no clock and draws no randomness of its own,
//! so the same inputs give the same outputs, and the same code runs on the wire and in a simulator.
//!
//! | module | job | source |
//! | --- | --- | --- |
//! | [`io`] | the contract: inputs in, outputs out | |
//! | [`endpoint`] | the way in: associations, their messages and their state | RFC 9260, RFC 6458 |
//! | [`config`] | what can be set | RFC 9260 §16, RFC 6458 |
//! | [`message`] | a user message and what goes with it | RFC 6458 §5.3 |
//! | [`event`] | what an association tells its user | RFC 6458 §6.1 |
//! | [`error`] | misuse by the local caller | |
//! | [`counters`] | hostile, broken and late input, counted | |
//! | [`serial`] | TSN, SSN, MID: numbers that wrap | RFC 1982 |
//! | [`identifier`] | associations, paths, streams, tags | RFC 9260 §1.3 |
//! | `auth` | authenticated chunks | RFC 4895 |
//! | `send` | the sending side: queue, SACKs, losses, partial reliability | RFC 9260 §6, §7 |
//! | `scheduler` | which stream may send next | RFC 8260 §3 |
//! | `wire` | packets, chunks, parameters, causes | RFC 9260 §3 |
#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod association;
#[doc(hidden)]
pub mod auth;
pub mod config;
#[doc(hidden)]
pub mod congestion;
pub mod counters;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod identifier;
pub mod io;
pub mod message;
#[doc(hidden)]
pub mod path;
#[doc(hidden)]
pub mod receive;
#[doc(hidden)]
pub mod scheduler;
#[doc(hidden)]
pub mod send;
pub mod serial;
#[doc(hidden)]
pub mod wire;
