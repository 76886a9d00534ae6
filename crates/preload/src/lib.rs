//! The library that `eyas sctp run` preloads: libc's calls on SCTP sockets become requests to a
//! supervisor, which has the sockets; all other calls go on to libc.
//!
//! | module | job |
//! | --- | --- |
//! | `real` | libc's own functions |
//! | `table` | which descriptors are SCTP sockets |
//! | `environment` | where the supervisor is, and which process this is |
//! | `connection` | connections to the supervisor, kept for the next call |
//! | `transfer` | bytes to and from the program's memory |
//! | `call` | one call: request, wait, response |
//! | `calls/` | the functions that programs see, by subject |
//!
//! A descriptor that a program gets is a real one: one end of a pair of local sockets, so it can be
//! polled, copied, inherited and passed on. It carries no data: a token to read stands for `POLLIN`, and
//! room for a message for `POLLOUT`. What the socket is lives in the supervisor alone, and the name of
//! the pair's far end says which socket it is, in whatever process.
//!
//! What holds everywhere here: nothing is allocated, no lock is taken and no thread started, for calls
//! come from signal handlers, from between `vfork` and `exec`, and from threads that are cancelled
//! while they wait. Nothing panics.
#![allow(clippy::unnecessary_cast, reason = "lengths have another type in each libc")]
#![allow(unsafe_code, reason = "the functions of libc, whose arguments are the program's pointers")]

mod call;
mod calls;
mod connection;
mod environment;
pub mod local;
mod real;
mod table;
mod transfer;

/// What a call failed with: an errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Errno(i32);

/// The errno of the last call to libc.
fn last() -> Errno {
    // SAFETY: the address is that of this thread's errno.
    Errno(unsafe { *libc::__errno_location() })
}

/// What a function of libc returns: the value, or -1 with errno set.
fn answer(result: Result<i64, Errno>) -> i64 {
    result.unwrap_or_else(|Errno(errno)| {
        // SAFETY: the address is that of this thread's errno.
        unsafe { *libc::__errno_location() = errno };
        -1
    })
}

/// Called by the dynamic linker once the library is in place.
extern "C" fn begin() {
    // Now rather than in a signal handler: looking functions up may allocate.
    real::find_all();
    environment::read();
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;
