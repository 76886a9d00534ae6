//! What came out of an experiment.

use std::path::PathBuf;

use eyas_lab::{
    plan::Plan,
    report,
    results::{Document, Table, write_parquet, write_tables},
    run::Results,
};
use pyo3::{prelude::*, types::PyCapsule};

use super::{COMMIT, arrow, raise};

/// The result of a plan, with the numbers of every run.
#[pyclass(frozen)]
pub(crate) struct LabOutcome {
    document: Document,
    table: Table,
}

impl LabOutcome {
    pub(super) fn new(plan: &Plan, results: &Results, seeds: Vec<u64>) -> Self {
        let table = Table::new(plan, results, &seeds);
        Self { document: Document::new(plan, results, COMMIT, seeds), table }
    }
}

#[pymethods]
impl LabOutcome {
    /// `result.json`.
    fn json(&self) -> PyResult<String> {
        self.document.to_json().map_err(|cause| raise("LabError", cause))
    }

    /// The page of the report.
    fn page(&self) -> String {
        report::page(&self.document)
    }

    /// Each figure of the report: its title, and a page with nothing else on it.
    fn figures(&self) -> Vec<(String, String)> {
        report::figures(&self.document)
    }

    /// Writes everything that the command writes.
    fn write(&self, out: PathBuf) -> PyResult<()> {
        let written = self
            .document
            .write(&out)
            .and_then(|()| write_tables(&self.document, &self.table, &out))
            .and_then(|()| report::write(&self.document, &out));
        written.map_err(|cause| raise("LabError", cause))
    }

    /// Writes the table of all runs as a file of Parquet.
    fn parquet(&self, path: PathBuf) -> PyResult<()> {
        write_parquet(&self.table, &path).map_err(|cause| raise("LabError", cause))
    }

    /// How many rows the table of all runs has.
    fn rows(&self) -> usize {
        self.table.len()
    }

    /// The table as a stream of Arrow.
    fn arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::capsule(py, &self.table)
    }

    /// The table as its columns, in their order.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<(&'static str, Bound<'py, PyAny>)>> {
        let table = &self.table;
        let [point, scene, curve, x, seed, measure, unit, value] = Table::COLUMNS;
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
