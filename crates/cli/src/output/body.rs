//! A body's place: standard output, a device, or a file that appears when it is whole.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use tempfile::TempPath;
use tokio::io::AsyncWriteExt;

use super::place::Place;
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
        beside: TempPath,
        target: PathBuf,
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
    pub(crate) fn file(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::stdout());
        }
        let place = path.display().to_string();
        let out = open(path).map_err(|cause| Failure::write(&place, &cause))?;
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
            Out::Device(file) | Out::File { file, .. } => file.write_all(piece).await,
        };
        self.written += piece.len() as u64;
        result.map_err(|cause| Failure::write(&self.place, &cause))
    }

    /// The body is whole: what was written stands under its name.
    pub(crate) async fn finish(self) -> Result<(), Failure> {
        let Self { place, out, .. } = self;
        let result = match out {
            Out::Nowhere => Ok(()),
            Out::Stdout(mut out) => out.flush().await,
            Out::Device(mut file) => file.flush().await,
            Out::File { mut file, beside, target } => match file.flush().await {
                Ok(()) => beside.persist(&target).map_err(|failed| failed.error),
                Err(cause) => Err(cause),
            },
        };
        result.map_err(|cause| Failure::write(&place, &cause))
    }
}

/// A slow body is seen as it comes, so nothing is kept back.
async fn write_through(out: &mut tokio::io::Stdout, piece: &[u8]) -> io::Result<()> {
    out.write_all(piece).await?;
    out.flush().await
}

/// Opens what the name means.
fn open(path: &Path) -> io::Result<Out> {
    Ok(match Place::open(path)? {
        Place::Device(file) => Out::Device(file.into()),
        Place::File { file, beside, target } => Out::File { file: file.into(), beside, target },
    })
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
        false => Err(Failure::new(Kind::Usage, format!("no file name in {url}"))
            .hint("name the file with -o FILE")),
    }
}
