//! Which path a stream's messages take (Dreibholz, Seggelmann, Tüxen, Rathgeb: Transmission
//! Scheduling Optimizations for Concurrent Multipath Transfer, PFLDNeT 2010, §4).

use alloc::vec::Vec;

use crate::identifier::StreamId;

/// Which path a stream's messages take. A stream whose path does not work for now takes any other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamMapping {
    /// Whichever path has room takes the next message of whichever stream has its turn: every
    /// stream is spread over all paths.
    #[default]
    RoundRobin,
    /// By a table of streams and paths; a path is stated by its place in the order of paths, from
    /// 0. Streams that it does not name go by round-robin.
    Table(Vec<(StreamId, usize)>),
    /// The path at the place `stream mod paths`.
    Modulo,
    /// By estimates of the paths' rates and delays and of what is queued: a message takes the path
    /// on which it will be there first, and waits for that path if another that is free now would
    /// deliver it later.
    Automatic,
}
