//! A range of a file, read piece by piece at the rate of the peer.

use std::{
    fs::File,
    future::Future,
    io::{self, Read, Seek, SeekFrom},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::BytesMut;
use eyas_http::serve::metered::{Held, LEAST_PIECE, OpenFile, PIECE, Piece, Share, Source};
use tokio::task::JoinHandle;

use super::LocatedFile;
use crate::site::BoxError;

/// An open file, with the permit to keep it open.
type OpenedFile = Option<(File, OpenFile)>;

/// A range of a file.
pub(super) struct FileBody {
    file: LocatedFile,
    share: Arc<Share>,
    position: u64,
    end: u64,
    kept: OpenedFile,
    reading: Option<JoinHandle<io::Result<(OpenedFile, Piece)>>>,
}

impl FileBody {
    /// Creates the range from `position` up to, but excluding, `end`.
    pub(super) fn new(file: LocatedFile, share: Arc<Share>, position: u64, end: u64) -> Self {
        Self { file, share, position, end, kept: None, reading: None }
    }

    const fn remaining_bytes(&self) -> u64 {
        self.end - self.position
    }

    fn read(&mut self, room: usize) -> JoinHandle<io::Result<(OpenedFile, Piece)>> {
        // A window of a few bytes must not cause as many reads.
        let room = room.clamp(LEAST_PIECE, PIECE) as u64;
        let held = self.share.piece(self.remaining_bytes().min(room) as usize);
        let is_last = held.bytes() as u64 == self.remaining_bytes();
        let (file, share, position) = (self.file.clone(), Arc::clone(&self.share), self.position);
        let kept = self.kept.take();
        tokio::task::spawn_blocking(move || {
            let (mut file, permit) = match kept {
                Some((file, permit)) => (file, Some(permit)),
                None => {
                    let mut file = file.open()?;
                    file.seek(SeekFrom::Start(position))?;
                    (file, if is_last { None } else { share.open_file() })
                }
            };
            let piece = piece(&mut file, held)?;
            Ok((permit.filter(|_| !is_last).map(|permit| (file, permit)), piece))
        })
    }
}

impl Source for FileBody {
    /// Returns the next bytes: about `room`, and fewer if the server is short of memory.
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
    ) -> Poll<Option<Result<Piece, BoxError>>> {
        if self.remaining_bytes() == 0 {
            return Poll::Ready(None);
        }
        let mut reading = match self.reading.take() {
            Some(reading) => reading,
            None => self.read(room),
        };
        let Poll::Ready(result) = Pin::new(&mut reading).poll(cx) else {
            self.reading = Some(reading);
            return Poll::Pending;
        };
        let (kept, piece) = result??;
        self.kept = kept;
        self.position += piece.len() as u64;
        Poll::Ready(Some(Ok(piece)))
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.remaining_bytes())
    }
}

fn piece(file: &mut File, held: Held) -> io::Result<Piece> {
    let mut bytes = BytesMut::zeroed(held.bytes());
    let read = file.read(&mut bytes)?;
    if read == 0 {
        // The file has become shorter than the announced length.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    bytes.truncate(read);
    Ok(Piece::holding(bytes.freeze(), Arc::new(held)))
}
