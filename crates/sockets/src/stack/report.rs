//! The status of a stack.

use eyas_sctp::endpoint::{AssociationState, PathState};

use super::Stack;
use super::association::SocketAssociation;
use super::socket::{SctpSocket, SocketState};
use crate::io::{AssocId, SocketId};
use crate::status::{AssociationStatus, PathStatus, SocketStatus, StackStatus};

impl Stack {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> StackStatus {
        let mut counters = self.ports.counters();
        counters.associations = self.associations.opened();
        let sockets = self.sockets.iter();
        let associations = self.associations.iter();
        StackStatus {
            sockets: sockets.map(|(id, socket)| self.socket_status(id, socket)).collect(),
            associations: associations
                .filter_map(|(id, it)| self.association_status(id, it))
                .collect(),
            counters,
            unknown_options: self.unsupported.status(),
        }
    }

    fn socket_status(&self, id: SocketId, socket: &SctpSocket) -> SocketStatus {
        let addresses = socket.port.and_then(|key| self.ports.bound_addresses(key));
        let queued = |id: &AssocId| {
            self.associations.get(*id).map_or(0, |it| it.delivery.notification_bytes())
        };
        SocketStatus {
            id: id.0,
            domain: socket.domain,
            style: socket.style,
            state: match socket.state {
                SocketState::Listening => "listening",
                SocketState::Established => "connected",
                SocketState::Closing => "ended",
                SocketState::Closed if self.associations.live_of(socket).is_some() => "connecting",
                SocketState::Closed if socket.port.is_some() => "bound",
                SocketState::Closed => "closed",
            },
            port: socket.port.and_then(|key| self.ports.number(key)).unwrap_or_default(),
            addresses: addresses.unwrap_or_default().to_vec(),
            associations: socket.associations.iter().copied().collect(),
            backlog: socket.accepting.len(),
            queued: socket.associations.iter().map(queued).sum(),
            readiness: alloc::format!("{:?}", self.readiness(id)),
        }
    }

    fn association_status(
        &self,
        id: AssocId,
        assoc: &SocketAssociation,
    ) -> Option<AssociationStatus> {
        let status = self.ports.status(assoc.key)?;
        Some(AssociationStatus {
            id,
            socket: assoc.socket.map(|socket| socket.0),
            state: match status.state {
                AssociationState::CookieWait | AssociationState::Held => "COOKIE-WAIT",
                AssociationState::CookieEchoed => "COOKIE-ECHOED",
                AssociationState::Established => "ESTABLISHED",
                AssociationState::ShutdownPending => "SHUTDOWN-PENDING",
                AssociationState::ShutdownSent => "SHUTDOWN-SENT",
                AssociationState::ShutdownReceived => "SHUTDOWN-RECEIVED",
                AssociationState::ShutdownAckSent => "SHUTDOWN-ACK-SENT",
                _ => "CLOSED",
            },
            local_port: status.local_port,
            remote_port: status.remote_port,
            outbound_streams: status.outbound_streams,
            inbound_streams: status.inbound_streams,
            peer_window: status.peer_window,
            window: status.window,
            send_queue: status.queued,
            paths: status
                .paths
                .iter()
                .map(|path| PathStatus {
                    remote: path.remote,
                    local: path.local,
                    state: match path.state {
                        PathState::Active => "active",
                        PathState::PotentiallyFailed => "potentially failed",
                        PathState::Unconfirmed => "unconfirmed",
                        _ => "inactive",
                    },
                    primary: path.id == status.primary,
                    congestion_window: path.congestion_window,
                    outstanding: path.outstanding,
                    smoothed_rtt_ms: path.smoothed_rtt.map(|rtt| rtt.as_secs_f64() * 1000.0),
                    rto_ms: path.rto.as_secs_f64() * 1000.0,
                    mtu: path.mtu,
                })
                .collect(),
        })
    }
}
