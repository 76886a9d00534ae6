//! What came out, as files.
//!
//! | file | job |
//! | --- | --- |
//! | `store` | finished runs, kept in the output directory |
//! | `document` | `result.json` |
//! | `matrix` | its table of all curves |
//! | `csv` | `result.csv` |

mod csv;
mod document;
mod matrix;
mod store;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use csv::to_csv;
pub use document::{ChoiceRow, Document, PointRow, RunInfo, SCHEMA_VERSION};
pub use matrix::{Grade, MatrixLine, MatrixNumber, MatrixTable};
pub use store::Store;
pub(crate) use store::{create_directory, read_file, write_whole};

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
