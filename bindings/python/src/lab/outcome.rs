//! The result of an experiment.

use std::path::PathBuf;

use eyas_lab::{
    plan::Plan,
    report,
    results::{ResultsDocument, ResultsTable, write_parquet, write_tables},
    run::RunResults,
};
use pyo3::{prelude::*, types::PyCapsule};

use super::{COMMIT, arrow, lab_error};

/// The result of a plan, with the numbers of every run.
#[pyclass(frozen)]
pub(crate) struct LabOutcome {
    document: ResultsDocument,
    table: ResultsTable,
}

impl LabOutcome {
    pub(super) fn new(plan: &Plan, results: &RunResults, seeds: Vec<u64>) -> Self {
        let table = ResultsTable::new(plan, results, &seeds);
        Self { document: ResultsDocument::new(plan, results, COMMIT, seeds), table }
    }
}

#[pymethods]
impl LabOutcome {
    /// Returns the text of `result.json`.
    fn json(&self) -> PyResult<String> {
        self.document.to_json().map_err(|cause| lab_error("LabError", cause))
    }

    /// Returns the report as an HTML page.
    fn page(&self) -> String {
        report::page(&self.document)
    }

    /// Returns the figures of the report: each has a title and an HTML page of its own.
    fn figures(&self) -> Vec<(String, String)> {
        report::figures(&self.document)
    }

    /// Writes all files that the command writes.
    fn write(&self, out: PathBuf) -> PyResult<()> {
        let written = self
            .document
            .write(&out)
            .and_then(|()| write_tables(&self.document, &self.table, &out))
            .and_then(|()| report::write(&self.document, &out));
        written.map_err(|cause| lab_error("LabError", cause))
    }

    /// Writes the table of all runs as a Parquet file.
    fn parquet(&self, path: PathBuf) -> PyResult<()> {
        write_parquet(&self.table, &path).map_err(|cause| lab_error("LabError", cause))
    }

    /// Returns the number of rows in the table of all runs.
    fn rows(&self) -> usize {
        self.table.len()
    }

    /// Returns the table as an Arrow stream.
    fn arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::capsule(py, &self.table)
    }

    /// Returns the columns of the table, in order.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<(&'static str, Bound<'py, PyAny>)>> {
        let table = &self.table;
        let [point, scene, curve, x, seed, measure, unit, value] = ResultsTable::COLUMNS;
        Ok(vec![
            (point, (&table.point).into_pyobject(py)?),
            (scene, (&table.scene).into_pyobject(py)?),
            (curve, (&table.curve).into_pyobject(py)?),
            (x, (&table.x).into_pyobject(py)?),
            (seed, (&table.seed).into_pyobject(py)?),
            (measure, (&table.measure).into_pyobject(py)?),
            (unit, (&table.unit).into_pyobject(py)?),
            (value, (&table.value).into_pyobject(py)?),
        ])
    }
}
