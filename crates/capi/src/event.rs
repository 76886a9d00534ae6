//! Notifications about an association (RFC 6458 §6.1).

use std::ffi::{CString, c_char};

use eyas_sctp_tokio::{EventJson, protocol::event::Event as ProtocolEvent};
use serde_json::json;

use crate::{call::release, json};

/// A notification. It is immutable, so any number of threads can read it.
pub struct Event {
    name: CString,
    facts: CString,
}

impl Event {
    pub(crate) fn new(event: &ProtocolEvent) -> Self {
        let facts = json!(EventJson::from(event));
        let name = facts["event"].as_str().unwrap_or_default().to_owned();
        Self { name: json::c_string(name), facts: json::c_text(facts) }
    }
}

/// Returns the kind of notification: "up", "path", "peer-shutdown", "send-failed", "sender-dry",
/// "streams-reset", "lost", "closed" and others, as listed in docs/guide/c.md; NULL for NULL. The text
/// belongs to the notification.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_event_name(event: Option<&Event>) -> *const c_char {
    event.map_or(std::ptr::null(), |event| event.name.as_ptr())
}

/// Returns the details as JSON, with the kind as `event`; NULL for NULL. The text belongs to the
/// notification.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_event_json(event: Option<&Event>) -> *const c_char {
    event.map_or(std::ptr::null(), |event| event.facts.as_ptr())
}

/// Frees a notification; NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_event_free(event: Option<Box<Event>>) {
    release(event);
}
