//! The pipes by which event loops are woken, and which loop watches which.

use std::{
    io::{PipeReader, PipeWriter, Read as _, Write as _},
    os::fd::AsRawFd as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use pyo3::{
    exceptions::PyNotImplementedError,
    prelude::*,
    types::{PyWeakrefMethods, PyWeakrefReference},
};

use super::{Ended, EventLoop, Wakeup};

/// It contains one byte at most, while calls have ended of which the loop does not know, so neither end blocks.
pub(super) struct Pipe(PipeReader, PipeWriter);

impl Pipe {
    pub(super) fn wake(&self) {
        // It has room, and its reader lives as long.
        let _ = (&self.1).write(&[0]);
    }

    pub(super) fn clear(&self) {
        let _ = (&self.0).read(&mut [0]);
    }
}

/// An event loop that watches a pipe, for as long as it does.
struct Watching {
    object: Py<PyWeakrefReference>,
    event_loop: Weak<EventLoop>,
    /// In a child of a fork the pipe remains the parent's.
    process: u32,
}

impl Watching {
    fn is(&self, object: &Bound<'_, PyAny>) -> bool {
        let here = self.object.bind(object.py()).upgrade();
        self.process == std::process::id() && here.is_some_and(|here| here.is(object))
    }
}

/// Locked by threads with the GIL only, so that no child of a fork finds it locked.
static WATCHING: Mutex<Vec<Watching>> = Mutex::new(Vec::new());

fn watching() -> MutexGuard<'static, Vec<Watching>> {
    WATCHING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns an event loop that watches a pipe, from now on if it did not; `None` if it cannot. The pipe lives until the
/// loop is closed.
pub(super) fn watched_by(object: &Bound<'_, PyAny>) -> PyResult<Option<Arc<EventLoop>>> {
    let known = watching().iter().find(|known| known.is(object)).map(|it| it.event_loop.upgrade());
    if let Some(known) = known.flatten() {
        return Ok(Some(known));
    }
    let Ok(weak) = PyWeakrefReference::new(object) else { return Ok(None) };
    let (reader, writer) = std::io::pipe()?;
    let descriptor = reader.as_raw_fd();
    let event_loop = EventLoop::new(Wakeup::Pipe(Pipe(reader, writer)));
    let arguments = (descriptor, Ended(Arc::clone(&event_loop)));
    match object.call_method1("add_reader", arguments) {
        Ok(_) => {}
        Err(error) if error.is_instance_of::<PyNotImplementedError>(object.py()) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    }
    let added = Watching {
        object: weak.unbind(),
        event_loop: Arc::downgrade(&event_loop),
        process: std::process::id(),
    };
    let mut watching = watching();
    watching.retain(|other| other.event_loop.strong_count() > 0);
    watching.push(added);
    Ok(Some(event_loop))
}
