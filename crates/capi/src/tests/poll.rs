//! Tests of calls that do not wait, and of the descriptors to poll.

use std::{mem::MaybeUninit, os::fd::BorrowedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::RawFd,
};

use super::{
    PATIENCE, call_with_error, connections::write, endpoint, free, get_value, listen_options,
    listener, new_handle, pair, port, target,
};
use crate::{
    code::{EYAS_OK, EYAS_WOULD_BLOCK},
    connection::{
        Connection, eyas_connection_abort, eyas_connection_read, eyas_connection_read_fd,
        eyas_connection_write, eyas_connection_write_fd,
    },
    listener::{eyas_listener_accept, eyas_listener_fd},
    pointer::OutPointer,
    race::{Race, eyas_race_fd, eyas_race_finish, eyas_race_start},
};

/// Returns whether a descriptor becomes readable within this time.
pub(super) fn is_readable(fd: RawFd, milliseconds: i64) -> bool {
    // SAFETY: the handle that it belongs to exists.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let limit = Timespec { tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000 };
    let ready = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit));
    ready.expect("poll") == 1
}

fn try_read(connection: &Connection) -> (i32, Vec<u8>) {
    let (mut buffer, mut length) = ([0; 64], MaybeUninit::new(0));
    let (code, _) = call_with_error(|error| {
        let (size, place) = (buffer.len(), OutPointer::from_place(&mut length));
        eyas_connection_read(Some(connection), (&mut buffer[..]).into(), size, place, 0, error)
    });
    // SAFETY: it was set above.
    (code, buffer[..unsafe { length.assume_init() }].to_vec())
}

fn read_fd(connection: &Connection) -> RawFd {
    get_value(|fd, error| eyas_connection_read_fd(Some(connection), fd, error))
        .expect("a descriptor")
}

#[test]
fn a_descriptor_is_readable_until_reading_would_block() {
    let (here, there) = pair(&endpoint());
    let fd = read_fd(&here);
    assert_eq!(fd, read_fd(&here), "one descriptor for all calls");
    // No call has been made yet.
    assert!(is_readable(fd, 0));
    assert_eq!(try_read(&here), (EYAS_WOULD_BLOCK, Vec::new()));
    assert!(!is_readable(fd, 0));
    assert_eq!(write(&there, b"x"), Ok(1));
    assert!(is_readable(fd, PATIENCE.into()));
    assert_eq!(try_read(&here), (EYAS_OK, b"x".to_vec()));
    assert!(is_readable(fd, 0), "there may be more");
    assert_eq!(try_read(&here), (EYAS_WOULD_BLOCK, Vec::new()));
    // Aborting wakes those that poll.
    assert_eq!(eyas_connection_abort(Some(&here), OutPointer::null()), EYAS_OK);
    assert!(is_readable(fd, 0));
    free([here, there]);
}

#[test]
fn writing_stops_and_resumes_with_buffer_space() {
    let (here, there) = pair(&endpoint());
    let fd = get_value(|fd, error| eyas_connection_write_fd(Some(&here), fd, error)).expect("one");
    let block = vec![b'x'; 1 << 20];
    let mut sent = 0;
    let try_write = || {
        let mut written = MaybeUninit::new(0);
        let (code, _) = call_with_error(|error| {
            let (data, place) = ((&block[..]).into(), OutPointer::from_place(&mut written));
            eyas_connection_write(Some(&here), data, block.len(), place, 0, error)
        });
        // SAFETY: it was set above.
        (code, unsafe { written.assume_init() })
    };
    loop {
        let (code, written) = try_write();
        sent += written;
        if code == EYAS_WOULD_BLOCK {
            break;
        }
        assert!(code == EYAS_OK && written > 0);
    }
    assert!(!is_readable(fd, 0));
    let mut received = 0;
    while received < sent {
        if let (EYAS_OK, data) = try_read(&there) {
            received += data.len();
        } else {
            assert!(is_readable(read_fd(&there), PATIENCE.into()));
        }
    }
    assert!(is_readable(fd, PATIENCE.into()));
    assert_eq!(try_write().0, EYAS_OK);
    free([here, there]);
}

#[test]
fn one_thread_connects_and_accepts_without_waiting_for_either() {
    let endpoint = endpoint();
    let listener = listener(&endpoint, &listen_options(c"tcp"));
    let target = target(port(&listener), c"tcp");
    let accepting =
        get_value(|fd, error| eyas_listener_fd(Some(&listener), fd, error)).expect("one");
    let none = call_with_error(|error| {
        eyas_listener_accept(
            Some(&listener),
            0,
            OutPointer::from_place(&mut MaybeUninit::uninit()),
            error,
        )
    });
    assert_eq!(none.0, EYAS_WOULD_BLOCK);
    assert!(!is_readable(accepting, 0));
    let race: Box<Race> =
        new_handle(|place, error| eyas_race_start(Some(&endpoint), Some(&target), place, error))
            .expect("a race");
    let racing = get_value(|fd, error| eyas_race_fd(Some(&race), fd, error)).expect("a descriptor");
    let here = loop {
        assert!(is_readable(racing, PATIENCE.into()));
        match new_handle(|place, error| eyas_race_finish(Some(&race), 0, place, error)) {
            Ok(connection) => break connection,
            Err((code, text)) => assert_eq!(code, EYAS_WOULD_BLOCK, "{text}"),
        }
    };
    let there = loop {
        assert!(is_readable(accepting, PATIENCE.into()));
        match new_handle(|place, error| eyas_listener_accept(Some(&listener), 0, place, error)) {
            Ok(connection) => break connection,
            Err((code, text)) => assert_eq!(code, EYAS_WOULD_BLOCK, "{text}"),
        }
    };
    free([here, there]);
}
