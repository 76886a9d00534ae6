//! The sockets API of SCTP (RFC 6458) as Linux implements it, as a pure state machine over
//! [`eyas_sctp`].
//!
//! A [`Stack`] takes the role of the kernel: its calls have the names of the system calls and of
//! RFC 6458, and return Linux's errno; options, control messages, names and notifications are bytes
//! with Linux's numbers and layouts ([`abi`]); and it computes the result of `poll`. It has no
//! sockets, reads no clock and never waits: [`io`] describes how to drive it.
//!
//! ```
//! use core::time::Duration;
//! use eyas_sockets::{Errno, SocketName, Stack, StackConfig, StackOutput};
//!
//! let now = Duration::ZERO;
//! let mut stack = Stack::new(StackConfig::default(), [7; 32], now);
//! let socket = stack.socket(2, 1, 132).unwrap(); // AF_INET, SOCK_STREAM, IPPROTO_SCTP
//! let peer = SocketName::new("192.0.2.1:5000".parse().unwrap());
//! let association = stack.connect(now, socket, peer.as_bytes()).unwrap();
//! // The INIT is sent; a non-blocking call returns EINPROGRESS.
//! assert!(matches!(stack.poll_output(now), StackOutput::Transmit(_)));
//! assert_eq!(stack.connect_result(now, socket, association), Err(Errno::EINPROGRESS));
//! ```
//!
//! Each SCTP port that a socket is bound to is an [`eyas_sctp::endpoint::Endpoint`], shared with
//! the sockets that were accepted or peeled off from that socket.
//!
//! # Endpoints, messages and sockets
//!
//! Sockets differ in addresses, options and what they listen to, so each bound port is an endpoint
//! of its own; packets are dispatched by port, by association and by address, and the endpoints
//! take turns writing into the same packet memory. A call that would block returns `EAGAIN` until
//! `StackOutput::Retry`.
//!
//! Messages stay in the endpoint until a program reads them, so the receive window closes if it
//! stops reading. A notification records how many messages preceded it, and is delivered after
//! them. What an association still has to deliver belongs to the association, so it moves along
//! when `accept` or `peeloff` gives it another socket.
//!
//! # Differences from Linux
//!
//! | what | how |
//! | --- | --- |
//! | `SCTP_ADAPTATION_LAYER`, `SCTP_EXPOSE_POTENTIALLY_FAILED_STATE` 1, `SCTP_PLPMTUD_PROBE_INTERVAL`, cookie lifetime, flow label | stored and returned, but without effect |
//! | `SO_BINDTODEVICE`, `SO_PRIORITY`, `SO_DONTROUTE`, time stamps, `IP_OPTIONS`, `IP_PKTINFO`, `IP_MTU_DISCOVER`, … | fail with `ENOPROTOOPT`, and are counted, unless the value is the default |
//! | `SO_SNDBUFFORCE`, `SO_RCVBUFFORCE` | at most 4 MiB, doubled |
//! | `SCTP_PEER_ADDR_PARAMS` of one address | applies to all addresses of the association |
//! | `SCTP_SET_PEER_PRIMARY_ADDR`, `SCTP_AUTO_ASCONF` | only if ASCONF was negotiated |
//! | `SCTP_GET_ASSOC_STATS` | counts of chunks are zero |
//! | `SCTP_AUTH_DEACTIVATE_KEY`, `SCTP_SENDMSG_CONNECT` | fail with `ENOPROTOOPT`, and are counted |
//! | `SCTP_REMOTE_UDP_ENCAPS_PORT` | applies to future associations, at all addresses |
//! | `SCTP_PR_ASSOC_STATUS`, `SCTP_PR_STREAM_STATUS` | count all abandoned messages, whatever the policy and the stream |
//! | `SCTP_HMAC_IDENT`, `SCTP_PEER_AUTH_CHUNKS` | HMACs are stored without effect; the chunks returned are our own |
//! | `SCTP_SENDALL`, `SCTP_AUTHINFO` | ignored |
//! | `SCTP_REMOTE_ERROR` | without the data of the cause |
//! | `SCTP_SEND_FAILED`, `SCTP_SEND_FAILED_EVENT` | report all chunks of a message, even if some had arrived |
//! | `shutdown` of a socket that is not connected | fails with `ENOTCONN` and has no effect; on Linux `poll` reports the end from then on |
//! | `connect` to port 0 | fails before anything is sent |
//! | the end of an association, for a program that receives `SCTP_ASSOC_CHANGE` | is read only after `SCTP_SHUTDOWN_COMP`, even if that arrives a round trip later |
//! | the send buffer | counts only bytes of messages, without Linux's overhead |
//! | the window | is the whole receive buffer, not half of it |
//! | ports below 1024 | need no privileges |
#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod abi;
pub mod config;
pub mod io;
mod settings;
mod stack;
pub mod status;

pub use abi::{Errno, SocketName};
pub use config::StackConfig;
pub use io::{
    AssocId, CloseResult, PollReadiness, ReceiveResult, SendRequest, SendResult, SocketDomain,
    SocketId, SocketStyle, StackInput, StackOutput,
};
pub use stack::{Stack, needs_privileges};
pub use status::StackStatus;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
