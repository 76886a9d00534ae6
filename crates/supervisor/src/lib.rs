//! The process that has the SCTP sockets of programs: the other side of `eyas-preload`.
//!
//! | file | job |
//! | --- | --- |
//! | `service` | what the sockets are: whoever implements it speaks SCTP |
//! | `supervisor` | the sockets' descriptors, and who waits for what |
//! | `place`, `socket_file` | where programs find it: an abstract name, or a socket in a folder |
//! | `client` | requests of others than its programs |
//! | `status` | what `eyas sctp status` shows |
//! | `descriptor` | one pair of local sockets, whose far end a program has |
//! | `requests` | requests of programs, from the bytes of a connection |
//! | `connection` | requests of programs, one after another |
//! | `sockets` | the service that speaks SCTP: `eyas-sockets` with the carriers of `eyas` |
//! | `sockets/calls` | requests as calls of a stack |
//! | `capture` | packets of the carrier's sockets, for Wireshark |
//! | `library` | the preloaded library, embedded |
//! | `linkage` | which programs the library does not reach |
//! | `trap/` | their calls, by seccomp user notification |
//!
//! A program's descriptor carries no data. Its far end here shows `poll` what the socket is ready for: a
//! token to be read stands for `POLLIN`, and a message that fills the program's send buffer hides
//! `POLLOUT`. Each call is a request on a connection of its own; a socket lives until the last copy
//! of its descriptor is closed, by whatever process.

mod capture;
mod client;
mod connection;
mod descriptor;
mod library;
mod linkage;
#[path = "../../preload/src/local/mod.rs"]
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

pub use capture::CaptureFile;
pub use client::{Address, AskError};
pub use library::{Library, LibraryFile};
pub use linkage::Linkage;
pub use place::Place;
pub use requests::{Refusal, Requests};
pub use service::{Answer, Call, Closing, Notice, Outcome, Service, poll};
pub use socket_file::{SocketFile, is_open_to_all};
pub use sockets::{Calls, Carrier, Settings, Sockets};
pub use status::Status;
pub use supervisor::Supervisor;
pub use trap::{Trap, Trapped};
