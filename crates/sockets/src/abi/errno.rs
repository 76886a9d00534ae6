//! Errors of calls, by Linux's numbers.

use core::fmt;

/// Why a call failed: `errno`, as a positive number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i32);

macro_rules! errors {
    ($($(#[$about:meta])* $name:ident = $number:literal;)*) => {
        impl Errno {
            $($(#[$about])* pub const $name: Self = Self($number);)*

            /// The name that the system's headers give it, if it is one of those used here.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

errors! {
    /// Not allowed.
    EPERM = 1;
    /// Interrupted by a signal.
    EINTR = 4;
    /// Input or output error.
    EIO = 5;
    /// Bad descriptor.
    EBADF = 9;
    /// Try again: the call would block.
    EAGAIN = 11;
    /// Out of memory, or no room for the answer.
    ENOMEM = 12;
    /// Not permitted.
    EACCES = 13;
    /// Bad address.
    EFAULT = 14;
    /// Busy: the last address cannot go.
    EBUSY = 16;
    /// Invalid argument.
    EINVAL = 22;
    /// Not for this descriptor.
    ENOTTY = 25;
    /// The peer is gone, or was never there.
    EPIPE = 32;
    /// Not implemented.
    ENOSYS = 38;
    /// Not a socket.
    ENOTSOCK = 88;
    /// Nothing to send to.
    EDESTADDRREQ = 89;
    /// The message is too long.
    EMSGSIZE = 90;
    /// No such option.
    ENOPROTOOPT = 92;
    /// The protocol is not supported.
    EPROTONOSUPPORT = 93;
    /// The type of socket is not supported.
    ESOCKTNOSUPPORT = 94;
    /// Not supported by this socket.
    EOPNOTSUPP = 95;
    /// Not an address of this socket's family.
    EAFNOSUPPORT = 97;
    /// The port is taken.
    EADDRINUSE = 98;
    /// Not an address of this host.
    EADDRNOTAVAIL = 99;
    /// No route.
    ENETUNREACH = 101;
    /// Ended by the peer at once.
    ECONNRESET = 104;
    /// No room in a buffer.
    ENOBUFS = 105;
    /// Connected already.
    EISCONN = 106;
    /// Not connected.
    ENOTCONN = 107;
    /// Ending.
    ESHUTDOWN = 108;
    /// No answer.
    ETIMEDOUT = 110;
    /// Refused.
    ECONNREFUSED = 111;
    /// No route to the host.
    EHOSTUNREACH = 113;
    /// Connecting already.
    EALREADY = 114;
    /// Has begun, and goes on.
    EINPROGRESS = 115;
    /// The key is rejected.
    EKEYREJECTED = 129;
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl core::error::Error for Errno {}
