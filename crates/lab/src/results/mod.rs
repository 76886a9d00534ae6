//! What came out, as files.
//!
//! | file | job |
//! | --- | --- |
//! | `store` | finished runs, kept in the output directory |
//! | `document` | `result.json` |
//! | `matrix` | its table of all curves |
//! | `csv` | `result.csv`: the sums |
//! | `table` | `runs.csv`: every run |
//! | `parquet` | `runs.parquet`: the same |

mod csv;
mod document;
mod matrix;
mod parquet;
mod store;
mod table;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use csv::to_csv;
pub use document::{ChoiceRow, Document, PointRow, RunInfo, SCHEMA_VERSION};
pub use matrix::{Grade, MatrixLine, MatrixNumber, MatrixTable};
pub use store::Store;
pub(crate) use store::{create_directory, read_file, write_whole};
pub use table::Table;

/// Writes `result.csv` and `runs.csv` into an output directory.
///
/// # Errors
/// If they cannot be written.
pub fn write_tables(document: &Document, table: &Table, out: &Path) -> Result<(), ResultsError> {
    write_whole(&out.join("result.csv"), to_csv(document))?;
    write_whole(&out.join("runs.csv"), table.to_csv())
}

/// Writes the table of all runs as a file of Parquet.
///
/// # Errors
/// If it cannot be written.
pub fn write_parquet(table: &Table, path: &Path) -> Result<(), ResultsError> {
    write_whole(path, table.to_parquet())
}

/// Why results could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// A file or directory.
    #[error("{}: {cause}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A file that is not what it should be.
    #[error("{}: {cause}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}
