//! How a message is sent.

use std::time::Duration;

use eyas::sctp::protocol::{
    identifier::{PathId, Ppid, StreamId},
    message::{Reliability, SendInfo},
};

use crate::{
    call::{done, release},
    code::Code,
    error::Failure,
    pointer::{Out, give, handle},
};

/// How messages are sent: on which stream, in which order, for how long. One thread at a time; can be used
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
    error: Out<'_, *mut Failure>,
    change: impl FnOnce(&mut SendInfo),
) -> Code {
    done(error, || {
        change(&mut handle(options, "options")?.0);
        Ok(())
    })
}

/// Makes options with the defaults: stream 0, in order, reliable. They are the caller's, to be freed with
/// eyas_send_options_free.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_new(
    options: Out<'_, *mut SendOptions>,
    error: Out<'_, *mut Failure>,
) -> Code {
    done(error, || {
        give(options.place("options")?, SendOptions::default());
        Ok(())
    })
}

/// The stream, from 0 on.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_stream(
    options: Option<&mut SendOptions>,
    stream: u16,
    error: Out<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.stream = StreamId(stream))
}

/// The payload protocol identifier, as a number of this host.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_ppid(
    options: Option<&mut SendOptions>,
    ppid: u32,
    error: Out<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.ppid = Ppid(ppid))
}

/// Whether messages may overtake the others of their stream.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_unordered(
    options: Option<&mut SendOptions>,
    unordered: bool,
    error: Out<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.unordered = unordered)
}

/// Gives a message up that has not been acknowledged so many milliseconds after it was handed in
/// (RFC 3758).
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_lifetime(
    options: Option<&mut SendOptions>,
    milliseconds: u32,
    error: Out<'_, *mut Failure>,
) -> Code {
    let lifetime = Duration::from_millis(milliseconds.into());
    change(options, error, |info| info.reliability = Reliability::Lifetime(lifetime))
}

/// Gives a message up that has been retransmitted so often (RFC 7496).
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_max_retransmissions(
    options: Option<&mut SendOptions>,
    retransmissions: u16,
    error: Out<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| {
        info.reliability = Reliability::Retransmissions(retransmissions);
    })
}

/// Never gives a message up: the default.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_reliable(
    options: Option<&mut SendOptions>,
    error: Out<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.reliability = Reliability::Reliable)
}

/// The path to prefer while it works, by its number, in place of the primary one.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_path(
    options: Option<&mut SendOptions>,
    path: u16,
    error: Out<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.path = Some(PathId(path)))
}

/// A number that the notification "send-failed" brings back.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_set_context(
    options: Option<&mut SendOptions>,
    context: u32,
    error: Out<'_, *mut Failure>,
) -> Code {
    change(options, error, |info| info.context = context)
}

/// Frees options; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_send_options_free(options: Option<Box<SendOptions>>) {
    release(options);
}
