//! Writes the results of a load, second by second, to files that appear when they are complete.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use eyas_load::{HistogramLog, LoadProgress, SeriesWriter};

use crate::failure::Failure;
use crate::flags::FileFlags;
use crate::output::AtomicFile;

/// The requested files.
pub(super) struct LoadFiles {
    csv: Option<(SeriesWriter<AtomicFile>, String)>,
    histogram: Option<(HistogramLog<AtomicFile>, String)>,
}

impl LoadFiles {
    /// Creates the files.
    pub(super) fn create(flags: &FileFlags) -> Result<Self, Failure> {
        let csv = create(flags.csv.as_deref(), SeriesWriter::new)?;
        let histogram =
            create(flags.histogram.as_deref(), |file| HistogramLog::new(file, SystemTime::now()))?;
        Ok(Self { csv, histogram })
    }

    /// Adds a second.
    pub(super) fn add(&mut self, progress: &LoadProgress<'_>) -> Result<(), Failure> {
        if let Some((series, name)) = &mut self.csv {
            series.add(progress).map_err(|cause| Failure::write(name, &cause))?;
        }
        if let Some((log, name)) = &mut self.histogram {
            log.add(progress).map_err(|cause| Failure::write(name, &cause))?;
        }
        Ok(())
    }

    /// Completes the files.
    pub(super) fn finish(self) -> Result<(), Failure> {
        if let Some((series, _)) = self.csv {
            series.into_inner().finish()?;
        }
        match self.histogram {
            Some((log, _)) => log.into_inner().finish(),
            None => Ok(()),
        }
    }
}

fn create<T>(
    path: Option<&Path>,
    start: impl FnOnce(AtomicFile) -> io::Result<T>,
) -> Result<Option<(T, String)>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let name = path.display().to_string();
    let created =
        start(AtomicFile::create(path)?).map_err(|cause| Failure::write(&name, &cause))?;
    Ok(Some((created, name)))
}
