//! `--capture`: captures packets to a file.

use std::path::Path;

use eyas_supervisor::CaptureFile;

use crate::failure::Failure;
use crate::flags::CommonFlags;
use crate::output;
use crate::terminal::{OutputStyle, Paint, PaintedLine, counted};

/// Opens the file, if requested.
pub(super) fn create(file: Option<&Path>) -> Result<Option<CaptureFile>, Failure> {
    let created =
        file.map(|file| CaptureFile::create(file).map_err(|cause| write_failure(file, &cause)));
    created.transpose()
}

/// Closes the file, and reports what is missing from it.
pub(super) fn finish(
    capture: Option<CaptureFile>,
    file: Option<&Path>,
    common: &CommonFlags,
) -> Result<(), Failure> {
    let (Some(capture), Some(file)) = (capture, file) else { return Ok(()) };
    let dropped = capture.finish().map_err(|cause| write_failure(file, &cause))?;
    if dropped > 0 {
        let packets = counted(dropped, "packet");
        let text = format!("{} was too slow: it lacks {packets}", file.display());
        let line = PaintedLine::new().with_span(Paint::Warn, text);
        output::print_to_stderr(&[line], OutputStyle::of_stderr(common.color));
    }
    Ok(())
}

fn write_failure(file: &Path, cause: &std::io::Error) -> Failure {
    Failure::write(&file.display().to_string(), cause)
}
