//! The status of an association for its user (RFC 6458 §8.2).

use super::Association;
use crate::endpoint::{PathStatus, Status};
use crate::identifier::StreamId;
use crate::path::Path;
use crate::send::{AssociationQueueInfo, QueueInfo};

impl Association {
    /// Returns the status (`SCTP_STATUS`).
    pub(crate) fn status(&self) -> Status {
        Status {
            state: self.state.public(),
            local_port: self.identity.local_port(),
            remote_port: self.identity.remote_port(),
            outbound_streams: self.sender.terms().outbound,
            inbound_streams: self.receiver.inbound_streams(),
            peer_window: u32::try_from(self.sender.peer_window()).unwrap_or(u32::MAX),
            window: self.receiver.window(),
            queued: self.sender.queued_bytes(),
            agreed: self.agreed,
            primary: self.paths.primary(),
            paths: self.paths.iter().map(|path| self.path_status(path)).collect(),
            peer: self.identity.peer(),
        }
    }

    /// Returns the contents of the send buffer.
    pub(crate) fn queue_info(&self) -> AssociationQueueInfo {
        self.sender.queue_info()
    }

    /// Returns the contents of the send buffer that belong to one stream.
    pub(crate) fn stream_queue(&self, stream: StreamId) -> QueueInfo {
        self.sender.stream_queue(stream)
    }

    fn path_status(&self, path: &Path) -> PathStatus {
        PathStatus {
            id: path.id,
            remote: path.remote,
            local: path.local,
            state: path.state(),
            congestion_window: path.congestion.window(),
            outstanding: path.outstanding(),
            smoothed_rtt: path.rto.smoothed(),
            min_rtt: path.min_rtt(),
            forward_lag: self.paths.forward_lag(path.id),
            delivery_rate: path.delivery_rate(),
            delivered: path.delivered(),
            lost: path.lost(),
            rto: path.rto.current(),
            mtu: path.mtu(),
            largest_message: self.sender.largest_message(path.mtu()),
        }
    }
}
