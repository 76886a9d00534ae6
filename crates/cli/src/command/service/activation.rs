//! Sockets that the service manager has bound (sd_listen_fds(3)): a server without privileges gets a privileged port,
//! and one that is restarted refuses no connection in the meantime. On Windows none passes any.

use std::fmt;

use eyas::sockets::BoundAddress;

use crate::failure::{Failure, FailureKind};

#[cfg(unix)]
mod unix;

/// The sockets of a server: streams serve TCP, and datagrams QUIC.
pub(in crate::command) struct PassedSockets(pub(in crate::command) Vec<BoundAddress>);

impl PassedSockets {
    /// Returns whether there is a socket for streams.
    pub(in crate::command) fn have_streams(&self) -> bool {
        self.0.iter().any(|bound| bound.tcp.is_some())
    }

    /// Returns whether there is a socket for datagrams.
    pub(in crate::command) fn have_datagrams(&self) -> bool {
        self.0.iter().any(|bound| bound.udp.is_some())
    }
}

/// Returns the sockets that were passed to this process, if any. Must be called once, within a tokio runtime.
#[cfg(unix)]
pub(in crate::command) fn sockets() -> Result<Option<PassedSockets>, Failure> {
    unix::sockets()
}

/// Returns the sockets that were passed to this process: none.
#[cfg(windows)]
pub(in crate::command) fn sockets() -> Result<Option<PassedSockets>, Failure> {
    Ok(None)
}

/// Returns the failure of a server whose options leave nothing for the sockets to serve.
pub(in crate::command) fn serve_nothing() -> Failure {
    unusable("the sockets", "none of them is for a protocol that the options leave")
}

/// Returns the failure of a server that got sockets and is to listen by itself, too.
pub(in crate::command) fn listens_twice() -> Failure {
    let text = "the service manager has passed sockets, so there is nothing to listen on";
    Failure::new(FailureKind::Usage, text).hint("omit --listen")
}

fn unusable(what: &str, cause: impl fmt::Display) -> Failure {
    let text = format!("cannot use {what} of the service manager: {cause}");
    Failure::new(FailureKind::Listen, text)
        .hint("ListenStream= of a socket unit serves TCP, ListenDatagram= QUIC")
}
