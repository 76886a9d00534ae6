//! Programs whose messages are written to the descriptor instead of requested.

use std::ffi::c_int;
use std::time::Duration;

use super::{close, errno, poll_events, receive, send, socket};
use crate::echo::{self, LIMIT, OPTION};
use eyas_supervisor::local::{Capability, MAX_WRITTEN, Op, Request};

pub(super) const PROGRAMS: [(&str, fn()); 8] = [
    ("in_order", in_order),
    ("full", full),
    ("request_when_full", request_when_full),
    ("ended_while_writing", ended_while_writing),
    ("forked", forked),
    ("closed_with_unsent", closed_with_unsent),
    ("option", option),
    ("garbage", garbage),
];

/// The number of requests before messages are written.
const REQUESTS: usize = 16;

/// Returns the capability of a descriptor.
fn capability(fd: c_int) -> Capability {
    let (mut rate, mut length) = (0_u64, 8);
    let option = Capability::OPTION;
    // SAFETY: both are live, and the length is that of the number. This bypasses the library.
    let result = unsafe {
        let call = libc::SYS_getsockopt;
        libc::syscall(call, fd, libc::SOL_SOCKET, option, &raw mut rate, &raw mut length)
    };
    assert_eq!(result, 0);
    Capability::from_rate(rate).unwrap()
}

/// Returns a socket whose messages are written from now on.
fn writable() -> c_int {
    let fd = socket();
    for _ in 0..REQUESTS {
        assert!(!capability(fd).is_writable());
        assert_eq!(send(fd, b"x", 0), 1);
        assert_eq!(receive(fd, 10, 0).unwrap(), b"x");
    }
    assert!(capability(fd).is_writable());
    fd
}

fn set_nonblocking(fd: c_int) {
    // SAFETY: F_SETFL takes a number, and only this program uses the socket.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
}

fn receive_numbers(fd: c_int, numbers: std::ops::Range<u16>) {
    for number in numbers {
        assert_eq!(receive(fd, 10, 0).unwrap(), number.to_be_bytes());
    }
}

fn send_numbers(fd: c_int, numbers: std::ops::Range<u16>) {
    for number in numbers {
        assert_eq!(send(fd, &number.to_be_bytes(), 0), 2);
    }
}

/// Sends until the buffer is full, and returns the number of messages.
fn fill(fd: c_int) -> u16 {
    let mut sent = 0_u16;
    while send(fd, &sent.to_be_bytes(), 0) == 2 {
        sent += 1;
    }
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EAGAIN));
    sent
}

/// Waits for what the supervisor does after a message that is only written.
fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn in_order() {
    let fd = writable();
    let reader = std::thread::spawn(move || receive_numbers(fd, 0..3000));
    send_numbers(fd, 0..3000);
    reader.join().unwrap();
    let large = vec![5; MAX_WRITTEN / 8];
    assert_eq!(send(fd, &large, 0), large.len() as i64);
    assert_eq!(receive(fd, MAX_WRITTEN, 0).unwrap(), large);
    // In pieces, one of which is empty.
    let mut data = *b"abc";
    let piece = |offset: usize, length| libc::iovec {
        iov_base: data.as_mut_ptr().wrapping_add(offset).cast(),
        iov_len: length,
    };
    let mut piece = piece;
    let parts = [piece(0, 1), piece(1, 0), piece(1, 2)];
    // SAFETY: all pieces are live.
    assert_eq!(unsafe { libc::writev(fd, parts.as_ptr(), 3) }, 3);
    assert_eq!(receive(fd, 10, 0).unwrap(), b"abc");
    // SAFETY: the page at 0 is never mapped; the kernel refuses to read there.
    let invalid = unsafe { libc::send(fd, std::ptr::without_provenance(8), 100, 0) };
    assert_eq!(errno(invalid as i64), libc::EFAULT);
    close(fd);
}

fn full() {
    let fd = writable();
    set_nonblocking(fd);
    let sent = fill(fd);
    assert!((LIMIT + 10..100).contains(&usize::from(sent)), "{sent} messages");
    // Full.
    wait_until(|| poll_events(fd) == libc::POLLIN);
    receive_numbers(fd, 0..sent);
    assert_eq!(receive(fd, 10, 0), Err(libc::EAGAIN));
    assert_eq!(poll_events(fd), libc::POLLOUT);
    assert!(capability(fd).is_writable());
    // SAFETY: the 0 means no flags, and is not a pointer.
    unsafe { libc::fcntl(fd, libc::F_SETFL, 0) };
    let sender = std::thread::spawn(move || send_numbers(fd, 0..500));
    std::thread::sleep(Duration::from_millis(20));
    assert!(!sender.is_finished(), "a full buffer blocks");
    receive_numbers(fd, 0..500);
    sender.join().unwrap();
    close(fd);
}

/// A message with a name has to be requested.
fn request_when_full() {
    let fd = writable();
    set_nonblocking(fd);
    let sent = fill(fd);
    let send_to_name = || {
        // SAFETY: message and name are live and have these lengths.
        unsafe { libc::sendto(fd, b"to".as_ptr().cast(), 2, 0, b"peer".as_ptr().cast(), 4) as i64 }
    };
    assert_eq!(errno(send_to_name()), libc::EAGAIN, "what was written comes first");
    assert!(!capability(fd).is_writable());
    assert_eq!(poll_events(fd), libc::POLLIN);
    for number in 0..sent {
        assert_eq!(receive(fd, 10, 0).unwrap(), number.to_be_bytes());
    }
    assert_eq!(poll_events(fd), libc::POLLOUT);
    assert_eq!(send_to_name(), 2);
    assert_eq!(receive(fd, 10, 0).unwrap(), b"to");
    for _ in 0..2 * REQUESTS {
        assert!(!capability(fd).is_writable(), "after twice as many requests");
        assert_eq!(send(fd, b"x", 0), 1);
        assert_eq!(receive(fd, 10, 0).unwrap(), b"x");
    }
    assert!(capability(fd).is_writable());
    close(fd);
}

fn ended_while_writing() {
    let fd = writable();
    send_numbers(fd, 0..2);
    assert_eq!(send(fd, echo::END, 0), 3);
    wait_until(|| poll_events(fd) & libc::POLLRDHUP != 0);
    assert_eq!(errno(send(fd, b"x", libc::MSG_NOSIGNAL)), libc::EPIPE);
    assert!(!capability(fd).is_writable());
    receive_numbers(fd, 0..2);
    assert_eq!(receive(fd, 10, 0).unwrap(), b"");
    // SAFETY: SIG_IGN is not a function; the default action would end this process.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    assert_eq!(errno(send(fd, b"x", 0)), libc::EPIPE);
    close(fd);
}

fn forked() {
    let fd = writable();
    send_numbers(fd, 0..5);
    // SAFETY: the child makes no call that allocates or locks.
    match unsafe { libc::fork() } {
        0 => {
            let sent = (5..10_u16).all(|number| send(fd, &number.to_be_bytes(), 0) == 2);
            // SAFETY: it does not return.
            unsafe { libc::_exit(i32::from(!sent)) }
        }
        child => {
            let mut status = -1;
            // SAFETY: the status is live.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
    send_numbers(fd, 10..15);
    receive_numbers(fd, 0..15);
    assert_eq!(receive(fd, 10, libc::MSG_DONTWAIT), Err(libc::EAGAIN));
    close(fd);
}

fn closed_with_unsent() {
    let fd = writable();
    send_numbers(fd, 0..15);
    close(fd);
}

fn option() {
    let fd = writable();
    send_numbers(fd, 0..15);
    // SAFETY: the value is live and has this length.
    assert_eq!(unsafe { libc::setsockopt(fd, 132, 0, [0_u8; 4].as_ptr().cast(), 4) }, 0);
    assert!(!capability(fd).is_writable());
    receive_numbers(fd, 0..15);
    assert_eq!(receive(fd, 10, 0).unwrap(), OPTION);
    // A thread that saw that it might write does so only now: also then its next request comes later.
    let request =
        Request { capability: capability(fd).number(), data: 4, ..Request::new(Op::Send) };
    let late = [&request.encode()[..], b"late"].concat();
    for full in [false, true] {
        let before = if full { LIMIT as u16 } else { 0 };
        send_numbers(fd, 0..before);
        assert_eq!(write(fd, &late), late.len() as i64);
        if full {
            assert_eq!(errno(send(fd, b"next", libc::MSG_DONTWAIT)), libc::EAGAIN);
            assert_eq!(poll_events(fd), libc::POLLIN);
        } else {
            assert_eq!(send(fd, b"next", 0), 4);
        }
        receive_numbers(fd, 0..before);
        assert_eq!(receive(fd, 10, 0).unwrap(), b"late");
        if !full {
            assert_eq!(receive(fd, 10, 0).unwrap(), b"next");
        }
        assert_eq!(poll_events(fd), libc::POLLOUT);
    }
    close(fd);
}

/// Writes to a descriptor without a call of the library.
fn write(fd: c_int, bytes: &[u8]) -> i64 {
    // SAFETY: the bytes are live and have this length.
    unsafe { libc::syscall(libc::SYS_write, fd, bytes.as_ptr(), bytes.len()) }
}

fn garbage() {
    let other = writable();
    let request = |fd, op| Request { capability: capability(fd).number(), ..Request::new(op) };
    for invalid in [
        |request: Request| Request { data: 5, ..request },
        |request: Request| Request { name: 3, data: 3, ..request },
        |request: Request| Request { op: Op::Shutdown, data: 3, ..request },
    ] {
        let fd = writable();
        let header = invalid(request(fd, Op::Send)).encode();
        assert!(write(fd, &[&header[..], b"abc"].concat()) > 0);
        // SAFETY: no handler runs for a signal that is ignored.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        wait_until(|| write(fd, b"x") < 0);
        // Requests still work, after whatever was written as plain data meanwhile.
        while receive(fd, 10, libc::MSG_DONTWAIT).is_ok() {}
        assert_eq!(send(fd, b"again", 0), 5);
        assert_eq!(receive(fd, 10, 0).unwrap(), b"again");
        assert_eq!(send(other, b"other", 0), 5);
        assert_eq!(receive(other, 10, 0).unwrap(), b"other");
        close(fd);
    }
    // With a number that is not its own it is data like any other.
    let fd = writable();
    let header = request(other, Op::Send).encode();
    assert!(write(fd, &header) > 0);
    assert_eq!(receive(fd, 100, 0).unwrap(), header);
    close(fd);
    close(other);
}
