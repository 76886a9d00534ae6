//! Frames on a channel.

use std::future::Future;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::channel::ReadWrite;
use crate::protocol::frame::{FrameError, HEADER, PerfFrame};

/// The most frames that wait to be sent: a peer that does not read them is gone.
const MAX_UNSENT: usize = 1_024;
/// The most frames that were read and not handled; the peer waits then.
const MAX_UNHANDLED: usize = 16;

/// Why no frame could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Reads a frame. Not cancel-safe.
pub(crate) async fn read_frame(
    from: &mut (impl AsyncRead + Unpin),
) -> Result<PerfFrame, ReadError> {
    let mut header = [0; HEADER];
    from.read_exact(&mut header).await?;
    let mut payload = vec![0; PerfFrame::payload_length(header)?];
    from.read_exact(&mut payload).await?;
    Ok(PerfFrame::parse(header[0], &payload)?)
}

/// Writes a frame.
pub(crate) async fn write_frame(
    to: &mut (impl AsyncWrite + Unpin),
    frame: &PerfFrame,
) -> io::Result<()> {
    to.write_all(&frame.encode()).await?;
    to.flush().await
}

/// The control channel: dropping it closes it.
pub(crate) struct ControlChannel {
    arrived: mpsc::Receiver<Result<PerfFrame, ReadError>>,
    unsent: mpsc::Sender<PerfFrame>,
    sent: u64,
    written: watch::Receiver<u64>,
    _tasks: JoinSet<()>,
}

impl ControlChannel {
    pub(crate) fn new(stream: Box<dyn ReadWrite>) -> Self {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let (arrivals, arrived) = mpsc::channel(MAX_UNHANDLED);
        let (unsent, mut to_send) = mpsc::channel(MAX_UNSENT);
        let (count, written) = watch::channel(0);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let read = read_frame(&mut reader).await;
                let is_over = read.is_err();
                if arrivals.send(read).await.is_err() || is_over {
                    return;
                }
            }
        });
        tasks.spawn(async move {
            while let Some(frame) = to_send.recv().await {
                if write_frame(&mut writer, &frame).await.is_err() {
                    return;
                }
                count.send_modify(|count| *count += 1);
            }
        });
        Self { arrived, unsent, sent: 0, written, _tasks: tasks }
    }

    /// Waits for the next frame; `None` once the channel is closed or broken. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<PerfFrame> {
        match self.arrived.recv().await? {
            Ok(frame) => Some(frame),
            Err(error) => {
                tracing::debug!(%error, "the control channel of a test has ended");
                None
            }
        }
    }

    /// Sends a frame; returns whether the peer still reads them.
    pub(crate) fn send(&mut self, frame: PerfFrame) -> bool {
        self.sent += 1;
        self.unsent.try_send(frame).is_ok()
    }

    /// Waits until the transport has accepted all frames so far, or the channel broke.
    pub(crate) fn written(&self) -> impl Future<Output = ()> + Send + use<> {
        let (sent, mut written) = (self.sent, self.written.clone());
        async move {
            // An error means that no more will be written.
            let _ = written.wait_for(|written| *written >= sent).await;
        }
    }
}
