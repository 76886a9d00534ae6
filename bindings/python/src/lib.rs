//! The part of the Python package `eyas` that is written in Rust: `eyas._native`.
//!
//! | module | job |
//! | --- | --- |
//! | `runtime` | the tokio runtime of the process, also after a fork |
//! | `driving` | which thread drives the runtime |
//! | `finalization` | the exit of the interpreter while the runtime is active |
//! | `wait`, `awaitable` | futures as blocking calls, and as awaitables |
//! | `event_loop` | the event loops of asyncio, which learn what has ended |
//! | `endpoint` | the shared part of connections |
//! | `client`, `body`, `cookies`, `response` | HTTP |
//! | `options` | the options of calls, and which of them is of the wrong type |
//! | `association`, `sctp_options` | SCTP with messages, streams and paths |
//! | `listener` | accepting connections and associations |
//! | `closing` | connections that close in the background, also when the interpreter exits |
//! | `inbox` | what was received for calls that were cancelled |
//! | `connection` | a connection as a stream of bytes |
//! | `race` | races and plans without a request |
//! | `lab` | experiments |
//! | `json` | connections, races and plans as JSON |
//! | `interpreter` | the single interpreter that can use the module |
//! | `error` | Rust errors as Python exceptions |
//!
//! The public part is written in Python (`python/eyas/`), and this module is private to it. Each call exists in two
//! forms: one that blocks and one, prefixed with `a`, that returns an awaitable.
//!
//! Both forms are built from the same future (`wait`): a blocking call waits without the GIL and checks for
//! signals, and cancelling an awaitable drops the future, which releases whatever the call had opened. A
//! message or a connection that arrives at the moment its waiter is cancelled goes to the next one (`inbox`).
//! Connections, associations, races and plans cross the boundary as the JSON of `--json` and become dataclasses
//! in Python. The wheel contains the command, too, whose features its dependencies are compiled with, so that
//! one build serves both.

mod association;
mod awaitable;
mod body;
mod client;
mod closing;
mod connection;
mod cookies;
mod driving;
mod endpoint;
mod error;
mod event_loop;
mod finalization;
mod inbox;
mod interpreter;
mod json;
mod lab;
mod listener;
mod options;
mod race;
mod response;
mod runtime;
mod sctp_options;
mod wait;

use pyo3::pymodule;

/// The members of `eyas._native`.
#[pymodule(name = "_native", gil_used = true)]
mod native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        association::{RawAssociation, aassociate, associate},
        body::Upload,
        client::HttpClient,
        connection::{RawConnection, aconnect, connect},
        endpoint::Endpoint,
        error::kinds,
        lab::{LabOutcome, LabPlan, LabWorklist, lab_plans, lab_task, lab_text, lab_version},
        listener::{Identity, RawListener, RawSctpListener},
        race::{aplan, arace, plan, race},
        response::RawResponse,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::interpreter::claim(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::finalization::register(module)
    }
}
