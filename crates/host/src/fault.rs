//! Errors of system calls that are the fault of this host: its limits, its addresses, its firewall.
//! They say nothing about the peer or the path.
//!
//! The same errno value means different things in different calls, so each is classified together
//! with the [`SocketCall`] that returned it.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use nix::libc;

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
            (libc::EMFILE, _) => Self::ProcessDescriptors,
            (libc::ENFILE, _) => Self::HostDescriptors,
            (libc::ENOBUFS | libc::ENOMEM, _) => Self::NoMemory,
            (libc::ENETDOWN | libc::ENODEV | libc::ENXIO, _) => Self::NoInterface,
            (code, _) if lacks_support(code) => Self::Unsupported,
            (libc::ENOPROTOOPT | libc::EOPNOTSUPP, SocketCall::Open | SocketCall::Bind) => {
                Self::Unsupported
            }
            (libc::EPERM | libc::EACCES, SocketCall::Open) => Self::NoPrivilege,
            (libc::EACCES, SocketCall::Bind) => Self::PrivilegedPort,
            // A router's ICMPv6 error (RFC 4443 §3.1, code 1) is EACCES too, but it is pending.
            (libc::EACCES, SocketCall::Connect | SocketCall::Send) | (libc::EPERM, _) => {
                Self::Forbidden
            }
            (libc::EADDRNOTAVAIL, SocketCall::Bind) => Self::ForeignAddress,
            // Linux returns EAGAIN if `connect` finds no port for a UDP socket.
            (libc::EADDRNOTAVAIL, _) | (libc::EAGAIN, SocketCall::Connect) => Self::NoLocalPort,
            (libc::EADDRINUSE, _) => Self::PortInUse,
            (libc::EINVAL, _) if peer.is_some_and(needs_scope) => Self::NoScope,
            (libc::EINVAL, SocketCall::Connect | SocketCall::Send) => Self::NotSent,
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
                "this host has no free local port, or no address, for this destination; let \
                 connections end, widen net.ipv4.ip_local_port_range, or check its addresses"
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
                "this host allows the program no more open files; close some or raise the limit \
                 (ulimit -n)"
            }
            Self::HostDescriptors => {
                "this host has too many open files; close some or raise fs.file-max"
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
        libc::EAFNOSUPPORT
            | libc::EPFNOSUPPORT
            | libc::EPROTONOSUPPORT
            | libc::ESOCKTNOSUPPORT
            | libc::EPROTOTYPE
            | libc::ENOSYS
    )
}

/// Returns whether a packet from elsewhere may have caused this errno value.
const fn may_come_from_the_peer(code: i32) -> bool {
    matches!(
        code,
        libc::ECONNREFUSED
            | libc::ECONNRESET
            | libc::ECONNABORTED
            | libc::EPIPE
            | libc::ENOTCONN
            | libc::ETIMEDOUT
            | libc::EPROTO
            | libc::EMSGSIZE
            // ICMP errors; a missing route is a property of the network, which the memory knows.
            | libc::ENETUNREACH
            | libc::EHOSTUNREACH
            | libc::EHOSTDOWN
            | libc::ENONET
            | libc::EACCES
            | libc::ENOPROTOOPT
            | libc::EOPNOTSUPP
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
            (libc::EMFILE, same(ProcessDescriptors)),
            (libc::ENFILE, same(HostDescriptors)),
            (libc::ENOBUFS, same(NoMemory)),
            (libc::ENOMEM, same(NoMemory)),
            (libc::ENETDOWN, same(NoInterface)),
            (libc::ENODEV, same(NoInterface)),
            (libc::ENXIO, same(NoInterface)),
            (libc::EAFNOSUPPORT, same(Unsupported)),
            (libc::EPROTONOSUPPORT, same(Unsupported)),
            (libc::ESOCKTNOSUPPORT, same(Unsupported)),
            (libc::EPROTOTYPE, same(Unsupported)),
            (libc::ENOPROTOOPT, [Some(Unsupported), Some(Unsupported), None, None, None]),
            (libc::EOPNOTSUPP, [Some(Unsupported), Some(Unsupported), None, None, None]),
            (libc::EPERM, {
                let no = Some(Forbidden);
                [Some(NoPrivilege), no, no, no, no]
            }),
            (libc::EACCES, {
                let no = Some(Forbidden);
                [Some(NoPrivilege), Some(PrivilegedPort), no, no, None]
            }),
            (libc::EADDRNOTAVAIL, {
                let no = Some(NoLocalPort);
                [no, Some(ForeignAddress), no, no, no]
            }),
            (libc::EADDRINUSE, same(PortInUse)),
            (libc::EAGAIN, {
                let other = Some(Other);
                [other, other, Some(NoLocalPort), other, other]
            }),
            (libc::EINVAL, {
                let (other, not) = (Some(Other), Some(NotSent));
                [other, other, not, not, other]
            }),
            (libc::EINTR, same(Other)),
            (libc::EBADF, same(Other)),
            (libc::EIO, same(Other)),
        ];
        for (code, wanted) in rows {
            let found = CALLS.map(|call| fault(code, call));
            assert_eq!(found, wanted, "{}", io::Error::from_raw_os_error(code));
        }
    }

    #[test]
    fn errors_that_a_peer_or_a_router_can_cause_are_no_faults_of_this_host() {
        for code in [
            libc::ECONNREFUSED,
            libc::ECONNRESET,
            libc::ETIMEDOUT,
            libc::EPIPE,
            libc::ENETUNREACH,
            libc::EHOSTUNREACH,
            libc::EHOSTDOWN,
        ] {
            assert_eq!(CALLS.map(|call| fault(code, call)), [None; 5], "{code}");
        }
        let custom = io::Error::new(io::ErrorKind::InvalidData, "not an errno value");
        assert_eq!(HostFault::from_error(&custom, SocketCall::Connect, None), None);
    }

    #[test]
    fn a_link_local_address_without_a_scope_says_what_is_missing() {
        let invalid = io::Error::from_raw_os_error(libc::EINVAL);
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
