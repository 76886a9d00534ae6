//! What an association tells its user: the notifications of RFC 6458 §6.1.

use std::ffi::{CStr, CString, c_char};

use eyas::sctp::{
    SctpError,
    protocol::{
        event::{Event as Told, OwnAddressChange, PathChange, ReconfigurationOutcome},
        identifier::StreamId,
    },
};
use serde_json::{Value, json};

use crate::{call::release, json};

/// A notification. It does not change, so any number of threads can read it.
pub struct Event {
    name: &'static CStr,
    facts: CString,
}

impl Event {
    pub(crate) fn new(event: &Told) -> Self {
        let (name, mut facts) = of(event);
        facts["event"] = name.to_string_lossy().into();
        Self { name, facts: json::c_text(facts) }
    }
}

fn of(event: &Told) -> (&'static CStr, Value) {
    match event {
        Told::Up { outbound, inbound, by_peer } => {
            (c"up", json!({ "outbound": outbound, "inbound": inbound, "by_peer": by_peer }))
        }
        Told::Answered => (c"answered", json!({})),
        Told::Restarted => (c"restarted", json!({})),
        Told::Lost(reason) => {
            (c"lost", json!({ "reason": SctpError::Lost(reason.clone()).to_string() }))
        }
        Told::Closed => (c"closed", json!({})),
        Told::PeerShutdown => (c"peer-shutdown", json!({})),
        Told::Path { path, remote, change } => {
            let remote = remote.ip().to_string();
            (c"path", json!({ "path": path.0, "remote": remote, "change": path_change(*change) }))
        }
        Told::OwnAddress { address, change, cause } => {
            let change = own_change(*change);
            let address = address.to_string();
            (c"own-address", json!({ "address": address, "change": change, "cause": cause }))
        }
        Told::SendFailed { stream, context, ppid, unordered, sent, data } => {
            let size = data.len();
            let facts = json!({
                "stream": stream.0, "context": context, "ppid": ppid.0, "unordered": unordered,
                "sent": sent, "size": size,
            });
            (c"send-failed", facts)
        }
        Told::PartialDeliveryAborted { stream } => {
            (c"partial-delivery-aborted", json!({ "stream": stream.0 }))
        }
        Told::SenderDry => (c"sender-dry", json!({})),
        Told::StreamsReset { outgoing, streams, outcome: how } => {
            let streams: Vec<u16> = streams.iter().map(|StreamId(stream)| *stream).collect();
            let facts =
                json!({ "outgoing": outgoing, "streams": streams, "outcome": outcome(*how) });
            (c"streams-reset", facts)
        }
        Told::StreamsAdded { outbound, inbound, outcome: how } => {
            let facts =
                json!({ "outbound": outbound, "inbound": inbound, "outcome": outcome(*how) });
            (c"streams-added", facts)
        }
        Told::AssociationReset { outcome: how } => {
            (c"association-reset", json!({ "outcome": outcome(*how) }))
        }
        Told::RemoteError { cause } => (c"remote-error", json!({ "cause": cause })),
        _ => (c"other", json!({})),
    }
}

const fn path_change(change: PathChange) -> &'static str {
    match change {
        PathChange::Confirmed => "confirmed",
        PathChange::Active => "active",
        PathChange::PotentiallyFailed => "potentially-failed",
        PathChange::Inactive => "inactive",
        PathChange::Added => "added",
        PathChange::Removed => "removed",
        PathChange::MadePrimary => "made-primary",
        PathChange::Rebound => "rebound",
        _ => "other",
    }
}

const fn own_change(change: OwnAddressChange) -> &'static str {
    match change {
        OwnAddressChange::Added => "added",
        OwnAddressChange::Removed => "removed",
        OwnAddressChange::MadePrimary => "made-primary",
        _ => "other",
    }
}

const fn outcome(outcome: ReconfigurationOutcome) -> &'static str {
    match outcome {
        ReconfigurationOutcome::Performed => "performed",
        ReconfigurationOutcome::Denied => "denied",
        ReconfigurationOutcome::Failed => "failed",
        _ => "other",
    }
}

/// What happened: "up", "path", "peer-shutdown", "send-failed", "sender-dry", "streams-reset", "lost",
/// "closed" and others, as docs/c.md lists them; NULL of NULL. The text lives as long as the library.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_event_name(event: Option<&Event>) -> *const c_char {
    event.map_or(std::ptr::null(), |event| event.name.as_ptr())
}

/// The facts, as JSON, with the name as `event`; NULL of NULL. The text belongs to the notification.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_event_json(event: Option<&Event>) -> *const c_char {
    event.map_or(std::ptr::null(), |event| event.facts.as_ptr())
}

/// Frees a notification; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_event_free(event: Option<Box<Event>>) {
    release(event);
}
