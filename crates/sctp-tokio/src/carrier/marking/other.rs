//! Systems where a packet has no fields of its own: their control messages differ, and Windows obeys none. Since such
//! fields change how packets are treated on their way, not what they mean, the packets are sent without them, and that is
//! logged once.

use std::io;
use std::sync::Once;

use eyas_sctp::io::{Marking, Transmit};
use socket2::Socket;

pub(super) fn applies(transmit: &Transmit) -> bool {
    static TOLD: Once = Once::new();
    if transmit.marking != Marking::default() {
        TOLD.call_once(|| {
            tracing::warn!("packets have no DSCP, hop limit or mark of their own: only on Linux");
        });
    }
    false
}

pub(super) fn send(_: &Socket, _: bool, _: &Transmit, _: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
