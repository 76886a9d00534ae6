//! A message that came in.

use std::ffi::c_void;

use bytes::Bytes;
use eyas::sctp::protocol::message::Message as Received;

use crate::{
    call::{done, release},
    code::Code,
    error::Failure,
    pointer::{Out, handle},
};

/// A message that came in, or a part of one. It does not change, so any number of threads can read it.
pub struct Message {
    stream: u16,
    ppid: u32,
    unordered: bool,
    begins: bool,
    ends: bool,
    data: Bytes,
}

impl Message {
    pub(crate) fn new(message: Received) -> Self {
        Self {
            stream: message.stream.0,
            ppid: message.ppid.0,
            unordered: message.unordered,
            begins: message.begins,
            ends: message.ends,
            data: message.into_bytes(),
        }
    }
}

/// Puts the first of the message's bytes into `data` and their number into `size`. They belong to the
/// message and live as long.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_data(
    message: Option<&Message>,
    data: Out<'_, *const c_void>,
    size: Out<'_, usize>,
    error: Out<'_, *mut Failure>,
) -> Code {
    done(error, || {
        let message = handle(message, "message")?;
        let (data, size) = (data.place("data")?, size.place("size")?);
        data.write(message.data.as_ptr().cast());
        size.write(message.data.len());
        Ok(())
    })
}

/// The number of bytes; 0 of NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_size(message: Option<&Message>) -> usize {
    message.map_or(0, |message| message.data.len())
}

/// The stream on which it came; 0 of NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_stream(message: Option<&Message>) -> u16 {
    message.map_or(0, |message| message.stream)
}

/// The payload protocol identifier, as a number of this host; 0 of NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_ppid(message: Option<&Message>) -> u32 {
    message.map_or(0, |message| message.ppid)
}

/// Whether it could overtake the other messages of its stream.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_is_unordered(message: Option<&Message>) -> bool {
    message.is_some_and(|message| message.unordered)
}

/// Whether this is the first part of the message.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_begins(message: Option<&Message>) -> bool {
    message.is_some_and(|message| message.begins)
}

/// Whether the message ends with this part; it does unless it is large.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_ends(message: Option<&Message>) -> bool {
    message.is_some_and(|message| message.ends)
}

/// Frees a message; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_free(message: Option<Box<Message>>) {
    release(message);
}
