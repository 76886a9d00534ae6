//! The table's columns as Arrow lays them out in memory
//! (<https://arrow.apache.org/docs/format/Columnar.html>).

use std::ffi::{CStr, c_void};

use eyas_lab::results::ResultsTable;
use pyo3::{PyResult, exceptions::PyOverflowError};

/// The format strings of Arrow for strings, integers and floating-point numbers.
const UTF8: &CStr = c"u";
const UINT64: &CStr = c"L";
const FLOAT64: &CStr = c"g";

/// One column.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) format: &'static CStr,
    pub(super) length: usize,
    /// The number of null values.
    pub(super) nulls: usize,
    /// The validity bitmap, if there may be nulls, followed by the values.
    pub(super) buffers: Vec<Buffer>,
}

/// A contiguous buffer.
pub(super) enum Buffer {
    /// No validity bitmap: there are no nulls.
    None,
    /// A bitmap or UTF-8.
    Bytes(Vec<u8>),
    Offsets(Vec<i32>),
    Integers(Vec<u64>),
    Floats(Vec<f64>),
}

impl Buffer {
    pub(super) fn pointer(&self) -> *const c_void {
        match self {
            Self::None => std::ptr::null(),
            Self::Bytes(values) => values.as_ptr().cast(),
            Self::Offsets(values) => values.as_ptr().cast(),
            Self::Integers(values) => values.as_ptr().cast(),
            Self::Floats(values) => values.as_ptr().cast(),
        }
    }
}

/// Returns all columns of a table.
///
/// # Errors
/// If the strings of a column are larger than 2 GiB in total.
pub(super) fn columns(table: &ResultsTable) -> PyResult<Vec<Column>> {
    let [point, scene, curve, x, seed, measure, unit, value] = ResultsTable::COLUMNS;
    Ok(vec![
        strings(point, &table.point)?,
        strings(scene, &table.scene)?,
        strings(curve, &table.curve)?,
        column(x, FLOAT64, table.len(), Buffer::Floats(table.x.clone())),
        column(seed, UINT64, table.len(), Buffer::Integers(table.seed.clone())),
        strings(measure, &table.measure)?,
        strings(unit, &table.unit)?,
        nullable_floats(value, &table.value),
    ])
}

fn column(name: &'static str, format: &'static CStr, length: usize, values: Buffer) -> Column {
    Column { name, format, length, nulls: 0, buffers: vec![Buffer::None, values] }
}

fn strings(name: &'static str, strings: &[String]) -> PyResult<Column> {
    let all = strings.concat().into_bytes();
    let mut end = 0;
    let ends = strings.iter().map(|text| {
        end += text.len();
        i32::try_from(end)
    });
    let offsets: Result<Vec<i32>, _> = std::iter::once(Ok(0)).chain(ends).collect();
    let offsets = offsets
        .map_err(|_| PyOverflowError::new_err(format!("the column {name} is larger than 2 GiB")))?;
    let buffers = vec![Buffer::None, Buffer::Offsets(offsets), Buffer::Bytes(all)];
    Ok(Column { name, format: UTF8, length: strings.len(), nulls: 0, buffers })
}

fn nullable_floats(name: &'static str, values: &[Option<f64>]) -> Column {
    let mut validity = vec![0_u8; values.len().div_ceil(8)];
    for (index, _) in values.iter().enumerate().filter(|(_, value)| value.is_some()) {
        validity[index / 8] |= 1 << (index % 8);
    }
    let nulls = values.iter().filter(|value| value.is_none()).count();
    let filled = values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
    let buffers = vec![Buffer::Bytes(validity), Buffer::Floats(filled)];
    Column { name, format: FLOAT64, length: values.len(), nulls, buffers }
}
