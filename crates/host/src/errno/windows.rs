//! Windows, whose sockets have error numbers of their own (Windows Sockets Error Codes).

pub use windows_sys::Win32::Networking::WinSock::{
    WSA_NOT_ENOUGH_MEMORY as ENOMEM, WSAEACCES as EACCES, WSAEADDRINUSE as EADDRINUSE,
    WSAEADDRNOTAVAIL as EADDRNOTAVAIL, WSAEAFNOSUPPORT as EAFNOSUPPORT, WSAEBADF as EBADF,
    WSAECONNABORTED as ECONNABORTED, WSAECONNREFUSED as ECONNREFUSED, WSAECONNRESET as ECONNRESET,
    WSAEHOSTDOWN as EHOSTDOWN, WSAEHOSTUNREACH as EHOSTUNREACH, WSAEINTR as EINTR,
    WSAEINVAL as EINVAL, WSAEMFILE as EMFILE, WSAEMSGSIZE as EMSGSIZE, WSAENETDOWN as ENETDOWN,
    WSAENETRESET as ENETRESET, WSAENETUNREACH as ENETUNREACH, WSAENOBUFS as ENOBUFS,
    WSAENOPROTOOPT as ENOPROTOOPT, WSAENOTCONN as ENOTCONN, WSAEOPNOTSUPP as EOPNOTSUPP,
    WSAEPFNOSUPPORT as EPFNOSUPPORT, WSAEPROTONOSUPPORT as EPROTONOSUPPORT,
    WSAEPROTOTYPE as EPROTOTYPE, WSAESHUTDOWN as ESHUTDOWN, WSAESOCKTNOSUPPORT as ESOCKTNOSUPPORT,
    WSAETIMEDOUT as ETIMEDOUT, WSAEWOULDBLOCK as EAGAIN,
};

/// What `connect` returns for a non-blocking socket.
pub const EINPROGRESS: i32 = EAGAIN;

// What the sockets of Windows never return has values that no call returns.

/// Absent here.
pub const EIO: i32 = -1;
/// Absent here.
pub const ENFILE: i32 = -2;
/// Absent here.
pub const ENODEV: i32 = -3;
/// Absent here.
pub const ENONET: i32 = -4;
/// Absent here.
pub const ENOSYS: i32 = -5;
/// Absent here.
pub const ENXIO: i32 = -6;
/// Absent here.
pub const EPERM: i32 = -7;
/// Absent here.
pub const EPIPE: i32 = -8;
/// Absent here.
pub const EPROTO: i32 = -9;
/// Absent here.
pub const ESRCH: i32 = -10;
