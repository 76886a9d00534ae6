//! The library that `eyas sctp run` preloads: libc calls on SCTP sockets become requests to a
//! supervisor, which owns the sockets; all other calls are passed to libc.
//!
//! | module | purpose |
//! | --- | --- |
//! | `real` | libc's own functions |
//! | `table` | which descriptors are SCTP sockets |
//! | `environment` | the address of the supervisor, and the identity of this process |
//! | `connection` | connections to the supervisor, kept for the next call |
//! | `transfer` | bytes to and from the program's memory |
//! | `call` | making one call: request, wait, response |
//! | `calls/` | the functions that programs call, by subject |
//!
//! The descriptors of programs are real ones: one end of a pair of local sockets, so they can be
//! polled, duplicated, inherited and passed on. A token to read represents `POLLIN`, and room for a
//! message represents `POLLOUT`. The state of the socket exists only in the supervisor, and a number
//! in an option identifies the socket in any process. It also says whether plain messages may be
//! written to the descriptor, which needs no answer; an association that has ended shows
//! `POLLRDHUP`, and then the supervisor has to say what is wrong.
//!
//! Everywhere in this crate, nothing is allocated, no lock is taken and no thread is started, because
//! calls come from signal handlers, from between `vfork` and `exec`, and from threads that are
//! cancelled while they wait. Nothing panics.
#![allow(clippy::unnecessary_cast, reason = "the types of lengths differ between libcs")]
#![allow(unsafe_code, reason = "the functions of libc take the program's pointers")]

mod call;
mod calls;
mod connection;
mod environment;
pub mod local;
mod real;
mod table;
mod transfer;

/// The errno of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Errno(i32);

/// Returns the errno of the last call to libc.
fn last() -> Errno {
    // SAFETY: the address is that of this thread's errno.
    Errno(unsafe { *libc::__errno_location() })
}

/// Converts a result to what a libc function returns: the value, or -1 with errno set.
fn answer(result: Result<i64, Errno>) -> i64 {
    result.unwrap_or_else(|Errno(errno)| {
        // SAFETY: the address is that of this thread's errno.
        unsafe { *libc::__errno_location() = errno };
        -1
    })
}

/// Called by the dynamic linker once the library has been loaded.
extern "C" fn initialise() {
    // Done here because looking up functions may allocate, which a signal handler must not.
    real::find_all();
    environment::read();
}

#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISE: extern "C" fn() = initialise;
