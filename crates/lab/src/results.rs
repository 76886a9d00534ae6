//! The results as files.
//!
//! | file | purpose |
//! | --- | --- |
//! | `store` | finished runs, kept in the output directory |
//! | `document` | `result.json` |
//! | `matrix` | its table of all curves |
//! | `outlier` | its networks that miss what is wanted |
//! | `crumbs` | a warning about messages that do not fill packets |
//! | `csv` | `result.csv`: the summaries |
//! | `table` | `runs.csv`: every run |
//! | `parquet` | `runs.parquet`: the same |

mod crumbs;
mod csv;
mod document;
mod matrix;
mod outlier;
mod parquet;
mod store;
mod table;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub(crate) use csv::field;
pub use csv::to_csv;
pub use document::{ChoiceRow, PointRow, ResultsDocument, RunInfo, SCHEMA_VERSION};
pub use matrix::{MatrixLine, MatrixNumber, MatrixTable, NumberGrade};
pub use outlier::NetworkOutlier;
pub use store::RunStore;
pub(crate) use store::{create_directory, read_file, write_atomically};
pub use table::ResultsTable;

/// Writes `result.csv` and `runs.csv` to an output directory.
///
/// # Errors
/// If they cannot be written.
pub fn write_tables(
    document: &ResultsDocument,
    table: &ResultsTable,
    out: &Path,
) -> Result<(), ResultsError> {
    write_atomically(&out.join("result.csv"), to_csv(document))?;
    write_atomically(&out.join("runs.csv"), table.to_csv())
}

/// Writes the table of all runs as a Parquet file.
///
/// # Errors
/// If it cannot be written.
pub fn write_parquet(table: &ResultsTable, path: &Path) -> Result<(), ResultsError> {
    write_atomically(path, table.to_parquet())
}

/// Why results could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// A file or directory could not be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error from the system.
        cause: std::io::Error,
    },
    /// The content of a file is invalid.
    #[error("{}: {cause}", path.display())]
    Content {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
}
