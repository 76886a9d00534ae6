//! The destination of a body: standard output, a device, or a file that appears when it is
//! complete.

use std::fs::File;
use std::io::{self, IsTerminal, Seek};
#[cfg(unix)]
use std::os::fd::AsFd as _;
#[cfg(windows)]
use std::os::windows::io::AsHandle as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;

use super::background::BackgroundFile;
use super::destination::{ExistingPart, FileDestination};
use super::part::RepresentationId;
use super::replacement::FileReplacement;
use super::unfinished::UnfinishedBytes;
use crate::failure::{Failure, FailureKind};

/// The destination of a body.
pub(crate) struct BodySink {
    destination: String,
    out: OpenSink,
    written: u64,
    /// Whether binary data is refused, because it would go to a terminal unasked.
    guards_terminal: bool,
}

/// Within so many bytes from the beginning, a zero byte shows that a body is not text; as in curl.
const RECOGNISED_WITHIN: u64 = 2000;

enum OpenSink {
    Discard,
    Stdout(BackgroundFile),
    /// A device or pipe, which cannot be replaced by a file.
    Device(BackgroundFile),
    /// A temporary file next to the destination, moved there when it is complete, deleted
    /// otherwise.
    File {
        file: BackgroundFile,
        replacement: FileReplacement,
        unfinished: UnfinishedBytes,
    },
}

impl BodySink {
    /// Returns a sink that discards the body.
    pub(crate) fn discard() -> Self {
        Self::new("nowhere".to_owned(), OpenSink::Discard)
    }

    /// Returns a sink that writes to standard output, but nothing binary to a terminal.
    pub(crate) fn stdout() -> Result<Self, Failure> {
        let guards_terminal = io::stdout().is_terminal();
        Ok(Self { guards_terminal, ..Self::any_stdout()? })
    }

    fn any_stdout() -> Result<Self, Failure> {
        let destination = "standard output".to_owned();
        let file = unbuffered_stdout().map_err(|cause| Failure::write(&destination, &cause))?;
        Ok(Self::new(destination, OpenSink::Stdout(BackgroundFile::new(file))))
    }

    fn new(destination: String, out: OpenSink) -> Self {
        Self { destination, out, written: 0, guards_terminal: false }
    }

    /// Opens a file, device or pipe by its name; `-` is standard output.
    ///
    /// Opening a pipe without a reader blocks a separate thread, so that the caller can give up.
    /// What is written to a file counts as unfinished until it is complete.
    pub(crate) async fn file(path: &Path, unfinished: &UnfinishedBytes) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Self::any_stdout();
        }
        let opening = path.to_owned();
        let opened = on_blocking_thread(move || FileDestination::open(&opening)).await;
        Self::opened(path, opened, unfinished)
    }

    /// Like [`file`](Self::file), but for a name that the server has chosen: nothing may be there
    /// under that name, neither a file nor a link, now or when the body is complete.
    pub(crate) async fn new_file(
        path: &Path,
        unfinished: &UnfinishedBytes,
    ) -> Result<Self, Failure> {
        let opening = path.to_owned();
        let opened = on_blocking_thread(move || FileDestination::create_new(&opening)).await;
        match opened {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                let name = path.display();
                let message =
                    format!("{name} is there already, and the server has chosen this name");
                Err(Failure::new(FailureKind::Write, message).hint("name the file with -o FILE"))
            }
            opened => Self::opened(path, opened, unfinished),
        }
    }

    /// Like [`file`](Self::file), but goes on with what is there already, and returns that.
    pub(crate) async fn go_on(
        path: &Path,
        unfinished: &UnfinishedBytes,
    ) -> Result<(Self, ExistingPart), Failure> {
        if path == Path::new("-") {
            return Ok((Self::any_stdout()?, ExistingPart::Nothing));
        }
        let opening = path.to_owned();
        match on_blocking_thread(move || FileDestination::go_on(&opening)).await {
            Ok((opened, beginning)) => Ok((Self::opened(path, Ok(opened), unfinished)?, beginning)),
            Err(cause) => Err(Failure::write(&path.display().to_string(), &cause)),
        }
    }

    /// Writes at the end of a file, whatever is in it.
    pub(crate) async fn append(path: &Path, unfinished: &UnfinishedBytes) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Self::any_stdout();
        }
        let opening = path.to_owned();
        let opened = on_blocking_thread(move || FileDestination::append(&opening)).await;
        Self::opened(path, opened, unfinished)
    }

    fn opened(
        path: &Path,
        opened: io::Result<FileDestination>,
        unfinished: &UnfinishedBytes,
    ) -> Result<Self, Failure> {
        let destination = path.display().to_string();
        let FileDestination { file, replacement } =
            opened.map_err(|cause| Failure::write(&destination, &cause))?;
        let (file, unfinished) = (BackgroundFile::new(file), unfinished.clone());
        unfinished.set_kept(false);
        let out = match replacement {
            Some(replacement) => OpenSink::File { file, replacement, unfinished },
            None => OpenSink::Device(file),
        };
        Ok(Self::new(destination, out))
    }

    /// Notes what the body is, so that a later run can continue it if this one is killed, or, with
    /// `keep`, if it fails in any way.
    pub(crate) fn identify(&mut self, identity: RepresentationId, keep: bool) {
        if let OpenSink::File { replacement, unfinished, .. } = &mut self.out {
            replacement.identify(identity, keep);
            unfinished.set_kept(keep);
        }
    }

    /// Discards what is there of the body already.
    pub(crate) fn start_over(&mut self) -> Result<(), Failure> {
        let OpenSink::File { file, .. } = &self.out else { return Ok(()) };
        let Some(mut file) = file.file() else { return Ok(()) };
        file.set_len(0)
            .and_then(|()| file.rewind())
            .map_err(|cause| Failure::write(&self.destination, &cause))
    }

    /// Returns whether the body is written to the terminal, where a progress bar would interfere.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.out, OpenSink::Stdout(_)) && io::stdout().is_terminal()
    }

    /// Returns the number of bytes given to [`write`](Self::write) so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Writes a piece of the body, perhaps only with those that follow.
    pub(crate) async fn write(&mut self, piece: Bytes) -> Result<(), Failure> {
        let is_early = self.written < RECOGNISED_WITHIN;
        if self.guards_terminal && is_early && is_binary(&piece) {
            return Err(Failure::new(
                FailureKind::Write,
                "the body is not text, and a terminal may take it for commands",
            )
            .hint("-o FILE writes it to a file, and -o - to the terminal nevertheless"));
        }
        self.written += piece.len() as u64;
        let written = match &mut self.out {
            OpenSink::Discard => return Ok(()),
            OpenSink::Stdout(file) | OpenSink::Device(file) => file.write(piece).await,
            OpenSink::File { file, unfinished, .. } => {
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
            OpenSink::Discard => return Ok(()),
            OpenSink::Stdout(file) | OpenSink::Device(file) | OpenSink::File { file, .. } => {
                file.flush().await
            }
        };
        flushed.map_err(|cause| Failure::write(&self.destination, &cause))
    }

    /// Completes the body: it is now available under its name, and written to disk. A file gets this
    /// time of its last change, if there is one.
    pub(crate) async fn finish(self, changed_at: Option<SystemTime>) -> Result<(), Failure> {
        let Self { destination, out, .. } = self;
        let result = match out {
            OpenSink::Discard => Ok(()),
            OpenSink::Stdout(file) | OpenSink::Device(file) => file.finish().await.map(drop),
            OpenSink::File { file, replacement, unfinished } => match file.finish().await {
                Ok(mut file) => {
                    if let Some(time) = changed_at {
                        // It is a convenience, and not all file systems know every time.
                        let _ = file.set_modified(time);
                    }
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

/// Returns whether this is the beginning of something other than text.
fn is_binary(piece: &[u8]) -> bool {
    piece.contains(&0)
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
pub(crate) fn unbuffered_stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(windows)]
pub(crate) fn unbuffered_stdout() -> io::Result<File> {
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}
