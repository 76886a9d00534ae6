//! Systems whose TCP is not asked: a path shows what was known when it was connected.

use std::time::Duration;

use super::PathReading;

pub(super) fn of_tcp(_: &socket2::Socket, only: PathReading) -> PathReading {
    only
}

/// Returns the bytes acknowledged so far, and the round-trip time: neither is known.
pub(super) fn tcp_signs(_: &socket2::Socket) -> (Option<u64>, Option<Duration>) {
    (None, None)
}
