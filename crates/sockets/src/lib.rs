//! The sockets API of SCTP (RFC 6458) as Linux has it, as a pure state machine over [`eyas_sctp`].
//!
//! A [`Stack`] is what the kernel is to programs: calls by the names of the system calls and of
//! RFC 6458, answered with Linux's errno; options, control messages, names and notifications as bytes,
//! with Linux's numbers and sizes ([`abi`]); and what `poll` says. It has no sockets, reads no clock and
//! never waits: [`io`] says how it is driven.
//!
//! ```
//! use core::time::Duration;
//! use eyas_sockets::{Errno, Name, Output, Stack, StackConfig};
//!
//! let now = Duration::ZERO;
//! let mut stack = Stack::new(StackConfig::default(), [7; 32], now);
//! let socket = stack.socket(2, 1, 132).unwrap(); // AF_INET, SOCK_STREAM, IPPROTO_SCTP
//! let peer = Name::new("192.0.2.1:5000".parse().unwrap());
//! let association = stack.connect(now, socket, peer.as_bytes()).unwrap();
//! // The INIT leaves; a call that does not block says so.
//! assert!(matches!(stack.poll_output(now), Output::Transmit(_)));
//! assert_eq!(stack.connect_result(now, socket, association), Err(Errno::EINPROGRESS));
//! ```
//!
//! Each SCTP port that a socket is bound to is an [`eyas_sctp::endpoint::Endpoint`]; sockets that were
//! accepted or peeled off share it.
//!
//! # Where it differs from Linux
//!
//! | what | how |
//! | --- | --- |
//! | `SCTP_ADAPTATION_LAYER`, `SCTP_EXPOSE_POTENTIALLY_FAILED_STATE` 1, `SCTP_PLPMTUD_PROBE_INTERVAL`, cookie life, flow label, DSCP, options of IP | kept and given back, without an effect |
//! | `SCTP_PEER_ADDR_PARAMS` of one address | counts for all addresses of the association |
//! | `SCTP_SET_PEER_PRIMARY_ADDR`, `SCTP_AUTO_ASCONF` | where ASCONF was agreed on |
//! | `SCTP_GET_ASSOC_STATS` | counts of chunks are zero |
//! | `SCTP_AUTH_DEACTIVATE_KEY`, `SCTP_SENDMSG_CONNECT` | `ENOPROTOOPT`, and counted |
//! | `SCTP_REMOTE_UDP_ENCAPS_PORT` | counts for associations to come, at all addresses |
//! | `SCTP_PR_ASSOC_STATUS`, `SCTP_PR_STREAM_STATUS` | count all that was given up, whatever the policy and the stream |
//! | `SCTP_HMAC_IDENT`, `SCTP_PEER_AUTH_CHUNKS` | HMACs are kept without an effect; the chunks are our own |
//! | `SCTP_SENDALL`, `SCTP_AUTHINFO` | not acted upon |
//! | `SCTP_REMOTE_ERROR` | without the data of the cause |
//! | `SCTP_SEND_FAILED`, `SCTP_SEND_FAILED_EVENT` | of all chunks of a message, also where some had arrived |
//! | `shutdown` of a socket that is not connected | says `ENOTCONN` and changes nothing; `poll` of Linux tells of an end from then on |
//! | `connect` to port 0 | is refused before anything is sent |
//! | the end of an association, to a program that hears of `SCTP_ASSOC_CHANGE` | is read once `SCTP_SHUTDOWN_COMP` was, also where that comes a round trip later |
//! | the send buffer | counts bytes of messages, not what Linux adds to each |
//! | the window | is all of the receive buffer, not half |
//! | ports below 1024 | are free to everybody |
#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod abi;
pub mod config;
pub mod io;
mod settings;
mod stack;
pub mod status;

pub use abi::{Errno, Name};
pub use config::StackConfig;
pub use io::{
    AssocId, Closing, Domain, Incoming, Input, Outgoing, Output, Readiness, Sent, SocketId, Style,
};
pub use stack::Stack;
pub use status::StackStatus;
