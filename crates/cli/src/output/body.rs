//! The destination of a body: standard output, a device, or a file that appears when it is
//! complete.

use std::fs::File;
use std::io::{self, IsTerminal};
#[cfg(unix)]
use std::os::fd::AsFd as _;
#[cfg(windows)]
use std::os::windows::io::AsHandle as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use eyas_http::without_password;

use super::background::BackgroundFile;
use super::destination::Destination;
use super::replacement::Replacement;
use super::unfinished::Unfinished;
use crate::failure::{Failure, Kind};

/// The destination of a body.
pub(crate) struct BodySink {
    destination: String,
    out: Out,
    written: u64,
}

enum Out {
    Discard,
    Stdout(BackgroundFile),
    /// A device or pipe, which cannot be replaced by a file.
    Device(BackgroundFile),
    /// A temporary file next to the destination, moved there when it is complete, deleted
    /// otherwise.
    File {
        file: BackgroundFile,
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
    pub(crate) fn stdout() -> Result<Self, Failure> {
        let destination = "standard output".to_owned();
        let file = unbuffered_stdout().map_err(|cause| Failure::write(&destination, &cause))?;
        Ok(Self::new(destination, Out::Stdout(BackgroundFile::new(file))))
    }

    fn new(destination: String, out: Out) -> Self {
        Self { destination, out, written: 0 }
    }

    /// Opens a file, device or pipe by its name; `-` is standard output.
    ///
    /// Opening a pipe without a reader blocks a separate thread, so that the caller can give up.
    /// What is written to a file counts as unfinished until it is complete.
    pub(crate) async fn file(path: &Path, unfinished: &Unfinished) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Self::stdout();
        }
        let destination = path.display().to_string();
        let path = path.to_owned();
        let opened = on_blocking_thread(move || Destination::open(&path)).await;
        let Destination { file, replacement } =
            opened.map_err(|cause| Failure::write(&destination, &cause))?;
        let (file, unfinished) = (BackgroundFile::new(file), unfinished.clone());
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
    pub(crate) async fn write(&mut self, piece: Bytes) -> Result<(), Failure> {
        self.written += piece.len() as u64;
        let written = match &mut self.out {
            Out::Discard => return Ok(()),
            Out::Stdout(file) | Out::Device(file) => file.write(piece).await,
            Out::File { file, unfinished, .. } => {
                unfinished.add(piece.len());
                file.write(piece).await
            }
        };
        written.map_err(|cause| Failure::write(&self.destination, &cause))
    }

    /// Writes what was gathered, so that a slow body is visible as it arrives. To be called whenever
    /// nothing more is ready.
    pub(crate) async fn flush(&mut self) -> Result<(), Failure> {
        let flushed = match &mut self.out {
            Out::Discard => return Ok(()),
            Out::Stdout(file) | Out::Device(file) | Out::File { file, .. } => file.flush().await,
        };
        flushed.map_err(|cause| Failure::write(&self.destination, &cause))
    }

    /// Completes the body: it is now available under its name, and written to disk.
    pub(crate) async fn finish(self) -> Result<(), Failure> {
        let Self { destination, out, .. } = self;
        let result = match out {
            Out::Discard => Ok(()),
            Out::Stdout(file) | Out::Device(file) => file.finish().await.map(drop),
            Out::File { file, replacement, unfinished } => match file.finish().await {
                Ok(mut file) => {
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

/// Returns standard output without the buffer that looks for the ends of lines.
#[cfg(unix)]
fn unbuffered_stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(windows)]
fn unbuffered_stdout() -> io::Result<File> {
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
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
