//! Decides what to try, when, and what won.
//!
//! `eyas-race` is Happy Eyeballs version 3 for *transports*: from DNS answers, a policy and what
//! was learnt earlier, it decides which connection attempts to start, when to start them, which one
//! won, and what to remember. It performs no I/O, reads no clock and draws no randomness of its
//! own, so the same inputs always give the same outputs, byte for byte.
//!
//! Section numbers of HEv3 refer to draft-ietf-happy-happyeyeballs-v3-04 with its editors' changes
//! until 2026-07-30.
//!
//! | module | purpose | source |
//! | --- | --- | --- |
//! | [`candidate`] | what can be tried: address × transport × security × ALPN | RFC 9621 §3.2 |
//! | [`target`] | the peer to reach, with names normalised | RFC 3986, UTS 46 |
//! | [`io`] | the interface: inputs and outputs | |
//! | [`resolve`] | from DNS answers to service information | HEv3 §4, RFC 9460 |
//! | [`plan`] | what to try, in which order and when, with reasons | HEv3 §5, RFC 6724 |
//! | `reason` | why a candidate is ranked where it is: [`plan::PlanReason`] | |
//! | [`network`] | families with a route, sources, NAT64 | HEv3 §4.1 |
//! | [`nat64`] | IPv4 addresses embedded in IPv6 addresses | RFC 6052 |
//! | [`race`] | which attempts to start, when, and which one won | HEv3 §6, RFC 9621 §4 |
//! | [`trace`] | recording and replaying a race | |
//! | [`report`] | how a race went, for people and for programs | |
//! | [`memory`] | what earlier races learnt, per network | RFC 7556, NEAT, Chromium |
//!
//! ```text
//! Target ─▶ resolve::Resolution ──services──▶ plan::plan ──entries──▶ race::Race ──▶ attempts
//!               ▲     │                          ▲                      │     ▲        │
//!    Answer ────┘     └──▶ Query                 │ memory::View         │     └────────┘
//!                                                │                      ▼      Progress, Ready, Failed
//!                                           memory::Memory ◀── Learn(Evidence)
//! ```
//!
//! A driver keeps the memory, which may be a file that other processes write to; a race gets the
//! [`memory::MemoryView`] that it needs and returns [`io::RaceOutput::Learn`], so it never waits for the
//! file. The race calls [`plan`] again whenever a fact changes, and skips what has already been
//! started.
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
mod reason;
pub mod report;
pub mod resolve;
mod seed;
pub mod target;
pub mod trace;
#[cfg(test)]
mod vocabulary;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
