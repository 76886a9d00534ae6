//! The destination of a body: standard output, a device, or a file that appears when it is
//! complete.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use bytes::BytesMut;
use eyas_http::without_password;
use tokio::io::AsyncWriteExt;

use super::destination::Destination;
use super::replacement::Replacement;
use super::unfinished::Unfinished;
use crate::failure::{Failure, Kind};

/// Pieces of a body are written together up to this size: a write to a file or to standard output goes
/// to another thread and back, which takes longer than most pieces take to arrive.
const MAX_GATHERED: usize = 256 * 1024;

/// The destination of a body.
pub(crate) struct BodySink {
    destination: String,
    out: Out,
    /// What waits for more, or for [`flush`](Self::flush).
    gathered: BytesMut,
    written: u64,
}

enum Out {
    Discard,
    Stdout(tokio::io::Stdout),
    /// A device or pipe, which cannot be replaced by a file.
    Device(tokio::fs::File),
    /// A temporary file next to the destination, moved there when it is complete, deleted
    /// otherwise.
    File {
        file: tokio::fs::File,
        replacement: Replacement,
        unfinished: Unfinished,
    },
}

impl BodySink {
    /// Returns a sink that discards the body.
    pub(crate) fn discard() -> Self {
        Self::new("nowhere".to_owned(), Out::Discard)
    }

    /// Returns a sink that writes to standard output.
    pub(crate) fn stdout() -> Self {
        Self::new("standard output".to_owned(), Out::Stdout(tokio::io::stdout()))
    }

    fn new(destination: String, out: Out) -> Self {
        Self { destination, out, gathered: BytesMut::new(), written: 0 }
    }

    /// Opens a file, device or pipe by its name; `-` is standard output.
    ///
    /// Opening a pipe without a reader blocks a separate thread, so that the caller can give up.
    /// What is written to a file counts as unfinished until it is complete.
    pub(crate) async fn file(path: &Path, unfinished: &Unfinished) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::stdout());
        }
        let destination = path.display().to_string();
        let path = path.to_owned();
        let opened = on_blocking_thread(move || Destination::open(&path)).await;
        let Destination { file, replacement } =
            opened.map_err(|cause| Failure::write(&destination, &cause))?;
        let (file, unfinished) = (file.into(), unfinished.clone());
        let out = match replacement {
            Some(replacement) => Out::File { file, replacement, unfinished },
            None => Out::Device(file),
        };
        Ok(Self::new(destination, out))
    }

    /// Returns whether the body is written to the terminal, where a progress bar would interfere.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.out, Out::Stdout(_)) && io::stdout().is_terminal()
    }

    /// Returns the number of bytes given to [`write`](Self::write) so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Writes a piece of the body, perhaps only with those that follow.
    pub(crate) async fn write(&mut self, piece: &[u8]) -> Result<(), Failure> {
        self.written += piece.len() as u64;
        match &self.out {
            Out::Discard => return Ok(()),
            Out::File { unfinished, .. } => unfinished.add(piece.len()),
            Out::Stdout(_) | Out::Device(_) => {}
        }
        self.gathered.extend_from_slice(piece);
        if self.gathered.len() >= MAX_GATHERED { self.flush().await } else { Ok(()) }
    }

    /// Writes what was gathered, so that a slow body is visible as it arrives. To be called whenever
    /// nothing more is ready.
    pub(crate) async fn flush(&mut self) -> Result<(), Failure> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let result = match &mut self.out {
            Out::Discard => Ok(()),
            Out::Stdout(out) => write_through(out, &self.gathered).await,
            Out::Device(file) | Out::File { file, .. } => file.write_all(&self.gathered).await,
        };
        self.gathered.clear();
        result.map_err(|cause| Failure::write(&self.destination, &cause))
    }

    /// Completes the body: it is now available under its name, and written to disk.
    pub(crate) async fn finish(mut self) -> Result<(), Failure> {
        self.flush().await?;
        let Self { destination, out, .. } = self;
        let result = match out {
            Out::Discard => Ok(()),
            Out::Stdout(mut out) => out.flush().await,
            Out::Device(mut file) => file.flush().await,
            Out::File { mut file, replacement, unfinished } => match file.flush().await {
                Ok(()) => {
                    let mut file = file.into_std().await;
                    let mut guard = RemoveOnDrop(Some(replacement.temporary().to_owned()));
                    let finished = on_blocking_thread(move || replacement.finish(&mut file)).await;
                    guard.0 = None;
                    if finished.is_ok() {
                        unfinished.completed();
                    }
                    finished
                }
                Err(cause) => Err(cause),
            },
        };
        result.map_err(|cause| Failure::write(&destination, &cause))
    }
}

/// Removes a file if its completion is not awaited any more: the disk may take long, and the
/// process may have ended when the thread that completes the file is done.
struct RemoveOnDrop(Option<PathBuf>);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // It may just have been moved to its destination.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Runs something that may block in a separate thread.
async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| Err(io::Error::other(cause)))
}

/// Writes without buffering.
async fn write_through(out: &mut tokio::io::Stdout, piece: &[u8]) -> io::Result<()> {
    out.write_all(piece).await?;
    out.flush().await
}

/// Returns the name for curl's `-O`: the last part of the URL's path, which must be a plain file
/// name.
pub(crate) fn remote_name(url: &url::Url) -> Result<PathBuf, Failure> {
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or("");
    let is_plain_name = !last.is_empty()
        && last != "."
        && last != ".."
        && !last.contains(['\\', ':'])
        && !last.chars().any(char::is_control);
    match is_plain_name {
        true => Ok(PathBuf::from(last)),
        false => {
            Err(Failure::new(Kind::Usage, format!("no file name in {}", without_password(url)))
                .hint("name the file with -o FILE"))
        }
    }
}
