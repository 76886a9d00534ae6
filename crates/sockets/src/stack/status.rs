//! The status of a stack.

use eyas_sctp::counters::EndpointCounters;
use eyas_sctp::endpoint::{AssociationState, PathState};

use super::Stack;
use super::association::SocketAssociation;
use super::socket::{SctpSocket, SocketState};
use crate::io::{AssocId, SocketId};
use crate::status::{
    AssociationStatus, CounterStatus, PathStatus, SocketStatus, StackStatus, UnknownOption,
};

impl Stack {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> StackStatus {
        let mut counters = self.retired;
        counters.packets_for_others = self.packets_for_others;
        counters.associations = self.associations_opened;
        counters.add(&self.out_of_the_blue.counters());
        self.ports.values().for_each(|port| counters.add(&port.endpoint.counters()));
        let associations = self.associations.iter();
        StackStatus {
            sockets: self
                .sockets
                .iter()
                .map(|(id, socket)| self.socket_status(*id, socket))
                .collect(),
            associations: associations
                .filter_map(|(id, it)| self.association_status(*id, it))
                .collect(),
            counters,
            unknown_options: self
                .unknown
                .iter()
                .map(|((level, name), count)| UnknownOption {
                    level: *level,
                    name: *name,
                    count: *count,
                })
                .collect(),
        }
    }

    fn socket_status(&self, id: SocketId, socket: &SctpSocket) -> SocketStatus {
        let port = socket.port.and_then(|key| self.ports.get(&key));
        let queued = |id: &AssocId| {
            let notices = self.associations.get(id).map(|it| it.notices.iter());
            notices.into_iter().flatten().map(|notice| notice.bytes.len()).sum::<usize>()
        };
        SocketStatus {
            id: id.0,
            domain: socket.domain,
            style: socket.style,
            state: match socket.state {
                SocketState::Listening => "listening",
                SocketState::Established => "connected",
                SocketState::Closing => "ended",
                SocketState::Closed if self.live_association(socket).is_some() => "connecting",
                SocketState::Closed if socket.port.is_some() => "bound",
                SocketState::Closed => "closed",
            },
            port: port.map_or(0, |port| port.number),
            addresses: port.map(|port| port.addresses.clone()).unwrap_or_default(),
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
        let status = self.endpoint_status(id)?;
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

impl CounterStatus {
    /// Adds the counters of one endpoint.
    pub(super) fn add(&mut self, endpoint: &EndpointCounters) {
        self.packets_in += endpoint.packets_in;
        self.packets_out += endpoint.packets_out;
        self.out_of_the_blue += endpoint.out_of_the_blue;
        self.broken_packets += endpoint.malformed_packets + endpoint.bad_checksums;
        self.bad_tags += endpoint.bad_tags;
        self.retransmissions += endpoint.retransmissions;
        self.duplicate_data += endpoint.duplicate_data;
    }
}
