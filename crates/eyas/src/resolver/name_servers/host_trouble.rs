//! What keeps this host from asking a server. It says nothing of the server, nor of a name.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use eyas_host::addresses::source_address_for;
use eyas_host::errno;
use eyas_host::fault::{HostFault, SocketCall};

use super::ServerTrouble;

/// An error of this host, before anything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostTrouble {
    code: i32,
    /// `None` if there is no route.
    fault: Option<HostFault>,
    server: SocketAddr,
}

impl ServerTrouble {
    /// Returns what this error of a call for a server means.
    pub(super) fn from_error(error: &io::Error, call: SocketCall, server: SocketAddr) -> Self {
        let fault = HostFault::from_error(error, call, Some(server));
        match error.raw_os_error() {
            Some(code)
                if fault.is_some() || (has_no_route(code) && is_of_this_host(call, server)) =>
            {
                Self::OfThisHost(HostTrouble { code, fault, server })
            }
            Some(errno::ETIMEDOUT) => Self::Silent,
            _ => Self::Unreachable,
        }
    }
}

const fn has_no_route(code: i32) -> bool {
    matches!(code, errno::ENETUNREACH | errno::EHOSTUNREACH)
}

/// Returns whether this host has no route to the server. Its own answer comes from connecting a socket for datagrams,
/// which sends nothing; in other calls a router may have reported the error.
fn is_of_this_host(call: SocketCall, server: SocketAddr) -> bool {
    call == SocketCall::Connect && source_address_for(server).is_err()
}

impl fmt::Display for HostTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (error, server) = (io::Error::from_raw_os_error(self.code), self.server);
        match self.fault {
            Some(fault) => write!(f, "{error}: {fault} (name server {server})"),
            None => write!(
                f,
                "{error}: this host has no route to the name server {server}; check its addresses and routes, or ask \
                 another server"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_before_anything_was_sent_are_of_this_host() {
        let server: SocketAddr = "127.0.0.1:53".parse().unwrap();
        let of = |code, call| {
            ServerTrouble::from_error(&io::Error::from_raw_os_error(code), call, server)
        };
        for (code, call, word) in [
            (errno::EMFILE, SocketCall::Open, "ulimit -n"),
            (errno::ENFILE, SocketCall::Bind, "fs.file-max"),
            (errno::EADDRNOTAVAIL, SocketCall::Connect, "no free local port"),
            (errno::EAGAIN, SocketCall::Connect, "no free local port"),
            (errno::EPERM, SocketCall::Pending, "firewall"),
            (errno::EACCES, SocketCall::Connect, "firewall"),
            (errno::ENOBUFS, SocketCall::Pending, "memory"),
            (errno::EAFNOSUPPORT, SocketCall::Open, "address family"),
        ] {
            let ServerTrouble::OfThisHost(trouble) = of(code, call) else {
                panic!("{code} {call:?}")
            };
            let text = trouble.to_string();
            assert!(text.contains(word) && text.contains("127.0.0.1:53"), "{text}");
        }
        for (code, call, trouble) in [
            (errno::ECONNREFUSED, SocketCall::Pending, ServerTrouble::Unreachable),
            (errno::ECONNRESET, SocketCall::Pending, ServerTrouble::Unreachable),
            (errno::EHOSTUNREACH, SocketCall::Pending, ServerTrouble::Unreachable),
            (errno::EACCES, SocketCall::Pending, ServerTrouble::Unreachable),
            (errno::ENETUNREACH, SocketCall::Connect, ServerTrouble::Unreachable),
            (errno::ETIMEDOUT, SocketCall::Pending, ServerTrouble::Silent),
        ] {
            assert_eq!(of(code, call), trouble, "{code} {call:?}: there is a route to this server");
        }
    }
}
