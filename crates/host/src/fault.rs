//! Errors of system calls that are the fault of this host: its limits, its addresses, its firewall.
//! They say nothing about the peer or the path.
//!
//! The same errno value means different things in different calls, so each is classified together
//! with the [`SocketCall`] that returned it.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::errno;

#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
mod bsd;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
use bsd as platform;
#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
use platform::{MORE_DESCRIPTORS, MORE_HOST_DESCRIPTORS, MORE_PORTS};
#[cfg(windows)]
use windows as platform;

/// The call that returned an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketCall {
    /// `socket`, or one that sets an option.
    Open,
    /// `bind`.
    Bind,
    /// `connect`, which returns only errors of this host, before a packet was sent.
    Connect,
    /// A packet to an address, on a socket without a connection.
    Send,
    /// A call on a connection, or a pending error (`SO_ERROR`): something may have come back.
    Pending,
}

/// What on this host keeps packets from being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostFault {
    /// No local port is free for this destination, or no address to send from.
    NoLocalPort,
    /// The address to send from is not one of this host.
    ForeignAddress,
    /// Another program uses the port.
    PortInUse,
    /// The user may not use the port.
    PrivilegedPort,
    /// A firewall rule or a route forbids the packets.
    Forbidden,
    /// The address is link-local, and its interface is not known.
    NoScope,
    /// The kernel does not send there: a blackhole route, or an address that is none of a peer.
    NotSent,
    /// The interface is down or gone.
    NoInterface,
    /// The process has too many descriptors.
    ProcessDescriptors,
    /// The host has too many descriptors.
    HostDescriptors,
    /// The kernel has no memory or buffers.
    NoMemory,
    /// The kernel or its settings lack the transport or the address family.
    Unsupported,
    /// The user has no permission for the transport.
    NoPrivilege,
    /// Anything else that no peer can cause.
    Other,
}

impl HostFault {
    /// Returns the fault that this error of a call for `peer` shows; `None` if the peer or the path
    /// may have caused it.
    pub fn from_error(
        error: &io::Error,
        call: SocketCall,
        peer: Option<SocketAddr>,
    ) -> Option<Self> {
        Some(match (error.raw_os_error()?, call) {
            (errno::EMFILE, _) => Self::ProcessDescriptors,
            (errno::ENFILE, _) => Self::HostDescriptors,
            (errno::ENOBUFS | errno::ENOMEM, _) => Self::NoMemory,
            (errno::ENETDOWN | errno::ENODEV | errno::ENXIO, _) => Self::NoInterface,
            (code, _) if lacks_support(code) => Self::Unsupported,
            (errno::ENOPROTOOPT | errno::EOPNOTSUPP, SocketCall::Open | SocketCall::Bind) => {
                Self::Unsupported
            }
            (errno::EPERM | errno::EACCES, SocketCall::Open) => Self::NoPrivilege,
            (errno::EACCES, SocketCall::Bind) => Self::PrivilegedPort,
            // A router's ICMPv6 error (RFC 4443 §3.1, code 1) is EACCES too, but it is pending.
            (errno::EACCES, SocketCall::Connect | SocketCall::Send) | (errno::EPERM, _) => {
                Self::Forbidden
            }
            (errno::EADDRNOTAVAIL, SocketCall::Bind) => Self::ForeignAddress,
            // Linux returns EAGAIN if `connect` finds no port for a UDP socket.
            (errno::EADDRNOTAVAIL, _) | (errno::EAGAIN, SocketCall::Connect) => Self::NoLocalPort,
            (errno::EADDRINUSE, _) => Self::PortInUse,
            (errno::EINVAL, _) if peer.is_some_and(needs_scope) => Self::NoScope,
            (errno::EINVAL, SocketCall::Connect | SocketCall::Send) => Self::NotSent,
            (code, _) if may_come_from_the_peer(code) => return None,
            _ => Self::Other,
        })
    }
}

/// What is wrong, and what to do about it.
impl fmt::Display for HostFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoLocalPort => {
                return write!(
                    f,
                    "this host has no free local port, or no address, for this destination; let \
                     connections end, {MORE_PORTS}, or check its addresses"
                );
            }
            Self::ForeignAddress => {
                "the local address is not one of this host; choose one that it has"
            }
            Self::PortInUse => {
                "another program of this host uses the port, or none is free; end that program \
                 or choose another port"
            }
            Self::PrivilegedPort => {
                "this host reserves the port for privileged users; choose a higher one"
            }
            Self::Forbidden => {
                "this host does not let the packets out; check its firewall's rules for output, \
                 its connection table, and prohibited routes"
            }
            Self::NoScope => {
                "this host needs to know the interface of a link-local address; write it as \
                 fe80::1%eth0"
            }
            Self::NotSent => {
                "this host does not send to the address; check it, and the routes for blackholes"
            }
            Self::NoInterface => "an interface of this host is down; bring it up",
            Self::ProcessDescriptors => {
                return write!(
                    f,
                    "this host allows the program no more open files; {MORE_DESCRIPTORS}"
                );
            }
            Self::HostDescriptors => {
                return write!(f, "this host has too many open files; {MORE_HOST_DESCRIPTORS}");
            }
            Self::NoMemory => {
                "this host has no memory or buffers left for it; free some, or try again later"
            }
            Self::Unsupported => {
                "this host does not support the transport or the address family; allow another \
                 one, or enable it in the kernel"
            }
            Self::NoPrivilege => {
                "this host does not allow the transport to this user; grant the privilege, or \
                 allow another transport"
            }
            Self::Other => "the fault is on this host, not at the peer",
        })
    }
}

/// Returns whether this is the errno value of something that the kernel lacks, in any call.
const fn lacks_support(code: i32) -> bool {
    matches!(
        code,
        errno::EAFNOSUPPORT
            | errno::EPFNOSUPPORT
            | errno::EPROTONOSUPPORT
            | errno::ESOCKTNOSUPPORT
            | errno::EPROTOTYPE
            | errno::ENOSYS
    )
}

/// Returns whether a packet from elsewhere may have caused this errno value.
const fn may_come_from_the_peer(code: i32) -> bool {
    matches!(
        code,
        errno::ECONNREFUSED
            | errno::ECONNRESET
            | errno::ECONNABORTED
            | errno::EPIPE
            | errno::ENOTCONN
            | errno::ETIMEDOUT
            | errno::EPROTO
            | errno::EMSGSIZE
            // ICMP errors; a missing route is a property of the network, which the memory knows.
            | errno::ENETUNREACH
            | errno::EHOSTUNREACH
            | errno::EHOSTDOWN
            | errno::ENONET
            | errno::EACCES
            | errno::ENOPROTOOPT
            | errno::EOPNOTSUPP
    )
}

/// Returns whether the interface must be known to reach this address (RFC 4007 §6).
fn needs_scope(peer: SocketAddr) -> bool {
    matches!(peer, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: [SocketCall; 5] = [
        SocketCall::Open,
        SocketCall::Bind,
        SocketCall::Connect,
        SocketCall::Send,
        SocketCall::Pending,
    ];

    fn fault(code: i32, call: SocketCall) -> Option<HostFault> {
        HostFault::from_error(&io::Error::from_raw_os_error(code), call, None)
    }

    /// One row for each errno value, with one column for each of [`CALLS`].
    #[test]
    fn each_error_is_classified_by_the_call_that_returned_it() {
        use HostFault::*;
        let same = |fault| [Some(fault); 5];
        let rows = [
            (errno::EMFILE, same(ProcessDescriptors)),
            (errno::ENFILE, same(HostDescriptors)),
            (errno::ENOBUFS, same(NoMemory)),
            (errno::ENOMEM, same(NoMemory)),
            (errno::ENETDOWN, same(NoInterface)),
            (errno::ENODEV, same(NoInterface)),
            (errno::ENXIO, same(NoInterface)),
            (errno::EAFNOSUPPORT, same(Unsupported)),
            (errno::EPROTONOSUPPORT, same(Unsupported)),
            (errno::ESOCKTNOSUPPORT, same(Unsupported)),
            (errno::EPROTOTYPE, same(Unsupported)),
            (errno::ENOPROTOOPT, [Some(Unsupported), Some(Unsupported), None, None, None]),
            (errno::EOPNOTSUPP, [Some(Unsupported), Some(Unsupported), None, None, None]),
            (errno::EPERM, {
                let no = Some(Forbidden);
                [Some(NoPrivilege), no, no, no, no]
            }),
            (errno::EACCES, {
                let no = Some(Forbidden);
                [Some(NoPrivilege), Some(PrivilegedPort), no, no, None]
            }),
            (errno::EADDRNOTAVAIL, {
                let no = Some(NoLocalPort);
                [no, Some(ForeignAddress), no, no, no]
            }),
            (errno::EADDRINUSE, same(PortInUse)),
            (errno::EAGAIN, {
                let other = Some(Other);
                [other, other, Some(NoLocalPort), other, other]
            }),
            (errno::EINVAL, {
                let (other, not) = (Some(Other), Some(NotSent));
                [other, other, not, not, other]
            }),
            (errno::EINTR, same(Other)),
            (errno::EBADF, same(Other)),
            (errno::EIO, same(Other)),
        ];
        for (code, wanted) in rows {
            let found = CALLS.map(|call| fault(code, call));
            assert_eq!(found, wanted, "{}", io::Error::from_raw_os_error(code));
        }
    }

    #[test]
    fn errors_that_a_peer_or_a_router_can_cause_are_no_faults_of_this_host() {
        for code in [
            errno::ECONNREFUSED,
            errno::ECONNRESET,
            errno::ETIMEDOUT,
            errno::EPIPE,
            errno::ENETUNREACH,
            errno::EHOSTUNREACH,
            errno::EHOSTDOWN,
        ] {
            assert_eq!(CALLS.map(|call| fault(code, call)), [None; 5], "{code}");
        }
        let custom = io::Error::new(io::ErrorKind::InvalidData, "not an errno value");
        assert_eq!(HostFault::from_error(&custom, SocketCall::Connect, None), None);
    }

    #[test]
    fn a_link_local_address_without_a_scope_says_what_is_missing() {
        let invalid = io::Error::from_raw_os_error(errno::EINVAL);
        let of = |peer: &str| {
            HostFault::from_error(
                &invalid,
                SocketCall::Connect,
                Some(peer.parse().expect("an address")),
            )
        };
        assert_eq!(of("[fe80::1]:80"), Some(HostFault::NoScope));
        assert_eq!(of("[2001:db8::1]:80"), Some(HostFault::NotSent));
        assert_eq!(of("192.0.2.1:80"), Some(HostFault::NotSent));
    }

    #[test]
    fn every_fault_says_whose_it_is() {
        for code in 1..=133 {
            for fault in CALLS.into_iter().filter_map(|call| fault(code, call)) {
                assert!(fault.to_string().contains("this host"), "{fault}");
            }
        }
    }
}
