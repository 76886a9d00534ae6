//! SCTP with messages: an association, its streams and its paths.

use std::{
    ffi::{c_char, c_int},
    net::IpAddr,
    pin::pin,
    sync::Arc,
};

use bytes::Bytes;
use eyas_sctp_tokio::{
    AssociationJson, SctpAssociation,
    protocol::{
        identifier::{PathId, StreamId},
        message::SendInfo,
    },
};
use serde_json::{Value, json};

use crate::{
    call::{ffi_call, ffi_call_with_code, release},
    code::{Code, EYAS_CLOSED, EYAS_END, EYAS_OK, EYAS_WOULD_BLOCK},
    endpoint_options,
    endpoint_runtime::{EndpointRuntime, RuntimeOwned},
    error::Failure,
    event::Event,
    json,
    message::Message,
    pointer::{DataPointer, OutPointer, TextPointer, required_handle, return_handle},
    send_options::SendOptions,
    wait::{CallTurn, HandleClosed, WaitLimit, store_descriptor, wait, wait_for},
};

/// An SCTP association that carries messages on all its streams, without encryption. May be used
/// from any thread; one thread can send, one receive and one wait for notifications at the same
/// time. Timeouts work as for a connection.
pub struct Association {
    association: RuntimeOwned<SctpAssociation>,
    sending: CallTurn,
    receiving: CallTurn,
    watching: CallTurn,
    over: HandleClosed,
}

impl Association {
    pub(crate) fn new(
        association: SctpAssociation,
        endpoint_runtime: &Arc<EndpointRuntime>,
    ) -> Self {
        Self {
            association: RuntimeOwned::new(association, endpoint_runtime),
            sending: CallTurn::default(),
            receiving: CallTurn::default(),
            watching: CallTurn::default(),
            over: HandleClosed::default(),
        }
    }

    fn endpoint_runtime(&self) -> &Arc<EndpointRuntime> {
        self.association.endpoint_runtime()
    }

    /// Returns the association for a call that does not wait; an error in a forked child.
    fn now<T>(&self, call: impl FnOnce(&SctpAssociation) -> T) -> Result<T, Failure> {
        let _inside = self.endpoint_runtime().enter()?;
        Ok(call(&self.association))
    }

    fn send(&self, info: &SendInfo, data: &Bytes, limit: WaitLimit) -> Result<Option<()>, Failure> {
        let _turn = self.sending.acquire("sending")?;
        wait(self.endpoint_runtime(), &self.sending, &self.over, limit, |cx| {
            pin!(self.association.send(info, data.clone())).poll(cx).map_err(Failure::from)
        })
    }

    fn receive(&self, limit: WaitLimit) -> Result<Option<Option<Message>>, Failure> {
        let _turn = self.receiving.acquire("receiving")?;
        let received = wait(self.endpoint_runtime(), &self.receiving, &self.over, limit, |cx| {
            pin!(self.association.receive()).poll(cx).map_err(Failure::from)
        })?;
        Ok(received.map(|message| message.map(Message::new)))
    }

    fn event(&self, limit: WaitLimit) -> Result<Option<Option<Event>>, Failure> {
        let _turn = self.watching.acquire("waiting for notifications")?;
        let reported = wait(self.endpoint_runtime(), &self.watching, &self.over, limit, |cx| {
            pin!(self.association.event()).poll(cx).map(Ok)
        })?;
        Ok(reported.map(|event| event.map(|event| Event::new(&event))))
    }

    fn shutdown(&self, limit: WaitLimit) -> Result<(), Failure> {
        wait_for(self.endpoint_runtime(), limit, self.association.shutdown())??;
        Ok(())
    }

    fn status(&self) -> Result<Value, Failure> {
        match self.now(SctpAssociation::status)? {
            Some(status) => Ok(json!(AssociationJson::from(&status))),
            None => Err(Failure::new(EYAS_CLOSED, "the association is over")),
        }
    }

    /// Ends waiting calls in all threads.
    fn end_calls(&self) {
        self.over.end();
        for turn in [&self.sending, &self.receiving, &self.watching] {
            turn.readiness.raise();
        }
    }
}

/// Sends a message, which is copied; waits for space in the send buffer. It is sent whole or not at
/// all. `options` may be NULL: stream 0, ordered, reliable.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_send(
    association: Option<&Association>,
    data: DataPointer<'_>,
    size: usize,
    options: Option<&SendOptions>,
    timeout_ms: i32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call_with_code(error, || {
        let association = required_handle(association, "association")?;
        let data = Bytes::copy_from_slice(data.read(size, "data")?);
        let info = options.map_or_else(SendInfo::default, SendOptions::info);
        let sent = association.send(&info, &data, WaitLimit::from_milliseconds(timeout_ms))?;
        Ok(if sent.is_some() { EYAS_OK } else { EYAS_WOULD_BLOCK })
    })
}

/// Receives a message, or a part of a large one. The caller must free it with eyas_message_free.
/// EYAS_END: the peer has finished. Unread messages close the receive window.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_receive(
    association: Option<&Association>,
    timeout_ms: i32,
    message: OutPointer<'_, *mut Message>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call_with_code(error, || {
        let place = message.null_place("message")?;
        Ok(
            match required_handle(association, "association")?
                .receive(WaitLimit::from_milliseconds(timeout_ms))?
            {
                None => EYAS_WOULD_BLOCK,
                Some(None) => EYAS_END,
                Some(Some(message)) => {
                    return_handle(place, message);
                    EYAS_OK
                }
            },
        )
    })
}

/// Returns the next notification (RFC 6458 §6.1). The caller must free it with eyas_event_free.
/// EYAS_END: the association is over. If notifications are not read, only the latest are kept.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_event(
    association: Option<&Association>,
    timeout_ms: i32,
    event: OutPointer<'_, *mut Event>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call_with_code(error, || {
        let place = event.null_place("event")?;
        Ok(
            match required_handle(association, "association")?
                .event(WaitLimit::from_milliseconds(timeout_ms))?
            {
                None => EYAS_WOULD_BLOCK,
                Some(None) => EYAS_END,
                Some(Some(event)) => {
                    return_handle(place, event);
                    EYAS_OK
                }
            },
        )
    })
}

/// Stores a descriptor in `fd` that becomes readable (POLLIN) when eyas_association_send is worth
/// retrying. It belongs to the association: neither read nor close it.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_send_fd(
    association: Option<&Association>,
    fd: OutPointer<'_, c_int>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        store_descriptor(fd, required_handle(association, "association").map(|one| &one.sending))
    })
}

/// The same for eyas_association_receive.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_receive_fd(
    association: Option<&Association>,
    fd: OutPointer<'_, c_int>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        store_descriptor(fd, required_handle(association, "association").map(|one| &one.receiving))
    })
}

/// The same for eyas_association_event.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_event_fd(
    association: Option<&Association>,
    fd: OutPointer<'_, c_int>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        store_descriptor(fd, required_handle(association, "association").map(|one| &one.watching))
    })
}

/// Returns the current state of the association as JSON: `state`, streams, windows, `primary`, and
/// `paths`, each with its number `path`. The caller must free the text with eyas_text_free.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_status_json(
    association: Option<&Association>,
    text: OutPointer<'_, *mut c_char>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = text.required("text")?;
        json::return_json(place, required_handle(association, "association")?.status()?);
        Ok(())
    })
}

/// Makes a path the primary one, which new data is sent on; its number is that of
/// eyas_association_status_json.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_set_primary(
    association: Option<&Association>,
    path: u16,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let association = required_handle(association, "association")?;
        Ok(association.now(|one| one.set_primary(PathId(path)))??)
    })
}

/// Announces another local address to the peer (RFC 5061), or withdraws one; the notification
/// "own-address" reports the outcome.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_add_address(
    association: Option<&Association>,
    address: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || change_address(association, address, SctpAssociation::add_address))
}

/// See eyas_association_add_address.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_remove_address(
    association: Option<&Association>,
    address: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || change_address(association, address, SctpAssociation::remove_address))
}

fn change_address(
    association: Option<&Association>,
    address: TextPointer<'_>,
    change: impl FnOnce(&SctpAssociation, IpAddr) -> Result<(), eyas_sctp_tokio::SctpError>,
) -> Result<(), Failure> {
    let address = endpoint_options::address(address)?;
    Ok(required_handle(association, "association")?.now(|one| change(one, address))??)
}

/// Resets one of our outgoing streams, so that its sequence numbers start anew (RFC 6525); the
/// notification "streams-reset" reports the outcome.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_reset_stream(
    association: Option<&Association>,
    stream: u16,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let association = required_handle(association, "association")?;
        Ok(association.now(|one| one.reset_streams(true, &[StreamId(stream)]))??)
    })
}

/// Stores how many bytes of user data of one stream are in the send buffer: those not yet sent, and
/// those sent and not yet acknowledged. Where streams use paths of their own, a program fills the
/// stream that has the least. Either place may be NULL. EYAS_CLOSED: the association is over.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_queue(
    association: Option<&Association>,
    stream: u16,
    unsent: OutPointer<'_, usize>,
    unacknowledged: OutPointer<'_, usize>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let association = required_handle(association, "association")?;
        let queue = association.now(|one| one.queue(StreamId(stream)))?;
        let queue = queue.ok_or_else(|| Failure::new(EYAS_CLOSED, "the association is over"))?;
        unsent.store(queue.unsent);
        unacknowledged.store(queue.unacknowledged);
        Ok(())
    })
}

/// Shuts the association down once all messages have arrived, and waits for it.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_shutdown(
    association: Option<&Association>,
    timeout_ms: i32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        required_handle(association, "association")?
            .shutdown(WaitLimit::from_milliseconds(timeout_ms))
    })
}

/// Aborts the association and sends `reason`, which may be NULL, to the peer. Waiting calls of
/// other threads return EYAS_CANCELLED. The handle must still be freed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_abort(
    association: Option<&Association>,
    reason: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let association = required_handle(association, "association")?;
        let reason = reason.read_if_any("reason")?.unwrap_or_default();
        association.now(|one| one.abort(Bytes::copy_from_slice(reason.as_bytes())))?;
        association.end_calls();
        Ok(())
    })
}

/// Frees an association; NULL is allowed. No call on it may be in progress. An established
/// association is shut down gracefully, as long as its endpoint exists: see
/// eyas_endpoint_wait_for_connections.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_association_free(association: Option<Box<Association>>) {
    release(association);
}
