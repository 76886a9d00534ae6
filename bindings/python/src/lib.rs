//! The part of the Python package `eyas` that is written in Rust: `eyas._native`.
//!
//! | module | job |
//! | --- | --- |
//! | `runtime` | the one tokio runtime of the process, and what a fork leaves of it |
//! | `driving` | which thread drives the runtime |
//! | `ending` | the end of the interpreter, while the runtime goes on |
//! | `wait` | futures as blocking calls and as awaitables |
//! | `endpoint` | what all connections of a program share |
//! | `client`, `body`, `response` | HTTP |
//! | `association`, `sctp_options` | SCTP with its messages, streams and paths |
//! | `listener` | accepting connections and associations |
//! | `arrived` | what came for a call that was cancelled at that moment |
//! | `connection` | one raced connection as a stream of bytes |
//! | `race` | a race or a plan for its own sake |
//! | `lab` | experiments |
//! | `json` | what connections, races and plans say about themselves, as JSON |
//! | `interpreter` | the one interpreter that the module serves |
//! | `failure` | errors of Rust as exceptions of Python |
//!
//! What users see is written in Python, `python/eyas/`, and this module is private to it: each call comes
//! in two forms, one that blocks and one, with an `a` before its name, that gives an awaitable.

mod arrived;
mod association;
mod body;
mod client;
mod connection;
mod driving;
mod ending;
mod endpoint;
mod failure;
mod interpreter;
mod json;
mod lab;
mod listener;
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
        failure::kinds,
        lab::{LabOutcome, LabPlan, LabWorklist, lab_plans, lab_task, lab_text, lab_version},
        listener::{Identity, RawListener, RawSctpListener},
        race::{aplan, arace, plan, race},
        response::RawResponse,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::interpreter::claim(module.py())?;
        super::ending::watch(module)
    }
}
