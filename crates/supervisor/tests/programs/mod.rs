//! Programs that use sockets through libc's functions, as C programs do. A test binary runs itself
//! as one of them.

use std::ffi::c_int;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::echo::{self, LIMIT};

mod numbers;
mod written;

const SCTP: c_int = 132;

/// The environment variable that names the program to run.
pub(crate) const PROGRAM: &str = "EYAS_TEST_PROGRAM";

const PROGRAMS: [(&str, fn()); 19] = [
    ("message", message),
    ("readiness", readiness),
    ("edges", edges),
    ("too_many", too_many),
    ("stdio", stdio),
    ("closed_elsewhere", closed_elsewhere),
    ("waiting", waiting),
    ("limits", limits),
    ("interrupted", interrupted),
    ("connecting", connecting),
    ("opening", opening),
    ("copies", copies),
    ("children", children),
    ("closing", closing),
    ("cancelled", cancelled),
    ("others", others),
    ("endless", endless),
    ("abandoned", abandoned),
    ("ended", ended),
];

/// Returns the name of a test function, by which a test binary runs itself.
pub(crate) fn name_of<T: Fn()>(_: T) -> &'static str {
    std::any::type_name::<T>().rsplit("::").next().unwrap()
}

/// Runs a program, if this process was started as one.
pub(crate) fn begin() {
    let all = || PROGRAMS.iter().chain(&written::PROGRAMS).chain(&numbers::PROGRAMS);
    let count = |wanted: &str| all().filter(|(name, _)| *name == wanted).count();
    assert!(all().all(|(name, _)| count(name) == 1));
    if let Ok(wanted) = std::env::var(PROGRAM) {
        let (_, program) = all().find(|(name, _)| *name == wanted).unwrap();
        program();
    }
}

/// Converts the result of a libc function.
fn check(result: impl Into<i64>) -> io::Result<i64> {
    let result = result.into();
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn errno(result: impl Into<i64>) -> i32 {
    check(result).unwrap_err().raw_os_error().unwrap()
}

fn socket() -> c_int {
    // SAFETY: three numbers; what comes back stays a plain number in these programs.
    check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, SCTP) }).unwrap() as c_int
}

fn send(fd: c_int, data: &[u8], flags: c_int) -> i64 {
    // SAFETY: the data is live and has this length.
    unsafe { libc::send(fd, data.as_ptr().cast(), data.len(), flags) as i64 }
}

fn receive(fd: c_int, room: usize, flags: c_int) -> Result<Vec<u8>, i32> {
    let mut data = vec![0; room];
    // SAFETY: the room is live and has this length.
    let length = unsafe { libc::recv(fd, data.as_mut_ptr().cast(), room, flags) };
    let length = check(length as i64).map_err(|error| error.raw_os_error().unwrap())?;
    data.truncate(length as usize);
    Ok(data)
}

fn close(fd: c_int) {
    // SAFETY: these programs keep descriptors as numbers, which no Rust value owns.
    check(unsafe { libc::close(fd) }).unwrap();
}

fn poll_events(fd: c_int) -> i16 {
    let events = libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP;
    let mut one = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: there is one entry.
    check(unsafe { libc::poll(&raw mut one, 1, 0) }).unwrap();
    one.revents
}

/// Returns whether `EPOLLET` reports something to read.
fn has_edge(epoll: c_int) -> bool {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: there is room for one event.
    check(unsafe { libc::epoll_wait(epoll, &raw mut event, 1, 0) }).unwrap() == 1
}

fn edges() {
    let fd = socket();
    // SAFETY: its only argument is a set of flags.
    let epoll = check(unsafe { libc::epoll_create1(0) }).unwrap() as c_int;
    let mut event = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: 0 };
    // SAFETY: the event is live.
    check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) }).unwrap();
    for _ in 0..3 {
        assert!(!has_edge(epoll));
        send(fd, b"x", 0);
        assert!(has_edge(epoll), "a message that arrives");
    }
    for left in [2, 1, 0] {
        receive(fd, 10, 0).unwrap();
        assert!(!has_edge(epoll), "a message that is read");
        assert_eq!(poll_events(fd) & libc::POLLIN != 0, left > 0);
    }
    send(fd, b"x", 0);
    assert!(has_edge(epoll), "a message after all were read");
    send(fd, b"x", 0);
    assert!(has_edge(epoll), "a message beside an unread one");
    receive(fd, 10, 0).unwrap();
    assert!(poll_events(fd) & libc::POLLIN != 0);
    receive(fd, 10, 0).unwrap();
    assert!(poll_events(fd) & libc::POLLIN == 0);
    close(epoll);
    close(fd);
}

fn stdio() {
    let fd = socket();
    // SAFETY: both strings end with a zero byte.
    let file = unsafe { libc::fdopen(fd, c"w".as_ptr()) };
    assert!(!file.is_null());
    // SAFETY: the file is open, and the strings end with a zero byte.
    unsafe {
        assert!(libc::fputs(c"hello ".as_ptr(), file) >= 0);
        assert!(libc::fputs(c"world".as_ptr(), file) >= 0);
        assert_eq!(libc::fflush(file), 0);
    }
    assert_eq!(receive(fd, 100, 0).unwrap(), b"hello world");
    for mode in [c"r", c"r+", c"w+"] {
        // SAFETY: the mode ends with a zero byte.
        let refused = unsafe { libc::fdopen(fd, mode.as_ptr()) };
        assert!(refused.is_null());
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
    }
    // SAFETY: the file is open.
    unsafe { libc::fclose(file) };
}

/// A call that waits keeps its socket open, as in a kernel.
fn closed_elsewhere() {
    let fd = socket();
    let limit = libc::timeval { tv_sec: 0, tv_usec: 300_000 };
    // SAFETY: the time is live and has this length.
    let set = unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const limit).cast(), 16)
    };
    check(set).unwrap();
    let waiting = std::thread::spawn(move || receive(fd, 10, 0));
    std::thread::sleep(Duration::from_millis(50));
    close(fd);
    assert_eq!(waiting.join().unwrap(), Err(libc::EAGAIN));
}

/// Too many pieces of memory, and names that are too long.
fn too_many() {
    let fd = socket();
    let mut data = [7_u8; 2000];
    let piece = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: 1 };
    let mut parts = [piece; 1025];
    // SAFETY: zeros are a valid header.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = parts.as_mut_ptr();
    for (count, plain, with_header) in
        [(1024, Ok(1024), Ok(1024)), (1025, Err(libc::EINVAL), Err(libc::EMSGSIZE))]
    {
        header.msg_iovlen = count;
        let outcome =
            |result: isize| check(result as i64).map_err(|error| error.raw_os_error().unwrap());
        // SAFETY: all that the arguments point to is live.
        unsafe {
            assert_eq!(outcome(libc::writev(fd, parts.as_ptr(), count as c_int)), plain);
            assert_eq!(outcome(libc::sendmsg(fd, &raw const header, 0)), with_header);
            assert_eq!(outcome(libc::readv(fd, parts.as_ptr(), count as c_int)), plain);
            assert_eq!(outcome(libc::recvmsg(fd, &raw mut header, 0)), with_header);
        }
    }
    // SAFETY: a negative count refers to no pieces.
    assert_eq!(errno(unsafe { libc::writev(fd, parts.as_ptr(), -1) } as i64), libc::EINVAL);
    // SAFETY: 129 of the 2000 bytes of `data` are passed.
    let bound = unsafe { libc::bind(fd, data.as_ptr().cast(), 129) };
    assert_eq!(errno(bound), libc::EINVAL);
    header = libc::msghdr { msg_iovlen: 1, msg_control: data.as_mut_ptr().cast(), ..header };
    header.msg_controllen = 1 << 20;
    // SAFETY: the control messages are refused by their length.
    assert_eq!(errno(unsafe { libc::sendmsg(fd, &raw const header, 0) } as i64), libc::ENOBUFS);
    close(fd);
}

fn message() {
    let fd = socket();
    assert_eq!(send(fd, b"hello world", 0), 11);
    assert_eq!(receive(fd, 6, 0).unwrap(), b"hello ");
    let (mut first, mut second, mut name) = ([0_u8; 2], [0_u8; 100], [0_u8; 16]);
    let mut control = [0_usize; 5];
    let mut parts = [
        libc::iovec { iov_base: first.as_mut_ptr().cast(), iov_len: 2 },
        libc::iovec { iov_base: second.as_mut_ptr().cast(), iov_len: 100 },
    ];
    // SAFETY: zeros are a valid header.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (parts.as_mut_ptr(), 2);
    (header.msg_name, header.msg_namelen) = (name.as_mut_ptr().cast(), 16);
    (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), 40);
    // SAFETY: all that the header points to is live.
    assert_eq!(unsafe { libc::recvmsg(fd, &raw mut header, 0) }, 5);
    assert_eq!((&first, &second[..3], &name[..4]), (b"wo", &b"rld"[..], &b"peer"[..]));
    assert_eq!(header.msg_namelen, 4);
    // The control message was longer than the buffer.
    assert_eq!(header.msg_flags, libc::MSG_EOR | libc::MSG_CTRUNC);
    assert_eq!((header.msg_controllen, control[0]), (40, 40));
    let mut value = [5_u8; 20];
    let mut length = 20;
    // SAFETY: both are live.
    let result =
        unsafe { libc::getsockopt(fd, SCTP, 0, value.as_mut_ptr().cast(), &raw mut length) };
    assert_eq!((result, length), (0, 8));
    let large: Vec<u8> = (0..1_000_000).map(|index| index as u8).collect();
    assert_eq!(send(fd, &large, 0), 1_000_000);
    assert_eq!(receive(fd, 2_000_000, 0).unwrap(), large);
    close(fd);
}

fn readiness() {
    let fd = socket();
    for _ in 0..3 {
        assert_eq!(poll_events(fd), libc::POLLOUT);
        for _ in 0..LIMIT {
            assert_eq!(send(fd, b"x", 0), 1);
        }
        assert_eq!(poll_events(fd), libc::POLLIN);
        assert_eq!(errno(send(fd, b"x", libc::MSG_DONTWAIT)), libc::EAGAIN);
        assert_eq!(receive(fd, 10, 0).unwrap(), b"x");
        assert_eq!(poll_events(fd), libc::POLLIN | libc::POLLOUT);
        for _ in 1..LIMIT {
            assert_eq!(receive(fd, 10, 0).unwrap(), b"x");
        }
        assert_eq!(poll_events(fd), libc::POLLOUT);
        assert_eq!(receive(fd, 10, libc::MSG_DONTWAIT), Err(libc::EAGAIN));
    }
    assert_eq!(send(fd, echo::END, 0), 3);
    assert_eq!(poll_events(fd), libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP);
    assert_eq!(receive(fd, 10, 0).unwrap(), b"");
    // SAFETY: the flags of F_SETFL are a number, not a pointer.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
    let other = socket();
    // SAFETY: this sets a flag of a socket that nothing else uses.
    unsafe { libc::fcntl(other, libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!(receive(other, 10, 0), Err(libc::EAGAIN));
}

fn waiting() {
    let fd = socket();
    let reader = std::thread::spawn(move || {
        (0..3 * LIMIT).map(|_| receive(fd, 10, 0).unwrap()).collect::<Vec<_>>()
    });
    for index in 0..3 * LIMIT as u8 {
        assert_eq!(send(fd, &[index], 0), 1);
    }
    let received = reader.join().unwrap();
    assert_eq!(received, (0..3 * LIMIT as u8).map(|index| vec![index]).collect::<Vec<_>>());
}

extern "C" fn ignore(_: c_int) {}

fn limits() {
    let fd = socket();
    let limit = libc::timeval { tv_sec: 0, tv_usec: 20_000 };
    // SAFETY: the time is live and has this length.
    let set = unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const limit).cast(), 16)
    };
    assert_eq!(set, 0);
    assert_eq!(receive(fd, 10, 0), Err(libc::EAGAIN));
    let fd = socket();
    // SAFETY: zeros are a valid action, and the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    let (result, id) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        // SAFETY: it has no arguments and cannot fail.
        result.send(unsafe { libc::pthread_self() }).unwrap();
        receive(fd, 10, 0)
    });
    let id = id.recv().unwrap();
    while !waiter.is_finished() {
        // SAFETY: the thread is not joined yet.
        unsafe { libc::pthread_kill(id, libc::SIGUSR1) };
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(waiter.join().unwrap(), Err(libc::EINTR));
    // The connection that waited is good for the next call.
    assert_eq!(send(fd, b"after", 0), 5);
    assert_eq!(receive(fd, 10, 0).unwrap(), b"after");
}

/// Sends signals to a thread while it makes calls, which the kernel restarts.
fn with_signals<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // SAFETY: zeros are a valid action, and the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    let (result, id) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        // SAFETY: it returns the identifier of the thread that calls it.
        result.send(unsafe { libc::pthread_self() }).unwrap();
        work()
    });
    let id = id.recv().unwrap();
    while !worker.is_finished() {
        // SAFETY: the thread is not joined yet.
        unsafe { libc::pthread_kill(id, libc::SIGUSR1) };
        std::thread::sleep(Duration::from_micros(100));
    }
    worker.join().unwrap()
}

/// A thread that is interrupted by signals still gets its messages, and working sockets.
fn interrupted() {
    const MESSAGES: u8 = 100;
    let fd = socket();
    let sender = std::thread::spawn(move || {
        for index in 0..MESSAGES {
            assert_eq!(send(fd, &[index], 0), 1);
        }
    });
    let received = with_signals(move || {
        (0..MESSAGES).map(|_| receive(fd, 10, 0).unwrap()).collect::<Vec<_>>()
    });
    sender.join().unwrap();
    assert_eq!(received, (0..MESSAGES).map(|index| vec![index]).collect::<Vec<_>>());
    with_signals(|| {
        for index in 0..MESSAGES {
            let fd = socket();
            assert_eq!(send(fd, &[index], 0), 1);
            assert_eq!(receive(fd, 10, 0).unwrap(), [index]);
            assert_eq!(receive(fd, 10, libc::MSG_DONTWAIT), Err(libc::EAGAIN), "sent once");
            close(fd);
        }
    });
}

fn connect(fd: c_int, name: &[u8]) -> c_int {
    // SAFETY: the name is live and has this length.
    unsafe { libc::connect(fd, name.as_ptr().cast(), name.len() as u32) }
}

fn connecting() {
    let fd = socket();
    assert_eq!(connect(fd, b"peer"), 0);
    assert_eq!(errno(connect(fd, echo::REFUSED)), libc::ECONNREFUSED);
    // SAFETY: O_NONBLOCK is passed by value, and `fd` is this function's own.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!(errno(connect(fd, echo::REFUSED)), libc::EINPROGRESS);
    let (mut name, mut length) = ([0_u8; 16], 16);
    // SAFETY: both are live.
    let accepted =
        unsafe { libc::accept4(fd, name.as_mut_ptr().cast(), &raw mut length, libc::SOCK_CLOEXEC) };
    assert_eq!((length, &name[..6]), (6, &b"client"[..]));
    // SAFETY: F_GETFD only asks; if `accept4` had failed, -1 would get EBADF.
    assert_eq!(unsafe { libc::fcntl(accepted, libc::F_GETFD) }, libc::FD_CLOEXEC);
    assert_eq!(send(accepted, b"x", 0), 1);
    // SAFETY: a descriptor and a number, and it is refused.
    assert_eq!(errno(unsafe { libc::listen(accepted, 1) }), libc::EOPNOTSUPP);
}

/// A message that opens an association is sent, even if the wait for the association ends early.
fn opening() {
    let fd = socket();
    assert_eq!(send(fd, echo::OPENS, 0), 5);
    assert_eq!(send(fd, echo::OPENS_FOR_EVER, libc::MSG_DONTWAIT), 14);
    let limit = libc::timeval { tv_sec: 0, tv_usec: 20_000 };
    // SAFETY: the time is live and has this length.
    let set = unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO, (&raw const limit).cast(), 16)
    };
    assert_eq!(set, 0);
    assert_eq!(send(fd, echo::OPENS_FOR_EVER, 0), 14);
    for message in [echo::OPENS, echo::OPENS_FOR_EVER, echo::OPENS_FOR_EVER] {
        assert_eq!(receive(fd, 20, 0).unwrap(), message);
    }
}

fn copies() {
    let fd = socket();
    // SAFETY: this makes another descriptor and ends none.
    let copy = unsafe { libc::dup(fd) };
    close(fd);
    assert_eq!(send(copy, b"still here", 0), 10);
    // Another socket gets its number, and is then duplicated onto the copy.
    let other = socket();
    assert_eq!(other, fd, "programs get the lowest free number");
    // SAFETY: `copy` is from `dup`, so no Rust value owns what is replaced.
    assert_eq!(unsafe { libc::dup2(other, copy) }, copy);
    close(other);
    assert_eq!(receive(copy, 10, libc::MSG_DONTWAIT), Err(libc::EAGAIN));
    close(copy);
}

fn children() {
    let fd = socket();
    // SAFETY: the child only makes system calls.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let good = send(fd, b"from the child", 0) == 14;
        // SAFETY: the child ends here.
        unsafe { libc::_exit(if good { 0 } else { 1 }) };
    }
    assert_eq!(receive(fd, 100, 0).unwrap(), b"from the child");
    let mut status = 0;
    // SAFETY: the status is live.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    // A program that does not use sockets has one as its standard streams.
    assert_eq!(send(fd, b"through another program", 0), 23);
    // SAFETY: the copies are given away.
    let copy = || unsafe {
        use std::os::fd::FromRawFd;
        Stdio::from(std::os::fd::OwnedFd::from_raw_fd(libc::dup(fd)))
    };
    let ended = Command::new("/bin/dd")
        .args(["bs=100", "count=1", "status=none"])
        .stdin(copy())
        .stdout(copy())
        .status();
    assert!(ended.unwrap().success());
    assert_eq!(receive(fd, 100, 0).unwrap(), b"through another program");
}

fn closing() {
    let fd = socket();
    for number in (0..2048).filter(|number| *number != fd && *number > 2) {
        // SAFETY: no other part of this process uses descriptors.
        unsafe { libc::close(number) };
    }
    assert_eq!(send(fd, b"x", 0), 1);
    // SAFETY: above `fd` only the library has descriptors, and it keeps its own.
    check(unsafe { libc::close_range(fd as u32 + 1, u32::MAX, 0) }).unwrap();
    assert_eq!(receive(fd, 10, 0).unwrap(), b"x");
    for number in (0..2048).filter(|number| *number != fd && *number > 2) {
        // SAFETY: only the library has these, and it opens new ones. This bypasses libc.
        unsafe { libc::syscall(libc::SYS_close, number) };
    }
    assert_eq!(send(fd, b"y", 0), 1);
}

/// Returns the number of local stream sockets, which are the library's connections.
fn connections() -> usize {
    let is_connection = |fd: c_int| {
        let (mut kind, mut domain, mut length) = (0, 0, size_of::<c_int>() as u32);
        let level = libc::SOL_SOCKET;
        // SAFETY: all that is passed is live. This bypasses the library, which would hide them.
        let result = unsafe {
            let option = libc::SO_TYPE;
            let getsockopt = libc::SYS_getsockopt;
            libc::syscall(getsockopt, fd, level, option, &raw mut kind, &raw mut length)
                | libc::syscall(
                    getsockopt,
                    fd,
                    level,
                    libc::SO_DOMAIN,
                    &raw mut domain,
                    &raw mut length,
                )
        };
        result == 0 && (kind, domain) == (libc::SOCK_STREAM, libc::AF_UNIX)
    };
    (0..1024).filter(|fd| is_connection(*fd)).count()
}

fn cancelled() {
    unsafe extern "C" {
        fn pthread_cancel(thread: libc::pthread_t) -> c_int;
    }
    extern "C" fn wait(fd: *mut libc::c_void) -> *mut libc::c_void {
        let mut byte = 0_u8;
        // SAFETY: there is room for one byte. Nothing in this frame has to be dropped.
        unsafe { libc::recv(fd as usize as c_int, (&raw mut byte).cast(), 1, 0) };
        std::ptr::null_mut()
    }
    let fd = socket();
    let (mut thread, mut result) = (0, std::ptr::null_mut());
    // SAFETY: what is passed is live until the thread is joined.
    unsafe {
        let made = libc::pthread_create(
            &raw mut thread,
            std::ptr::null(),
            wait,
            fd as usize as *mut libc::c_void,
        );
        assert_eq!(made, 0);
        libc::usleep(20_000);
        assert_eq!(pthread_cancel(thread), 0);
        assert_eq!(libc::pthread_join(thread, &raw mut result), 0);
    }
    assert_eq!(result as isize, -1, "PTHREAD_CANCELED");
    assert_eq!(connections(), 0, "the call's connection ends with its thread");
    assert_eq!(send(fd, b"x", 0), 1);
}

fn others() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"over TCP").unwrap();
    let mut data = [0; 8];
    server.read_exact(&mut data).unwrap();
    assert_eq!(&data, b"over TCP");
    // SAFETY: `socket` takes numbers, and 1000 is open nowhere in this process.
    unsafe {
        assert_eq!(
            errno(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, SCTP)),
            libc::EPROTONOSUPPORT
        );
        assert_eq!(errno(libc::close(1000)), libc::EBADF);
    }
}

fn endless() {
    let (fd, signal) = (socket(), socket());
    close(signal);
    let _ = receive(fd, 10, 0);
}

fn abandoned() {
    let (fd, signal) = (socket(), socket());
    close(signal);
    assert_eq!(receive(fd, 10, 0), Err(libc::ECONNRESET));
    assert_eq!(receive(fd, 10, 0), Err(libc::ECONNRESET));
    assert_eq!(errno(send(fd, b"x", libc::MSG_NOSIGNAL)), libc::EPIPE);
    // SAFETY: three numbers, and no socket results.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, SCTP) };
    assert_eq!(errno(socket), libc::EPROTONOSUPPORT);
    // Until the supervisor has closed its end.
    while poll_events(fd) & libc::POLLHUP == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for a message until the service ends every socket.
fn ended() {
    let (fd, signal) = (socket(), socket());
    close(signal);
    assert_eq!(receive(fd, 10, 0), Err(libc::ECONNRESET));
    assert_eq!(errno(send(fd, b"x", libc::MSG_NOSIGNAL)), libc::ECONNRESET);
    assert_ne!(poll_events(fd) & libc::POLLHUP, 0);
}
