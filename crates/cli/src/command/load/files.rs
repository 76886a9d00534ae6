//! The course of a load, second by second, in files that appear when they are whole.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use eyas_lab::load::{HistogramLog, Progress, Series};

use crate::failure::Failure;
use crate::flags::FileFlags;
use crate::output::WholeFile;

/// The requested files.
pub(super) struct Files {
    csv: Option<(Series<WholeFile>, String)>,
    histogram: Option<(HistogramLog<WholeFile>, String)>,
}

impl Files {
    /// Begins them.
    pub(super) fn create(flags: &FileFlags) -> Result<Self, Failure> {
        let csv = begin(flags.csv.as_deref(), Series::new)?;
        let histogram =
            begin(flags.histogram.as_deref(), |file| HistogramLog::new(file, SystemTime::now()))?;
        Ok(Self { csv, histogram })
    }

    /// Adds a second.
    pub(super) fn add(&mut self, progress: &Progress<'_>) -> Result<(), Failure> {
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

fn begin<T>(
    path: Option<&Path>,
    start: impl FnOnce(WholeFile) -> io::Result<T>,
) -> Result<Option<(T, String)>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let name = path.display().to_string();
    let begun = start(WholeFile::create(path)?).map_err(|cause| Failure::write(&name, &cause))?;
    Ok(Some((begun, name)))
}
