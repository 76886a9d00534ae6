//! Chunk rescheduling: a chunk that holds up all others is sent once more, on another path
//! (Dreibholz, Becke, Rathgeb, Tüxen, GLOBECOM 2010; as opportunistic retransmission in Raiciu et
//! al., NSDI 2012).

/// Whether the chunk that holds up the cumulative acknowledgement is sent once more, on a path that
/// has room, when a full buffer keeps new data back. No window is cut for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ChunkRescheduling {
    /// Never.
    #[default]
    None,
    /// When the send buffer is full.
    Sender,
    /// When the peer's window is full.
    Receiver,
    /// When either is full.
    Both,
}

impl ChunkRescheduling {
    /// Whether a full send buffer is a reason.
    #[must_use]
    pub const fn by_send_buffer(self) -> bool {
        matches!(self, Self::Sender | Self::Both)
    }

    /// Whether a full window of the peer's is a reason.
    #[must_use]
    pub const fn by_peer_window(self) -> bool {
        matches!(self, Self::Receiver | Self::Both)
    }
}
