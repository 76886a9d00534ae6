//! A body's place: standard output, a device, or a file that appears when it is whole.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use eyas_http::without_password;
use tokio::io::AsyncWriteExt;

use super::place::Place;
use super::replacement::Replacement;
use super::unfinished::Unfinished;
use crate::failure::{Failure, Kind};

/// Where a body is written.
pub(crate) struct BodySink {
    place: String,
    out: Out,
    written: u64,
}

enum Out {
    Nowhere,
    Stdout(tokio::io::Stdout),
    /// A device or pipe, which cannot be replaced by a file.
    Device(tokio::fs::File),
    /// A file beside its name, moved there when it is whole, deleted otherwise.
    File {
        file: tokio::fs::File,
        replacement: Replacement,
        unfinished: Unfinished,
    },
}

impl BodySink {
    /// A body that nobody wants.
    pub(crate) fn nowhere() -> Self {
        Self { place: "nowhere".to_owned(), out: Out::Nowhere, written: 0 }
    }

    /// Standard output.
    pub(crate) fn stdout() -> Self {
        let out = Out::Stdout(tokio::io::stdout());
        Self { place: "standard output".to_owned(), out, written: 0 }
    }

    /// A file, device or pipe by its name; `-` is standard output.
    ///
    /// A pipe is waited for until somebody reads it, on a thread of its own, so that the caller can
    /// give up. What is written to a file is counted as unfinished until it is whole.
    pub(crate) async fn file(path: &Path, unfinished: &Unfinished) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::stdout());
        }
        let place = path.display().to_string();
        let path = path.to_owned();
        let opened = aside(move || Place::open(&path)).await;
        let Place { file, replacement } = opened.map_err(|cause| Failure::write(&place, &cause))?;
        let (file, unfinished) = (file.into(), unfinished.clone());
        let out = match replacement {
            Some(replacement) => Out::File { file, replacement, unfinished },
            None => Out::Device(file),
        };
        Ok(Self { place, out, written: 0 })
    }

    /// Whether the body is on the screen, where a progress bar would be in its way.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.out, Out::Stdout(_)) && io::stdout().is_terminal()
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Writes a piece of the body.
    pub(crate) async fn write(&mut self, piece: &[u8]) -> Result<(), Failure> {
        let result = match &mut self.out {
            Out::Nowhere => Ok(()),
            Out::Stdout(out) => write_through(out, piece).await,
            Out::Device(file) => file.write_all(piece).await,
            Out::File { file, unfinished, .. } => {
                unfinished.add(piece.len());
                file.write_all(piece).await
            }
        };
        self.written += piece.len() as u64;
        result.map_err(|cause| Failure::write(&self.place, &cause))
    }

    /// The body is whole: what was written stands under its name, and on the disk.
    pub(crate) async fn finish(self) -> Result<(), Failure> {
        let Self { place, out, .. } = self;
        let result = match out {
            Out::Nowhere => Ok(()),
            Out::Stdout(mut out) => out.flush().await,
            Out::Device(mut file) => file.flush().await,
            Out::File { mut file, replacement, unfinished } => match file.flush().await {
                Ok(()) => {
                    let mut file = file.into_std().await;
                    let mut abandoned = Abandoned(Some(replacement.beside().to_owned()));
                    let finished = aside(move || replacement.finish(&mut file)).await;
                    abandoned.0 = None;
                    if finished.is_ok() {
                        unfinished.is_whole();
                    }
                    finished
                }
                Err(cause) => Err(cause),
            },
        };
        result.map_err(|cause| Failure::write(&place, &cause))
    }
}

/// Removes a file if nobody waits for its end any more: the disk may take long, and the process will
/// not be there when the thread that finishes the file is done.
struct Abandoned(Option<PathBuf>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // It may have moved to its place a moment ago.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Does on a thread of its own what may wait.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| Err(io::Error::other(cause)))
}

/// A slow body is seen as it comes, so nothing is kept back.
async fn write_through(out: &mut tokio::io::Stdout, piece: &[u8]) -> io::Result<()> {
    out.write_all(piece).await?;
    out.flush().await
}

/// curl's `-O`: the last part of the URL's path, which must be a plain file name.
pub(crate) fn remote_name(url: &url::Url) -> Result<PathBuf, Failure> {
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or("");
    let harmless = !last.is_empty()
        && last != "."
        && last != ".."
        && !last.contains(['\\', ':'])
        && !last.chars().any(char::is_control);
    match harmless {
        true => Ok(PathBuf::from(last)),
        false => {
            Err(Failure::new(Kind::Usage, format!("no file name in {}", without_password(url)))
                .hint("name the file with -o FILE"))
        }
    }
}
