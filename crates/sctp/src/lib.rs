//! SCTP (RFC 9260) with several paths, as a pure state machine.
//!
//! `eyas-sctp` takes packets, times and calls, and returns packets, events and the time of the next
//! call. It has no sockets, reads no clock and draws no randomness of its own, so the same inputs
//! give the same outputs, and the same code runs on the wire and in a simulator.
//!
//! [`endpoint::Endpoint`] is the entry point; [`io`] describes how to drive it:
//!
//! ```
//! use core::time::Duration;
//! use eyas_sctp::config::{ConnectOptions, EndpointConfig};
//! use eyas_sctp::endpoint::Endpoint;
//! use eyas_sctp::io::Output;
//!
//! let now = Duration::ZERO;
//! let mut endpoint = Endpoint::new(EndpointConfig::default(), [7; 32], now);
//! let peer = "192.0.2.1:9899".parse().unwrap();
//! let id = endpoint.connect(now, &ConnectOptions::new(peer, 7)).unwrap();
//! // The INIT is sent first; then the endpoint returns its next timeout.
//! let Output::Transmit(transmit) = endpoint.poll_output(now) else { panic!() };
//! assert_eq!(transmit.remote, peer);
//! assert_eq!(endpoint.poll_output(now), Output::Timeout(Some(Duration::from_secs(1))));
//! endpoint.abort(now, id, "changed my mind".into()).unwrap();
//! ```
//!
//! # Modules
//!
//! | module | purpose | source |
//! | --- | --- | --- |
//! | [`io`] | the interface: inputs and outputs | |
//! | [`endpoint`] | the entry point: associations, their messages and their state | RFC 9260, RFC 6458 |
//! | `association` | one association: its parts, and the dispatch between them | RFC 9260 |
//! | [`data_channel`] | WebRTC data channels | RFC 8831, RFC 8832 |
//! | [`snap`] | INITs exchanged out of band, as in SDP | draft-hancke-tsvwg-snap |
//! | [`config`] | configuration: one path, several at once, published sets of options | RFC 9260 §16, RFC 6458 |
//! | [`message`] | user messages and their parameters | RFC 6458 §5.3 |
//! | [`event`] | notifications about an association | RFC 6458 §6.1 |
//! | [`error`] | misuse by the local caller | |
//! | [`counters`] | counters of hostile, broken and late input | |
//! | `send` | the sending half: queue, SACKs, losses, partial reliability | RFC 9260 §6, §7 |
//! | `receive` | the receiving half: TSNs, reassembly, order, the window | RFC 9260 §6 |
//! | `path` | paths: reachability, RTO, MTU, allowance | RFC 9260 §6.3, §8 |
//! | [`congestion`] | congestion control, coupled over paths or not | RFC 9260 §7, RFC 9438, RFC 6356 |
//! | [`scheduler`] | stream schedulers | RFC 8260 §3 |
//! | `auth` | authenticated chunks | RFC 4895 |
//! | `wire` | packets, chunks, parameters, causes | RFC 9260 §3 |
//! | [`serial`] | TSN, SSN, MID: serial numbers | RFC 1982 |
//! | [`identifier`] | associations, paths, streams, tags | RFC 9260 §1.3 |
//!
//! Users need [`endpoint`] and the types that its methods use. The parts without a link are public
//! only with the feature `internals`, for fuzzers and tests, and may change with every version.
//!
//! # Features
//!
//! | feature | effect |
//! | --- | --- |
//! | `std` (default) | checksums by instructions of the processor, where available |
//! | `serde` | the options of [`config`] can be serialised by name |
//! | `internals` | the parts behind an endpoint, without stability guarantees |
//!
//! # From RFC sections to files
//!
//! | section of RFC 9260 | subject | file |
//! | --- | --- | --- |
//! | §3.1 | packets | `wire/packet.rs`, `wire/writer.rs` |
//! | §3.2 | unknown chunks and parameters | `wire/action.rs`, `association/report.rs` |
//! | §3.3 | chunks | `wire/chunk/`, one file each |
//! | §3.2.1, §3.3.2.1 | parameters | `wire/parameter/` |
//! | §3.3.2.1.5 | kinds of addresses | `association/init_params.rs`, `endpoint/init.rs` |
//! | §3.3.10 | error causes | `wire/cause.rs` |
//! | §4 | states | `association/state.rs` |
//! | §5.1 | the handshake | `association/handshake.rs`, `association/dispatch/handshake.rs`, `endpoint/init.rs`, `endpoint/cookie_echo.rs` |
//! | §5.1.2 | a peer's addresses | `association/addresses.rs` |
//! | §5.1.3 | the cookie | `endpoint/cookie.rs` |
//! | §5.2 | collisions and restarts | `association/dispatch/collision.rs`, `endpoint/init.rs` |
//! | §5.2.6 | stale cookies | `association/handshake.rs` |
//! | §5.3 | negotiated streams | `association/init_params/parse.rs` |
//! | §5.4 | verification of addresses | `path/verification.rs`, `path/heartbeat.rs` |
//! | §6.1 | sending data | `send/fill.rs`, `path/allowance.rs` |
//! | §6.1 A | zero-window probes | `send/peer_window.rs` |
//! | §6.2 | acknowledgement | `receive/acknowledgement.rs`, `receive/sack.rs`, `send/acknowledgement.rs` |
//! | §6.3 | RTO and T3 | `path/rto.rs`, `send/retransmission.rs` |
//! | §6.4 | several paths | `path/paths.rs`, `receive/return_path.rs`, `association/dispatch/output.rs` |
//! | §6.5, §6.6 | streams and order | `receive/delivery.rs` |
//! | §6.7 | gaps | `receive/tracking.rs`, `send/gap_blocks.rs` |
//! | §6.8 | checksum | `wire/checksum/` |
//! | §6.9 | fragmentation | `send/fragmentation.rs`, `receive/fragments.rs` |
//! | §6.10 | bundling | `association/dispatch/output.rs` |
//! | §7 | congestion control | `congestion/`, one file each |
//! | §7.2.4 | fast retransmission | `send/loss/` |
//! | §7.3 | path MTU | `path/mtu.rs` |
//! | §8.1, §8.2 | failures of the peer and of paths | `path/state.rs`, `association/dispatch/reachability.rs` |
//! | §8.3 | heartbeats | `path/heartbeat.rs`, `path/failed.rs` |
//! | §8.4 | out of the blue | `endpoint/out_of_the_blue.rs` |
//! | §8.5 | verification tags | `endpoint/input.rs`, `association/identity.rs` |
//! | §9.1 | ABORT | `association/dispatch/abort.rs` |
//! | §9.2 | SHUTDOWN | `association/shutdown.rs`, `association/dispatch/shutdown.rs` |
//! | §10 | ICMP | `association/dispatch/reachability.rs`, `association/identity.rs` |
//! | §11 | the upper-layer interface | `endpoint.rs`, `endpoint/association_mut.rs` |
//! | §12 | security | `endpoint/limit.rs`, `endpoint/cookie.rs` |
//! | §16 | parameters | `config.rs` |
//!
//! | other document | what | file |
//! | --- | --- | --- |
//! | RFC 3758, RFC 7496 | partial reliability | `send/partial_reliability.rs`, `send/forwarding.rs`, `receive/forward.rs` |
//! | the same | lifetimes of messages | `send/queue/lifetimes.rs` |
//! | RFC 4820 | padding | `wire/chunk/pad.rs` |
//! | RFC 4895 | authentication | `auth/`, `association/authentication.rs` |
//! | the same, §6.3 | AUTH in front of a COOKIE ECHO | `endpoint/cookie_echo.rs` |
//! | RFC 4960 appendix A | ECN | `path/ecn.rs`, `send/congestion_echo.rs` |
//! | RFC 5061 | dynamic addresses | `association/dynamic_address.rs` |
//! | RFC 6356 | linked increases | `congestion/lia.rs` |
//! | RFC 6458 | names of options and notifications | `config.rs`, `event.rs`, `endpoint/status.rs` |
//! | RFC 6525 | re-configuration of streams | `association/reconfiguration.rs`, `association/dispatch/streams.rs` |
//! | RFC 6951 | inside UDP | `association/dispatch/reachability.rs`, `path/paths.rs` |
//! | RFC 7053 | SACK-IMMEDIATELY | `send/fill.rs`, `receive/data.rs` |
//! | RFC 7829 | potentially failed paths | `path/state.rs` |
//! | RFC 8260 | interleaving, schedulers | `receive/interleaved.rs`, `send/queue/`, `scheduler/` |
//! | RFC 8831, RFC 8832 | data channels | `data_channel/`, one file for each procedure |
//! | RFC 8899 | path MTU discovery by probes | `path/mtu.rs` |
//! | RFC 8985 | RACK and tail-loss probes | `send/loss/` |
//! | RFC 9438 | CUBIC | `congestion/cubic.rs` |
//! | Iyengar et al. 2006, Dreibholz et al. 2010 | concurrent use of all paths | `config/multipath.rs`, `send/multipath/`, `path/flight_cap.rs`, `path/doubt.rs` |
//! | RFC 9653 | no checksum | `endpoint/input.rs`, `association/dispatch/output.rs` |
//! | draft-hancke-tsvwg-snap | INITs in SDP | `snap.rs`, `endpoint/out_of_band.rs` |
//! | draft-ietf-ccwg-bbr | BBR | `congestion/bbr.rs` |
//! | draft-khalili-mptcp-congestion-control | OLIA | `congestion/olia.rs` |
//! | draft-tuexen-tsvwg-sctp-multipath | NR-SACK | `receive/sack.rs`, `send/acknowledgement.rs` |
//! | the same, §4 | CMT/RP | `congestion/cmt_rp_v1.rs`, `congestion/cmt_rp_v2.rs` |
#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![forbid(unsafe_code)]
// These lints are about what is public, which the parts are with `internals` alone. With the feature all of them
// hold.
#![cfg_attr(
    not(feature = "internals"),
    allow(unfulfilled_lint_expectations, unreachable_pub, unused_imports)
)]

extern crate alloc;

mod association;
#[cfg(feature = "internals")]
pub mod auth;
#[cfg(not(feature = "internals"))]
mod auth;
mod built_in;
pub mod config;
pub mod congestion;
pub mod counters;
pub mod data_channel;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod identifier;
pub mod io;
pub mod message;
#[cfg(feature = "internals")]
pub mod path;
#[cfg(not(feature = "internals"))]
mod path;
#[cfg(feature = "internals")]
pub mod receive;
#[cfg(not(feature = "internals"))]
mod receive;
pub mod scheduler;
#[cfg(feature = "internals")]
pub mod send;
#[cfg(not(feature = "internals"))]
mod send;
pub mod serial;
pub mod snap;
#[cfg(feature = "internals")]
pub mod wire;
#[cfg(not(feature = "internals"))]
mod wire;

/// The example of the README, so that it cannot rot.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
