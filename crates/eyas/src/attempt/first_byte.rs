//! Waits for the first byte from the peer's application.

use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::Bytes;
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use tokio::io::ReadBuf;

use super::EstablishedTransport;
#[cfg(feature = "quic")]
use crate::byte_stream::ByteTransport;
use crate::byte_stream::ReadWrite;
use crate::failure::{failure, io_failure};

/// The maximum number of bytes read ahead of the caller: one TLS record.
const MAX_AHEAD: usize = 16 * 1024;
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
        transport => {
            established.read_ahead = read_some(transport.bytes(), EvidenceLevel::Security).await?
        }
    }
    Ok(())
}

/// Waits for the first bytes of a peer that has come this far. It holds no buffer meanwhile. Cancel-safe.
pub(super) async fn read_some(
    stream: &mut dyn ReadWrite,
    reached: EvidenceLevel,
) -> Result<Bytes, AttemptFailure> {
    let read = poll_fn(|cx| {
        let mut piece = [MaybeUninit::uninit(); MAX_AHEAD];
        let mut piece = ReadBuf::uninit(&mut piece);
        ready!(Pin::new(&mut *stream).poll_read(cx, &mut piece))?;
        Poll::Ready(Ok(Bytes::copy_from_slice(piece.filled())))
    });
    match read.await {
        Ok(bytes) if bytes.is_empty() => {
            let detail = "the peer closed the connection without sending anything";
            Err(failure(FailureCause::Reset, reached, detail))
        }
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(io_failure(&error, reached)),
    }
}
