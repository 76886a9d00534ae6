//! eyas for C and C++: the functions of `include/eyas.h`, which is generated from these files.
//!
//! | file | purpose |
//! | --- | --- |
//! | `code`, `error` | return codes and errors |
//! | `pointer` | pointers from and to C: the only place that trusts them |
//! | `call` | one call: its result, and panics, which must not reach the caller |
//! | `endpoint_runtime` | the runtime of an endpoint, and the effects of a fork |
//! | `wait` | calls that block, block up to a limit, or do not block |
//! | `readiness` | a descriptor that becomes readable when a call is worth retrying |
//! | `signals` | the program's signals, which the library neither handles nor raises |
//! | `endpoint`, `endpoint_options` | the state shared by all connections of a program |
//! | `target` | the peer to reach, and how |
//! | `race` | connecting |
//! | `connection`, `stream` | one connection as a byte stream |
//! | `association`, `message`, `send_options`, `event` | SCTP with messages, paths and notifications |
//! | `listener`, `listen_options` | accepting |
//! | `memory` | what was learnt, and plans |
//! | `json` | details of connections and associations |
//! | `version` | the version of the library |
//!
//! The following holds everywhere: a handle is a pointer to an opaque type, a NULL argument is an
//! error, nothing is global, and no panic reaches the caller. `Option<&T>` is a pointer that may be
//! NULL, `Option<Box<T>>` one whose value the call takes ownership of.
//!
//! All waiting polls in the caller's thread, up to a time limit, or once with a waker that signals
//! an eventfd. Every cancel-safe future of the Rust API that can be polled afresh thus serves a
//! blocking and a non-blocking call, and no task has to carry data between them. The last handle
//! that needs an endpoint's runtime ends it.
#![allow(unsafe_code, reason = "functions of C: their names, and what `pointer` and `signals` do")]
#![allow(unreachable_pub, reason = "cbindgen takes what is public for what C sees")]

mod association;
mod call;
mod code;
mod connection;
mod endpoint;
mod endpoint_options;
mod endpoint_runtime;
mod error;
mod event;
mod json;
mod listen_options;
mod listener;
mod memory;
mod message;
mod pointer;
mod race;
mod readiness;
mod send_options;
mod signals;
mod stream;
mod target;
#[cfg(test)]
mod tests;
mod version;
mod wait;
