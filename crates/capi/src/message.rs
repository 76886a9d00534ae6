//! Received messages.

use std::ffi::c_void;

use bytes::Bytes;
use eyas_sctp_tokio::protocol::message::Message as Received;

use crate::{
    call::{ffi_call, release},
    code::Code,
    error::Failure,
    pointer::{OutPointer, required_handle},
};

/// A received message, or a part of one. It is immutable, so any number of threads can read it.
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

/// Stores a pointer to the message's bytes in `data` and their number in `size`. The bytes belong
/// to the message.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_data(
    message: Option<&Message>,
    data: OutPointer<'_, *const c_void>,
    size: OutPointer<'_, usize>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let message = required_handle(message, "message")?;
        let (data, size) = (data.required("data")?, size.required("size")?);
        data.write(message.data.as_ptr().cast());
        size.write(message.data.len());
        Ok(())
    })
}

/// Returns the number of bytes; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_size(message: Option<&Message>) -> usize {
    message.map_or(0, |message| message.data.len())
}

/// Returns the stream on which the message arrived; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_stream(message: Option<&Message>) -> u16 {
    message.map_or(0, |message| message.stream)
}

/// Returns the payload protocol identifier in host byte order; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_ppid(message: Option<&Message>) -> u32 {
    message.map_or(0, |message| message.ppid)
}

/// Returns whether the message was sent unordered.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_is_unordered(message: Option<&Message>) -> bool {
    message.is_some_and(|message| message.unordered)
}

/// Returns whether this is the first part of the message.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_begins(message: Option<&Message>) -> bool {
    message.is_some_and(|message| message.begins)
}

/// Returns whether this is the last part of the message, which is always so unless it is large.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_ends(message: Option<&Message>) -> bool {
    message.is_some_and(|message| message.ends)
}

/// Frees a message; NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_message_free(message: Option<Box<Message>>) {
    release(message);
}
