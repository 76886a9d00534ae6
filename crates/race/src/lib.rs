//! What to try, when, and what won.
//!
//! `eyas-race` is Happy Eyeballs version 3 for *transports*: it takes DNS answers, a policy and
//! what was learnt earlier, and decides which connection attempts to start, when to start them,
//! which one won, and what there is to remember. It performs no I/O, reads no clock and draws no
//! randomness of its own, so the same inputs give the same outputs, byte for byte.
//!
//! HEv3 is draft-ietf-happy-happyeyeballs-v3-04 with its editors' changes until 2026-07-30, whose
//! section numbers are meant.
//!
//! | module | job | source |
//! | --- | --- | --- |
//! | [`candidate`] | what can be tried: address × transport × security × ALPN | RFC 9621 §3.2 |
//! | [`target`] | whom to reach, with names normalised | RFC 3986, UTS 46 |
//! | [`io`] | the contract: inputs in, outputs out | |
//! | [`resolve`] | DNS answers to service information | HEv3 §4, RFC 9460 |
//! | [`plan`] | what to try, in which order and when, with reasons | HEv3 §5, RFC 6724 |
//! | [`reason`] | why a candidate stands where it stands | |
//! | [`network`] | families with a route, sources, NAT64 | HEv3 §4.1 |
//! | [`nat64`] | IPv4 addresses inside IPv6 ones | RFC 6052 |
//! | [`race`] | which attempts to start, when, and which one won | HEv3 §6, RFC 9621 §4 |
//! | [`trace`] | a race recorded and run again | |
//! | [`report`] | how a race ran, for people and for machines | |
//! | [`memory`] | what earlier races learnt, per network | RFC 7556, NEAT, Chromium |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod candidate;
pub mod dns;
pub mod evidence;
pub mod io;
pub mod memory;
pub mod nat64;
pub mod network;
pub mod plan;
pub mod policy;
pub mod race;
pub mod reason;
pub mod report;
pub mod resolve;
mod seed;
pub mod target;
pub mod trace;
#[cfg(test)]
mod vocabulary;

/// The example of the README, so that it cannot rot.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
