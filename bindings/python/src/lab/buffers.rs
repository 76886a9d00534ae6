//! The table's columns as Arrow lays them out in memory
//! (<https://arrow.apache.org/docs/format/Columnar.html>).

use std::ffi::{CStr, c_void};

use eyas_lab::results::Table;
use pyo3::{PyResult, exceptions::PyOverflowError};

/// Texts, whole numbers and numbers, as Arrow's formats name them.
const UTF8: &CStr = c"u";
const UINT64: &CStr = c"L";
const FLOAT64: &CStr = c"g";

/// One column.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) format: &'static CStr,
    pub(super) length: usize,
    /// How many of its values are lacking.
    pub(super) nulls: usize,
    /// Which values are there, if not all are, before the values themselves.
    pub(super) buffers: Vec<Buffer>,
}

/// Values on end.
pub(super) enum Buffer {
    /// Every value is there.
    None,
    /// Bits or letters.
    Bytes(Vec<u8>),
    Offsets(Vec<i32>),
    Whole(Vec<u64>),
    Numbers(Vec<f64>),
}

impl Buffer {
    pub(super) fn pointer(&self) -> *const c_void {
        match self {
            Self::None => std::ptr::null(),
            Self::Bytes(values) => values.as_ptr().cast(),
            Self::Offsets(values) => values.as_ptr().cast(),
            Self::Whole(values) => values.as_ptr().cast(),
            Self::Numbers(values) => values.as_ptr().cast(),
        }
    }
}

/// All columns of a table.
///
/// # Errors
/// If the texts of a column have more than 2 GiB together.
pub(super) fn columns(table: &Table) -> PyResult<Vec<Column>> {
    let [point, scene, curve, x, seed, measure, unit, value] = Table::COLUMNS;
    Ok(vec![
        texts(point, &table.point)?,
        texts(scene, &table.scene)?,
        texts(curve, &table.curve)?,
        column(x, FLOAT64, table.len(), Buffer::Numbers(table.x.clone())),
        column(seed, UINT64, table.len(), Buffer::Whole(table.seed.clone())),
        texts(measure, &table.measure)?,
        texts(unit, &table.unit)?,
        numbers(value, &table.value),
    ])
}

fn column(name: &'static str, format: &'static CStr, length: usize, values: Buffer) -> Column {
    Column { name, format, length, nulls: 0, buffers: vec![Buffer::None, values] }
}

fn texts(name: &'static str, texts: &[String]) -> PyResult<Column> {
    let all = texts.concat().into_bytes();
    let mut end = 0;
    let ends = texts.iter().map(|text| {
        end += text.len();
        i32::try_from(end)
    });
    let offsets: Result<Vec<i32>, _> = std::iter::once(Ok(0)).chain(ends).collect();
    let offsets = offsets
        .map_err(|_| PyOverflowError::new_err(format!("the column {name} has more than 2 GiB")))?;
    let buffers = vec![Buffer::None, Buffer::Offsets(offsets), Buffer::Bytes(all)];
    Ok(Column { name, format: UTF8, length: texts.len(), nulls: 0, buffers })
}

fn numbers(name: &'static str, numbers: &[Option<f64>]) -> Column {
    let mut is_there = vec![0_u8; numbers.len().div_ceil(8)];
    for (place, _) in numbers.iter().enumerate().filter(|(_, number)| number.is_some()) {
        is_there[place / 8] |= 1 << (place % 8);
    }
    let nulls = numbers.iter().filter(|number| number.is_none()).count();
    let values = numbers.iter().map(|number| number.unwrap_or(f64::NAN)).collect();
    let buffers = vec![Buffer::Bytes(is_there), Buffer::Numbers(values)];
    Column { name, format: FLOAT64, length: numbers.len(), nulls, buffers }
}
