//! Links, queues, losses and middleboxes, and a world of them in virtual time.
//!
//! `eyas-netem` is the network between hosts: what carries, delays, loses, marks and mangles IP
//! packets. It knows no transport protocol, has no sockets, reads no clock and draws no randomness
//! of its own, so the same seed gives the same run, to the nanosecond.
//!
//! ```text
//!              ┌────────────── World: the time, and who is due when ──────────────┐
//!              │                                                                  │
//!   Node       │        Link ──▶                      Link ──▶                    │   Node
//!   (a host)   0 ══════════════════ 0 Router 1 ══════════════════ 0 NAT 1 ═══     …   (a host)
//!              │        ◀── Link                      ◀── Link                    │
//!              └──────────────────────────────────────────────────────────────────┘
//!
//!   offer ──▶ queue (FIFO, RED, CoDel) ──▶ rate ──▶ loss, bit errors ──▶ delay, jitter ──▶ poll
//! ```
//!
//! | module | purpose | source |
//! | --- | --- | --- |
//! | [`packet`] | an IP packet: its header as fields, the rest as bytes or values | RFC 791, RFC 8200 |
//! | [`link`] | one direction of a link | RFC 8289, Floyd and Jacobson 1993, Gilbert and Elliott |
//! | [`node`] | the interface of hosts, routers and middleboxes | |
//! | [`router`] | forwarding by the longest prefix | RFC 1812 §5.2.4.3 |
//! | [`middlebox`] | NAT, firewalls, MTU limits, resets, idle timeouts | RFC 4787, RFC 5382, RFC 2923 |
//! | [`world`] | nodes and links in virtual time | |
//! | [`capture`] | packets for Wireshark | draft-ietf-opsawg-pcapng |
//! | [`random`] | one random stream for each use of each entity | |
//!
//! # Example
//!
//! A host sends one packet of 1,500 bytes over 10 Mbit/s and 10 ms:
//!
//! ```
//! use core::time::Duration;
//! use eyas_netem::link::LinkConfig;
//! use eyas_netem::node::{Node, NodeInput, NodeOutput};
//! use eyas_netem::packet::{protocol, Packet};
//! use eyas_netem::world::{LinkDirection, World};
//!
//! struct Host(Option<Packet>);
//!
//! impl Node for Host {
//!     fn handle_input(&mut self, _now: Duration, _input: NodeInput) {}
//!     fn poll_output(&mut self, _now: Duration) -> NodeOutput {
//!         match self.0.take() {
//!             Some(packet) => NodeOutput::Transmit { interface: 0, packet },
//!             None => NodeOutput::Timeout(None),
//!         }
//!     }
//! }
//!
//! let packet = Packet {
//!     source: [192, 0, 2, 1].into(),
//!     destination: [192, 0, 2, 2].into(),
//!     protocol: protocol::SCTP,
//!     ecn: 0,
//!     dont_fragment: true,
//!     payload: vec![0; 1480].into(),
//! };
//! let mut world = World::new(1);
//! let sender = world.add_node(Host(Some(packet)));
//! let receiver = world.add_node(Host(None));
//! let config = LinkConfig::new(10_000_000, Duration::from_millis(10));
//! let link = world.connect((sender, 0), (receiver, 0), config.clone(), config);
//! world.run_until(Duration::from_micros(11_199));
//! assert_eq!(world.link_counters(link, LinkDirection::Forward).delivered.packets, 0);
//! world.run_until(Duration::from_micros(11_200));
//! assert_eq!(world.link_counters(link, LinkDirection::Forward).delivered.packets, 1);
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod capture;
mod header;
pub mod link;
pub mod middlebox;
pub mod node;
pub mod packet;
pub mod random;
pub mod router;
mod time;
pub mod world;

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
