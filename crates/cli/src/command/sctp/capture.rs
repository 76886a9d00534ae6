//! `--capture`: packets captured to a file.

use std::path::Path;

use eyas_supervisor::CaptureFile;

use crate::failure::Failure;
use crate::flags::CommonFlags;
use crate::output;
use crate::terminal::{Line, OutputStyle, Paint};

/// Opens the file, if requested.
pub(super) fn begin(file: Option<&Path>) -> Result<Option<CaptureFile>, Failure> {
    let begun = file.map(|file| CaptureFile::create(file).map_err(|cause| unwritten(file, &cause)));
    begun.transpose()
}

/// Closes the file, and reports what is missing from it.
pub(super) fn finish(
    capture: Option<CaptureFile>,
    file: Option<&Path>,
    common: &CommonFlags,
) -> Result<(), Failure> {
    let (Some(capture), Some(file)) = (capture, file) else { return Ok(()) };
    let missed = capture.finish().map_err(|cause| unwritten(file, &cause))?;
    if missed > 0 {
        let said = format!("{} was too slow for its packets {missed} times", file.display());
        let line = Line::new().with(Paint::Warn, said);
        output::aside(&[line], OutputStyle::of_stderr(common.color));
    }
    Ok(())
}

fn unwritten(file: &Path, cause: &std::io::Error) -> Failure {
    Failure::write(&file.display().to_string(), cause)
}
