//! What the receive window counts.

/// What closes the window that the peer is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WindowAccounting {
    /// User data, and the memory that chunks cost beyond it: tiny chunks close the window early.
    #[default]
    Memory,
    /// User data alone, as simulation models have it. A peer that sends tiny chunks can make this
    /// side hold many times the receive buffer.
    Payload,
}
