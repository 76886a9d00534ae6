//! The options for sending a message.

use std::time::Duration;

use eyas_sctp_tokio::protocol::{
    identifier::{PathId, Ppid, StreamId},
    message::{MessageReliability, SendInfo},
};

use crate::{
    call::{ffi_call, release},
    code::Code,
    error::Failure,
    pointer::{OutPointer, required_handle, return_handle},
};

/// The options for sending messages: stream, order, lifetime. To be used by one thread at a time,
/// for any number of messages.
#[derive(Default)]
pub struct SendOptions(SendInfo);

impl SendOptions {
    pub(crate) fn info(&self) -> SendInfo {
        self.0
    }
}

fn change(
    options: Option<&mut SendOptions>,
    error: OutPointer<'_, *mut Failure>,
    change: impl FnOnce(&mut SendInfo),
) -> Code {
    ffi_call(error, || {
        change(&mut required_handle(options, "options")?.0);
        Ok(())
    })
}

/// Creates options with the defaults: stream 0, ordered, reliable. The caller must free them with
/// eyas_send_options_free.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_new(
    options: OutPointer<'_, *mut SendOptions>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        return_handle(options.required("options")?, SendOptions::default());
        Ok(())
    })
}

/// Sets the stream, starting at 0.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_stream(
    options: Option<&mut SendOptions>,
    stream: u16,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.stream = StreamId(stream))
}

/// Sets the payload protocol identifier, in host byte order.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_ppid(
    options: Option<&mut SendOptions>,
    ppid: u32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.ppid = Ppid(ppid))
}

/// Sets whether messages are sent unordered.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_unordered(
    options: Option<&mut SendOptions>,
    unordered: bool,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.unordered = unordered)
}

/// Abandons messages that have not been acknowledged this many milliseconds after they were sent
/// (RFC 3758).
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_lifetime(
    options: Option<&mut SendOptions>,
    milliseconds: u32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    let lifetime = Duration::from_millis(milliseconds.into());
    change(options, error, |info| info.reliability = MessageReliability::Lifetime(lifetime))
}

/// Abandons messages after this number of retransmissions (RFC 7496).
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_max_retransmissions(
    options: Option<&mut SendOptions>,
    retransmissions: u16,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| {
        info.reliability = MessageReliability::Retransmissions(retransmissions);
    })
}

/// Never abandons messages: the default.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_reliable(
    options: Option<&mut SendOptions>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.reliability = MessageReliability::Reliable)
}

/// Sets the path to use while it works, by its number, instead of the primary one.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_path(
    options: Option<&mut SendOptions>,
    path: u16,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.path = Some(PathId(path)))
}

/// Sets a number that is returned by the notification "send-failed".
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_context(
    options: Option<&mut SendOptions>,
    context: u32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.context = context)
}

/// Frees options; NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_free(options: Option<Box<SendOptions>>) {
    release(options);
}
