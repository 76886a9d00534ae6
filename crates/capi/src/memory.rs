//! What was learnt, and plans.

use std::{
    ffi::c_char,
    time::{SystemTime, UNIX_EPOCH},
};

use eyas::race::report::MemoryRowJson;
use serde_json::json;

use crate::{
    call::ffi_call,
    code::Code,
    endpoint::Endpoint,
    error::Failure,
    json,
    pointer::{OutPointer, TextPointer, required_handle},
    target::{Target, host},
    wait::{WaitLimit, wait_for},
};

/// Returns what would be tried to reach the target, in which order and why, as JSON (docs/reference/json.md:
/// `plan`). This queries DNS but connects to nothing. The caller must free the text with
/// eyas_text_free. Blocks; may be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_plan_json(
    endpoint: Option<&Endpoint>,
    target: Option<&Target>,
    timeout_ms: i32,
    text: OutPointer<'_, *mut c_char>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = text.required("text")?;
        let (endpoint, target) =
            (required_handle(endpoint, "endpoint")?, required_handle(target, "target")?);
        let preconnection = target.preconnection(endpoint)?;
        let plan = wait_for(
            endpoint.endpoint_runtime(),
            WaitLimit::from_milliseconds(timeout_ms),
            preconnection.plan(),
        )?;
        json::return_json(place, json::plan(&plan));
        Ok(())
    })
}

/// Returns what was learnt as JSON (docs/reference/json.md: the `rows` of `memory`), newest first; about one
/// host, or about all if `host` is NULL. The caller must free the text with eyas_text_free. May be
/// called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_memory_json(
    endpoint: Option<&Endpoint>,
    host: TextPointer<'_>,
    text: OutPointer<'_, *mut c_char>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = text.required("text")?;
        let store = required_handle(endpoint, "endpoint")?.inner()?.memory();
        let host = match host.read_if_any("host")? {
            Some(host) => Some(eyas::zone::parse_host(host).map_err(Failure::invalid)?),
            None => None,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let rows = MemoryRowJson::rows(&store.entries(), host.as_ref(), now, store.config());
        json::return_json(place, json!(rows));
        Ok(())
    })
}

/// Deletes what was learnt about a host on every network, and stores the number of rows in
/// `forgotten`, which may be NULL. May be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_memory_forget(
    endpoint: Option<&Endpoint>,
    host: TextPointer<'_>,
    forgotten: OutPointer<'_, usize>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let store = required_handle(endpoint, "endpoint")?.inner()?.memory();
        forgotten.store(store.forget(&self::host(host, "host")?));
        Ok(())
    })
}

/// Deletes everything. May be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_memory_clear(
    endpoint: Option<&Endpoint>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        required_handle(endpoint, "endpoint")?.inner()?.memory().clear();
        Ok(())
    })
}

/// Returns the problems with the memory file since the last call, as a JSON array of texts. The
/// caller must free the text with eyas_text_free. May be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_memory_warnings_json(
    endpoint: Option<&Endpoint>,
    text: OutPointer<'_, *mut c_char>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = text.required("text")?;
        let warnings = required_handle(endpoint, "endpoint")?.inner()?.memory().warnings();
        json::return_json(place, json!(warnings));
        Ok(())
    })
}
