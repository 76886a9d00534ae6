//! Errors of calls, by Linux's numbers.

use core::fmt;

/// The error of a failed call: `errno`, as a positive number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i32);

macro_rules! errors {
    ($($(#[$about:meta])* $name:ident = $number:literal;)*) => {
        impl Errno {
            $($(#[$about])* pub const $name: Self = Self($number);)*

            /// Returns its name in the system's headers, if it is one of those used here.
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
    /// Out of memory, or no room for the result.
    ENOMEM = 12;
    /// Not permitted.
    EACCES = 13;
    /// Bad address.
    EFAULT = 14;
    /// Busy: the last address cannot be removed.
    EBUSY = 16;
    /// It exists already.
    EEXIST = 17;
    /// No such device.
    ENODEV = 19;
    /// Invalid argument.
    EINVAL = 22;
    /// Not supported by this descriptor.
    ENOTTY = 25;
    /// There is no peer to send to, or no longer one.
    EPIPE = 32;
    /// Not implemented.
    ENOSYS = 38;
    /// Not a socket.
    ENOTSOCK = 88;
    /// A destination address is required.
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
    /// The port is in use.
    EADDRINUSE = 98;
    /// Not an address of this host.
    EADDRNOTAVAIL = 99;
    /// No route.
    ENETUNREACH = 101;
    /// Aborted by the peer.
    ECONNRESET = 104;
    /// No buffer space.
    ENOBUFS = 105;
    /// Already connected.
    EISCONN = 106;
    /// Not connected.
    ENOTCONN = 107;
    /// Already shutting down.
    ESHUTDOWN = 108;
    /// No answer.
    ETIMEDOUT = 110;
    /// Refused.
    ECONNREFUSED = 111;
    /// No route to the host.
    EHOSTUNREACH = 113;
    /// Already connecting.
    EALREADY = 114;
    /// In progress.
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
