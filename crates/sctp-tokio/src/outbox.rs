//! Outgoing packets: chooses the socket for each, and queues those that wait for a full one.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use eyas_host::fault::{HostFault, SocketCall};
use eyas_sctp::io::{Input, Transmit, Unreachable};

use super::carrier::{Arrivals, SourceCache, Wire};
use super::tap::{Tap, Train};

/// Trains of packets, in the order in which they leave.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// The trains that have not been sent yet.
    pub(super) trains: VecDeque<Transmit>,
    sources: SourceCache,
    full: Option<usize>,
}

impl Outbox {
    /// Sends what can be sent, showing it to `tap`. Unroutable packets are reported as arrivals.
    pub(super) fn send(&mut self, wires: &[Wire], arrivals: &mut Arrivals, tap: Option<&dyn Tap>) {
        self.full = None;
        while let Some(transmit) = self.trains.front_mut() {
            let remote = transmit.remote;
            let Some(mut index) = self.sources.choose(wires, transmit) else {
                arrivals.push(no_route(remote));
                self.trains.pop_front();
                continue;
            };
            if wires[index].has_session_paths() {
                // A session has two addresses, so the routing is asked for the source beforehand.
                let routed = transmit.local.or_else(|| self.sources.source(remote));
                transmit.local = wires[index].source_for(routed);
                if !wires[index].can_send(transmit) {
                    let has_session =
                        |wire: &Wire| wire.can_reach(remote) && wire.can_send(transmit);
                    index = wires.iter().position(has_session).unwrap_or(index);
                }
            }
            match wires[index].try_send(transmit) {
                Ok(()) => {
                    if let Some(tap) = tap {
                        let routed = || self.sources.source(remote);
                        let source = wires[index].local_for(transmit.local.or_else(routed));
                        tap.passed(&Train {
                            source,
                            destination: remote,
                            ecn: transmit.ecn,
                            contents: &transmit.contents,
                            segment_size: transmit.segment_size,
                        });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.full = Some(index);
                    return;
                }
                Err(error) => {
                    tracing::debug!(%remote, %error, "cannot send");
                    arrivals.extend(unsent(remote, &error));
                }
            }
            self.trains.pop_front();
        }
    }

    /// Returns the socket that must have room before anything else can be sent.
    pub(super) const fn full(&self) -> Option<usize> {
        self.full
    }

    /// Discards cached source addresses, because routes or addresses have changed.
    pub(super) fn clear_sources(&mut self) {
        self.sources.clear();
    }
}

/// Returns the input that this host has no route to `remote`.
fn no_route(remote: SocketAddr) -> Input {
    Input::Unreachable { remote, reason: Unreachable::Route, quoted: None }
}

/// Returns the input that this host did not send the packets, if it will not send others either.
fn unsent(remote: SocketAddr, error: &io::Error) -> Option<Input> {
    let reason = match error.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Unreachable::Route,
        _ => HostFault::from_error(error, SocketCall::Send, Some(remote))
            .map(|_| Unreachable::Local)?,
    };
    Some(Input::Unreachable { remote, reason, quoted: None })
}
