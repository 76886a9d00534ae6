//! The numbers and struct layouts of Linux's SCTP sockets (`linux/sctp.h` of 6.1, on x86-64 and
//! other 64-bit machines), in native byte order.
//!
//! | file | purpose |
//! | --- | --- |
//! | `errno` | errors of calls |
//! | `number` | families, levels, options, flags, kinds of control messages and notifications |
//! | `layout` | fields at their offsets |
//! | `name` | `sockaddr_in`, `sockaddr_in6` |
//! | `control` | control messages (`cmsghdr`), and the structs in them |
//! | `notification` | the structs of notifications |

pub mod control;
mod errno;
pub(crate) mod layout;
mod name;
pub mod notification;
pub mod number;

pub use errno::Errno;
pub use name::{IPV4_NAME, IPV6_NAME, NameError, STORAGE, SocketName};
