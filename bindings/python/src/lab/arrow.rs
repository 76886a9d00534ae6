//! The table of all runs as an Arrow C stream, which pandas, Polars, DuckDB and pyarrow read without a copy
//! (<https://arrow.apache.org/docs/format/CStreamInterface.html>).
//!
//! The crate `arrow-array` and its dependencies take longer to compile than the rest of the module. The interface
//! consists of three structs that never change, and is meant to be copied into other programs.

#![allow(unsafe_code, reason = "C structs with callbacks for their consumers")]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr::{null, null_mut},
    sync::Arc,
};

use eyas_lab::results::ResultsTable;
use pyo3::{prelude::*, types::PyCapsule};

use super::buffers::{Buffer, Column};

/// The flag of columns that may contain nulls.
const NULLABLE: i64 = 2;

/// `struct ArrowSchema`.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    children_count: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    buffers_count: i64,
    children_count: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private: *mut c_void,
}

/// `struct ArrowArrayStream`. A consumer that moves it clears `release`; otherwise its capsule releases it.
#[repr(C)]
pub(super) struct Stream {
    schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private: *mut c_void,
}

// SAFETY: it owns the `Source` that it points to, which is `Send`.
unsafe impl Send for Stream {}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `release` is set, so the stream has been neither moved nor released.
            unsafe { release(self) }
        }
    }
}

/// The data of a stream.
struct Source {
    columns: Arc<Vec<Column>>,
    /// Whether the only batch was returned.
    is_read: bool,
}

/// Returns a capsule with a stream of one batch, the whole table.
pub(super) fn capsule<'py>(
    py: Python<'py>,
    table: &ResultsTable,
) -> PyResult<Bound<'py, PyCapsule>> {
    let source = Source { columns: Arc::new(super::buffers::columns(table)?), is_read: false };
    let stream = Stream {
        schema: Some(stream_schema),
        next: Some(stream_next),
        last_error: Some(stream_error),
        release: Some(stream_release),
        private: Box::into_raw(Box::new(source)).cast(),
    };
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// The data to which a schema points.
struct SchemaParts {
    _name: CString,
    children: Vec<*mut Schema>,
}

impl Schema {
    fn new(name: CString, format: &'static CStr, flags: i64, children: Vec<Self>) -> Self {
        let mut children: Vec<*mut Self> =
            children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
        let (pointer, count) = (children.as_mut_ptr(), children.len());
        let name_pointer = name.as_ptr();
        Self {
            format: format.as_ptr(),
            name: name_pointer,
            metadata: null(),
            flags,
            children_count: count as i64,
            children: pointer,
            dictionary: null_mut(),
            release: Some(release_schema),
            private: Box::into_raw(Box::new(SchemaParts { _name: name, children })).cast(),
        }
    }
}

/// The data to which an array points.
struct ArrayParts {
    /// Shared with all arrays of the table: children may outlive their parent.
    _columns: Arc<Vec<Column>>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

impl Array {
    fn new(
        length: usize,
        nulls: usize,
        buffers: Vec<*const c_void>,
        children: Vec<Self>,
        columns: &Arc<Vec<Column>>,
    ) -> Self {
        let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
        let mut parts = Box::new(ArrayParts { _columns: Arc::clone(columns), buffers, children });
        Self {
            length: length as i64,
            null_count: nulls as i64,
            offset: 0,
            buffers_count: parts.buffers.len() as i64,
            children_count: parts.children.len() as i64,
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary: null_mut(),
            release: Some(release_array),
            private: Box::into_raw(parts).cast(),
        }
    }

    /// Returns the table as a struct array whose children are the columns.
    fn batch(columns: &Arc<Vec<Column>>) -> Self {
        let child = |column: &Column| {
            let pointer = |buffer: &Buffer| buffer.pointer();
            let buffers = column.buffers.iter().map(pointer).collect();
            Self::new(column.length, column.nulls, buffers, Vec::new(), columns)
        };
        let length = columns.first().map_or(0, |column| column.length);
        Self::new(length, 0, vec![null()], columns.iter().map(child).collect(), columns)
    }
}

unsafe extern "C" fn stream_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    // SAFETY: consumers call this with a stream that is not released yet.
    let source = unsafe { &*(*stream).private.cast::<Source>() };
    let child = |column: &Column| {
        let name = CString::new(column.name).unwrap_or_default();
        let flags = if column.buffers[0].pointer().is_null() { 0 } else { NULLABLE };
        Schema::new(name, column.format, flags, Vec::new())
    };
    let children = source.columns.iter().map(child).collect();
    // SAFETY: `out` is valid for writes and uninitialized.
    unsafe { out.write(Schema::new(CString::default(), c"+s", 0, children)) };
    0
}

unsafe extern "C" fn stream_next(stream: *mut Stream, out: *mut Array) -> c_int {
    // SAFETY: as in `stream_schema`; consumers call this from one thread at a time.
    let source = unsafe { &mut *(*stream).private.cast::<Source>() };
    let mut array = Array::batch(&source.columns);
    if source.is_read {
        // A released array marks the end of the stream.
        // SAFETY: the array was created above and is not shared.
        unsafe { release_array(&raw mut array) };
    }
    source.is_read = true;
    // SAFETY: `out` is valid for writes and uninitialized.
    unsafe { out.write(array) };
    0
}

/// The other callbacks never fail, so there is never an error to describe.
unsafe extern "C" fn stream_error(_: *mut Stream) -> *const c_char {
    null()
}

unsafe extern "C" fn stream_release(stream: *mut Stream) {
    // SAFETY: called only once, because `release` is cleared here; `private` was boxed by `capsule`.
    unsafe {
        (*stream).release = None;
        drop(Box::from_raw((*stream).private.cast::<Source>()));
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: called only once, because `release` is cleared here; children and parts were boxed by `Schema::new`.
    // Of a child that a consumer has moved, only the box is ours.
    unsafe {
        (*schema).release = None;
        let parts = Box::from_raw((*schema).private.cast::<SchemaParts>());
        for child in parts.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
    }
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: as in `release_schema`.
    unsafe {
        (*array).release = None;
        let parts = Box::from_raw((*array).private.cast::<ArrayParts>());
        for child in parts.children.iter().copied() {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
    }
}
