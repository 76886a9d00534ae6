//! The process that owns the SCTP sockets of programs: the counterpart of `eyas-preload`.
//!
//! | file | purpose |
//! | --- | --- |
//! | `service` | the interface to the implementation of the sockets |
//! | `supervisor` | the descriptors of the sockets, and the waiting calls |
//! | `place`, `socket_file` | its address for programs: an abstract name, or a socket in a directory |
//! | `client` | requests from processes other than its programs |
//! | `status` | the state that `eyas sctp status` shows |
//! | `descriptor` | one pair of local sockets, one end of which belongs to a program |
//! | `written` | what a program writes to its descriptor: messages without a request |
//! | `requests` | parsing the requests of programs |
//! | `connection` | requests of programs, one after another |
//! | `sockets` | the service that implements SCTP: `eyas-sockets` over the sockets of `eyas-sctp-tokio` |
//! | `sockets/calls` | executing requests as calls on a stack |
//! | `capture` | capturing the packets of the carrier's sockets for Wireshark |
//! | `library` | the preloaded library, embedded |
//! | `linkage` | which programs the library cannot be preloaded into |
//! | `trap/` | intercepting the calls of those programs by seccomp user notification |
//!
//! Through the other end of a program's descriptor, the supervisor shows the readiness of the socket
//! to `poll`: a token represents `POLLIN`, and a message that fills the program's send buffer hides
//! `POLLOUT`. Each call is a request on a separate connection; a socket lives until the last copy of
//! its descriptor is closed, in any process.
//!
//! ```text
//! program ── libc's calls ─▶ eyas-preload ── requests ─▶ this process ─▶ SocketService
//!    └─ poll, dup, fork, exec ─▶ one end of a pair ◀── tokens, fillers ──┘
//! ```
//!
//! A program that sends much writes its messages to the descriptor, whose buffer then takes the
//! place of the filler; several are read at a time, and before any later call on the socket. Only
//! messages that can fail for nothing but lack of room are written, so what the kernel's SCTP would
//! report at once is still reported at once: by the descriptor's buffer, or by the answer to a
//! request, which the library makes once the descriptor shows the end.
//!
//! The kernel provides everything that it provides for descriptors: poll, copy, inherit, pass on,
//! close. Shutting down this end of a pair shows the program the end of its peer. If a descriptor
//! shows more readiness than there is, only the holder of the program's end can correct that, so
//! responses tell the library to take a token out or to put a filler in.
//!
//! The program's end carries a *capability*, an unpredictable number in an option that has no
//! effect on local sockets (`SO_MAX_PACING_RATE`). It can be read in whatever process the
//! descriptor ends up in, after `fork`, `exec`, `dup2` or `SCM_RIGHTS`, and nowhere else, so other
//! users of a supervisor cannot use the socket.
//!
//! A blocking call waits in `recvmsg` for its response, with the program's own `SO_RCVTIMEO`, so
//! the kernel decides how signals affect it. Nothing that arrives meanwhile is lost, because the
//! library withdraws the request and reads its outcome.
//!
//! Programs find their supervisor by an abstract name and a key in their environment or, where one
//! serves a machine or a pod, by a socket in a directory whose mode controls access. The user who
//! started it, and root, can query its state without the key. Everything goes through one lock, so
//! it runs on one thread: a second would be woken only to wait. A message is copied out of the read
//! buffer, so that it keeps only its own bytes alive.

mod capture;
mod client;
mod connection;
mod descriptor;
mod library;
mod linkage;
#[path = "../preload/local/mod.rs"]
pub mod local;
mod place;
mod random;
mod requests;
mod service;
mod socket_file;
mod sockets;
mod status;
mod supervisor;
mod trap;
mod user_quotas;
mod written;

pub use capture::CaptureFile;
pub use client::{AskError, SupervisorAddress};
pub use library::{PreloadedLibrary, PreloadedLibraryFile};
pub use linkage::ProgramLinkage;
pub use place::SupervisorPlace;
pub use requests::{CallRefusal, ProgramRequests};
pub use service::{
    CallAnswer, CallOutcome, SocketCall, SocketClosing, SocketNotice, SocketService, poll,
};
pub use socket_file::{SocketFile, is_in_shared_folder, is_open_to_all};
pub use sockets::{SctpEncapsulation, SctpSettings, SctpSockets, StackCalls};
pub use status::SupervisorStatus;
pub use supervisor::Supervisor;
pub use trap::{CallTrap, TrappedProgram};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
