//! Waits for the first byte from the peer's application.

use std::io;

use bytes::{Bytes, BytesMut};
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use tokio::io::AsyncReadExt;

use super::EstablishedTransport;
#[cfg(feature = "quic")]
use crate::byte_stream::ByteTransport;
use crate::byte_stream::ReadWrite;
use crate::failure::{failure, io_failure};

/// The maximum number of bytes read ahead of the caller: one TLS record.
pub(super) const MAX_AHEAD: usize = 16 * 1024;
/// How often quinn is polled, because it does not notify of received data.
#[cfg(feature = "quic")]
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(2);

/// Waits for the first byte. Over TCP it is kept for the caller; over QUIC it stays in its stream.
pub(super) async fn wait(established: &mut EstablishedTransport) -> Result<(), AttemptFailure> {
    match &mut established.transport {
        #[cfg(feature = "quic")]
        ByteTransport::Quic(stream) => {
            let connection = stream.connection();
            while connection.stats().frame_rx.stream == 0 {
                if let Some(reason) = connection.close_reason() {
                    return Err(super::quic_failure::connection_failure(
                        &reason,
                        EvidenceLevel::Security,
                    ));
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        transport => established.read_ahead = read_some(transport.bytes()).await?,
    }
    Ok(())
}

async fn read_some(stream: &mut dyn ReadWrite) -> Result<Bytes, AttemptFailure> {
    let mut buffer = BytesMut::with_capacity(MAX_AHEAD);
    let read = stream.read_buf(&mut buffer).await;
    first_bytes(read, buffer, EvidenceLevel::Security)
}

/// Returns what the peer sent, if this read returned anything.
pub(super) fn first_bytes(
    read: io::Result<usize>,
    buffer: BytesMut,
    reached: EvidenceLevel,
) -> Result<Bytes, AttemptFailure> {
    match read {
        Ok(0) => {
            let detail = "the peer closed the connection without sending anything";
            Err(failure(FailureCause::Reset, reached, detail))
        }
        // Copy, so that the capacity of the buffer is not kept.
        Ok(_) => Ok(Bytes::copy_from_slice(&buffer)),
        Err(error) => Err(io_failure(&error, reached)),
    }
}
