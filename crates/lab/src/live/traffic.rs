//! The packets that crossed the link between two hosts.

/// The packets on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkTraffic {
    /// Packets that the client sent.
    pub packets_out: u64,
    /// Their bytes, IP headers included.
    pub bytes_out: u64,
    /// Packets that the server sent, including lost ones.
    pub packets_in: u64,
    /// Their bytes, IP headers included.
    pub bytes_in: u64,
}

impl LinkTraffic {
    /// Returns the difference to an earlier count.
    #[must_use]
    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self {
            packets_out: self.packets_out - earlier.packets_out,
            bytes_out: self.bytes_out - earlier.bytes_out,
            packets_in: self.packets_in - earlier.packets_in,
            bytes_in: self.bytes_in - earlier.bytes_in,
        }
    }
}
