//! A file that is written in another thread while more arrives.

use std::fs::File;
use std::io::{self, IoSlice, Write};

use bytes::Bytes;
use tokio::task::JoinHandle;

/// Pieces are written together up to this size: to go to another thread and back takes longer than most pieces take to
/// arrive.
const MAX_GATHERED: usize = 256 * 1024;

/// The maximum number of pieces that are written together, however small.
const MAX_PIECES: usize = 1024;

/// A file, device or pipe to which pieces are written as they are, without being copied.
pub(super) struct BackgroundFile {
    /// `None` while it is being written.
    file: Option<File>,
    writing: Option<JoinHandle<(File, io::Result<()>)>>,
    /// What waits for more, or for [`flush`](Self::flush).
    gathered: Vec<Bytes>,
    gathered_bytes: usize,
}

impl BackgroundFile {
    pub(super) const fn new(file: File) -> Self {
        Self { file: Some(file), writing: None, gathered: Vec::new(), gathered_bytes: 0 }
    }

    /// Writes a piece, perhaps only with those that follow. An error may be of an earlier one.
    pub(super) async fn write(&mut self, piece: Bytes) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        self.gathered_bytes += piece.len();
        self.gathered.push(piece);
        let is_full = self.gathered_bytes >= MAX_GATHERED || self.gathered.len() >= MAX_PIECES;
        if is_full { self.start().await } else { Ok(()) }
    }

    /// Writes what was gathered, and waits until it is written.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if !self.gathered.is_empty() {
            self.start().await?;
        }
        self.written().await
    }

    /// Returns the file, unless something is being written.
    pub(super) const fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// Returns the file, once everything is written.
    pub(super) async fn finish(mut self) -> io::Result<File> {
        self.flush().await?;
        self.file.ok_or_else(lost)
    }

    /// Starts to write what was gathered, once everything before it is written.
    async fn start(&mut self) -> io::Result<()> {
        self.written().await?;
        let mut file = self.file.take().ok_or_else(lost)?;
        let pieces = std::mem::take(&mut self.gathered);
        self.gathered_bytes = 0;
        self.writing = Some(tokio::task::spawn_blocking(move || {
            let written = write_all(&mut file, &pieces);
            (file, written)
        }));
        Ok(())
    }

    /// Waits until what was started is written.
    async fn written(&mut self) -> io::Result<()> {
        let Some(writing) = &mut self.writing else { return Ok(()) };
        let ended = writing.await;
        self.writing = None;
        let (file, written) = ended.map_err(io::Error::other)?;
        self.file = Some(file);
        written
    }
}

fn lost() -> io::Error {
    io::Error::other("an earlier write has not ended")
}

fn write_all(file: &mut impl Write, pieces: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a few bytes of the first slices of each call.
    #[derive(Default)]
    struct Slow {
        taken: Vec<u8>,
        calls: usize,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.write_vectored(&[IoSlice::new(bytes)])
        }

        fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls.is_multiple_of(3) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
            let taken = bytes.len().min(5);
            self.taken.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn pieces_are_written_in_order_whatever_each_call_takes() {
        let pieces: Vec<Bytes> = ["a", "bcd", "efghijkl", "m", "nopq"].map(Bytes::from).to_vec();
        let mut slow = Slow::default();
        write_all(&mut slow, &pieces).expect("writes");
        assert_eq!(slow.taken, b"abcdefghijklmnopq");
    }

    /// The number of turns of the other thread depends on the bytes, not on the number of pieces.
    #[tokio::test]
    async fn pieces_are_written_together() {
        const PIECE: usize = 1400;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("body");
        let mut file = BackgroundFile::new(File::create(&path).expect("created"));
        let (mut turns, piece) = (0, Bytes::from(vec![7; PIECE]));
        for _ in 0..1000 {
            let before = file.gathered.len();
            file.write(piece.clone()).await.expect("writes");
            turns += usize::from(file.gathered.len() <= before);
        }
        file.finish().await.expect("writes");
        assert!(turns <= 1000 * PIECE / MAX_GATHERED, "{turns}");
        assert_eq!(std::fs::metadata(&path).expect("exists").len(), 1000 * PIECE as u64);
    }
}
