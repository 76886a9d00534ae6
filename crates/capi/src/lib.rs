//! eyas for C and C++: the functions of `include/eyas.h`, which is generated from these files.
//!
//! | file | job |
//! | --- | --- |
//! | `code`, `error` | what calls return, and what went wrong in words |
//! | `pointer` | pointers that cross the border: the one place that trusts them |
//! | `call` | one call: its result, and panics that stay on this side |
//! | `home` | the runtime of an endpoint, and what a fork leaves of it |
//! | `wait` | calls that block, block up to a limit, or do not block |
//! | `readiness` | a descriptor that becomes readable when a call is worth trying again |
//! | `signals` | the program's signals, which the library neither handles nor raises |
//! | `endpoint`, `endpoint_options` | what all connections of a program share |
//! | `target` | whom to reach, and how |
//! | `race` | connecting |
//! | `connection`, `stream` | one connection as a stream of bytes |
//! | `association`, `message`, `send_options`, `event` | SCTP with messages, paths and notifications |
//! | `listener`, `listen_options` | accepting |
//! | `memory` | what was learnt, and plans |
//! | `json` | what connections and associations say about themselves |
//! | `version` | which version this is |
//!
//! What holds everywhere: a handle is a pointer to a type of ours, an argument that is NULL is an error,
//! nothing is global, and no panic crosses the border. `Option<&T>` is a pointer that may be NULL,
//! `Option<Box<T>>` one whose value the call takes over.
#![allow(unsafe_code, reason = "functions of C: their names, and what `pointer` and `signals` do")]
#![allow(unreachable_pub, reason = "cbindgen takes what is public for what C sees")]

mod association;
mod call;
mod code;
mod connection;
mod endpoint;
mod endpoint_options;
mod error;
mod event;
mod home;
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
