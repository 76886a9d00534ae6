//! Waits for the first byte from the peer's application.

use std::io;

use bytes::{Bytes, BytesMut};
use eyas_race::evidence::{Cause, Failure, Level};
use tokio::io::AsyncReadExt;

use super::Established;
#[cfg(feature = "quic")]
use crate::byte_stream::ByteTransport;
use crate::byte_stream::Bytewise;
use crate::failure::{failure, of_io};

/// The most that is read ahead of the caller: one TLS record.
pub(super) const MAX_AHEAD: usize = 16 * 1024;
/// quinn tells what has come, but not when: it is asked so often.
#[cfg(feature = "quic")]
const ASK_AGAIN: std::time::Duration = std::time::Duration::from_millis(2);

/// Waits for the first byte. Over TCP it is kept for the caller; over QUIC it stays in its stream.
pub(super) async fn wait(established: &mut Established) -> Result<(), Failure> {
    match &mut established.transport {
        #[cfg(feature = "quic")]
        ByteTransport::Quic(stream) => {
            let connection = stream.connection();
            while connection.stats().frame_rx.stream == 0 {
                if let Some(reason) = connection.close_reason() {
                    return Err(super::quic_failure::of_connection(&reason, Level::Security));
                }
                tokio::time::sleep(ASK_AGAIN).await;
            }
        }
        transport => established.said = read_some(transport.bytes()).await?,
    }
    Ok(())
}

async fn read_some(stream: &mut dyn Bytewise) -> Result<Bytes, Failure> {
    let mut said = BytesMut::with_capacity(MAX_AHEAD);
    let read = stream.read_buf(&mut said).await;
    spoke(read, said, Level::Security)
}

/// Returns what the peer sent, if this read returned anything.
pub(super) fn spoke(
    read: io::Result<usize>,
    said: BytesMut,
    reached: Level,
) -> Result<Bytes, Failure> {
    match read {
        Ok(0) => {
            let detail = "the peer closed the connection without sending anything";
            Err(failure(Cause::Reset, reached, detail))
        }
        // The room that was made for it is not kept with it.
        Ok(_) => Ok(Bytes::copy_from_slice(&said)),
        Err(error) => Err(of_io(&error, reached)),
    }
}
