//! Writes the result of a call to its program.

use libc::c_int;

use super::Errno;
use super::connection::Reply;
use super::decode::{Delivery, NameBuffer, SupervisorRequest};
use super::thread::Thread;
use crate::local::control::copy_control;

/// How a call ends after the requested data has been written to its thread's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The call returns a number.
    Returns(i64),
    /// The call returns the number of a new descriptor.
    Descriptor { flags: c_int },
    /// The call returns the number of a new descriptor, which is also written to this address.
    Peeled { flags: c_int, place: Option<u64> },
}

/// Writes what a thread requested to its memory.
pub(super) fn write(
    thread: &Thread,
    request: &SupervisorRequest,
    reply: &Reply,
) -> Result<Ending, Errno> {
    let result = i64::from(reply.response.result);
    let zero = Ok(Ending::Returns(0));
    match &request.delivery {
        Delivery::Return => Ok(Ending::Returns(match request.header.op {
            // Only these return something other than 0.
            crate::local::Op::Send | crate::local::Op::SetOption => result,
            _ => 0,
        })),
        Delivery::Descriptor { flags, name } => {
            write_name(thread, reply.response.peer(), *name)?;
            Ok(Ending::Descriptor { flags: *flags })
        }
        Delivery::Name(name) => {
            write_name(thread, reply.response.peer(), *name)?;
            zero
        }
        Delivery::Message { room, name, header, count } => {
            thread.write(room, &reply.data)?;
            write_name(thread, reply.response.peer(), *name)?;
            if let Some(header) = header {
                write_header(thread, *header, *name, reply)?;
            }
            write_count(thread, *count, result)
        }
        Delivery::Sent { length } => write_count(thread, Some(*length), result),
        Delivery::Number(place) => {
            if *place != 0 {
                thread.write_at(*place, &reply.response.result.to_ne_bytes())?;
            }
            zero
        }
        Delivery::Value { value, length, peels, opens } => {
            let room = usize::try_from(request.header.c).unwrap_or_default();
            let data = &reply.data[..reply.data.len().min(room)];
            thread.write_at(*value, data)?;
            thread.write_at(*length, &(data.len() as u32).to_ne_bytes())?;
            match peels {
                Some(flags) => {
                    let place = (data.len() >= 8).then_some(*value + 4);
                    Ok(Ending::Peeled { flags: *flags, place })
                }
                // The identifier of the association has been written; the errno says that it is not
                // established yet.
                None if *opens && reply.response.flags != 0 => Err(Errno(reply.response.flags)),
                None => zero,
            }
        }
    }
}

/// Writes the length of the first of several messages; the call then returns their number.
fn write_count(thread: &Thread, place: Option<u64>, result: i64) -> Result<Ending, Errno> {
    let Some(place) = place else { return Ok(Ending::Returns(result)) };
    thread.write_at(place, &(result as u32).to_ne_bytes())?;
    Ok(Ending::Returns(1))
}

/// Writes as much of an address as fits, and its full length.
fn write_name(thread: &Thread, name: &[u8], place: NameBuffer) -> Result<(), Errno> {
    if place.name == 0 {
        return Ok(());
    }
    let room = thread.read_at(place.length, 4)?;
    let room = room.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes)) as usize;
    thread.write_at(place.name, &name[..name.len().min(room)])?;
    thread.write_at(place.length, &(name.len() as u32).to_ne_bytes())
}

/// Writes the fields of the kernel's `user_msghdr` for a received message.
fn write_header(
    thread: &Thread,
    header: u64,
    name: NameBuffer,
    reply: &Reply,
) -> Result<(), Errno> {
    if name.name == 0 {
        thread.write_at(header + 8, &0_u32.to_ne_bytes())?;
    }
    let fields = thread.read_at(header + 32, 16)?;
    let number =
        |at: usize| fields[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    let (place, room) = (number(0), number(8) as usize);
    let room = if place == 0 { 0 } else { room };
    let mut written = Ok(());
    let copied = copy_control(reply.response.control(), room, |at, bytes| {
        written = written.and(thread.write_at(place + at as u64, bytes));
    });
    written?;
    let cut = if copied.is_truncated { libc::MSG_CTRUNC } else { 0 };
    thread.write_at(header + 40, &(copied.length as u64).to_ne_bytes())?;
    thread.write_at(header + 48, &(reply.response.flags | cut).to_ne_bytes())
}
