//! The preloaded library and its supervisor, together: programs under the library are tests of this very
//! file, run again in a process of their own.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "programs call libc's functions, as C does")]

mod echo;

use std::ffi::c_int;
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use echo::{Echo, LIMIT};
use eyas_supervisor::local::ENVIRONMENT;
use eyas_supervisor::{Library, Place, Supervisor};

const SCTP: c_int = 132;

/// Says which of the programs this process is.
const PROGRAM: &str = "EYAS_TEST_PROGRAM";

const PROGRAMS: [(&str, fn()); 13] = [
    ("message", programs::message),
    ("readiness", programs::readiness),
    ("waiting", programs::waiting),
    ("limits", programs::limits),
    ("connecting", programs::connecting),
    ("copies", programs::copies),
    ("children", programs::children),
    ("closing", programs::closing),
    ("cancelled", programs::cancelled),
    ("others", programs::others),
    ("endless", programs::endless),
    ("abandoned", programs::abandoned),
    ("ended", programs::ended),
];

/// Begins a program, where this process is to be one.
#[test]
fn programs_have_names_of_their_own() {
    let count = |wanted: &str| PROGRAMS.iter().filter(|(name, _)| *name == wanted).count();
    assert!(PROGRAMS.iter().all(|(name, _)| count(name) == 1));
    if let Ok(wanted) = std::env::var(PROGRAM) {
        let (_, program) = PROGRAMS.iter().find(|(name, _)| *name == wanted).unwrap();
        program();
    }
}

/// Runs one of `programs` under the library; gives what the service saw.
fn run(program: &str) -> Vec<u64> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let supervisor = Supervisor::start(Echo::default(), &Place::Private).unwrap();
    let library = Library::new().unwrap();
    let status = under(program, &library, &supervisor).status().unwrap();
    assert!(status.success(), "{program}: {status}");
    runtime.block_on(supervisor.until_unused());
    supervisor.with(|echo| echo.closed.clone())
}

fn under(program: &str, library: &Library, supervisor: &Arc<Supervisor<Echo>>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--nocapture", "programs_have_names_of_their_own"])
        .env(PROGRAM, program)
        .env("LD_PRELOAD", library.path())
        .env(ENVIRONMENT, supervisor.address())
        .stdout(Stdio::null());
    command
}

#[test]
fn a_message_comes_back_in_parts() {
    assert_eq!(run("message"), [1]);
}

#[test]
fn poll_shows_what_the_socket_is_ready_for() {
    run("readiness");
}

#[test]
fn calls_wait_until_they_can_go_on() {
    run("waiting");
}

#[test]
fn a_time_limit_and_a_signal_end_a_wait() {
    run("limits");
}

#[test]
fn connects_tell_how_they_went() {
    run("connecting");
}

#[test]
fn a_socket_lives_until_its_last_descriptor_is_closed() {
    assert_eq!(run("copies"), [1, 2]);
}

#[test]
fn children_share_sockets() {
    assert_eq!(run("children"), [1]);
}

#[test]
fn who_closes_everything_goes_on() {
    run("closing");
}

#[test]
fn a_thread_that_waits_can_be_cancelled() {
    run("cancelled");
}

#[test]
fn what_is_no_sctp_goes_to_the_kernel() {
    assert_eq!(run("others"), [] as [u64; 0]);
}

#[test]
fn a_program_that_is_killed_leaves_no_socket() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let supervisor = Supervisor::start(Echo::default(), &Place::Private).unwrap();
    let library = Library::new().unwrap();
    let mut child = under("endless", &library, &supervisor).spawn().unwrap();
    while supervisor.with(|echo| echo.closed.is_empty()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    runtime.block_on(supervisor.until_unused());
    assert_eq!(supervisor.with(|echo| echo.closed.len()), 2);
}

#[test]
fn without_its_supervisor_a_program_gets_errors() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let library = Library::new().unwrap();
    let mut child = {
        let _inside = runtime.enter();
        let supervisor = Supervisor::start(Echo::default(), &Place::Private).unwrap();
        let child = under("abandoned", &library, &supervisor).spawn().unwrap();
        while supervisor.with(|echo| echo.closed.is_empty()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        child
    };
    runtime.shutdown_background();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_service_that_ends_hangs_up_on_its_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a socket");
    let place = Place::Path { path: path.clone(), mode: 0o600 };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let supervisor = Supervisor::start(Echo::default(), &place).unwrap();
    let library = Library::new().unwrap();
    let mut child = under("ended", &library, &supervisor).spawn().unwrap();
    while supervisor.with(|echo| echo.closed.is_empty()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    supervisor.end();
    assert!(!path.exists());
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(supervisor.with(|echo| echo.closed.clone()), [2, 1]);
}

/// What a function of libc has answered.
fn check(result: impl Into<i64>) -> io::Result<i64> {
    let result = result.into();
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn errno(result: impl Into<i64>) -> i32 {
    check(result).unwrap_err().raw_os_error().unwrap()
}

fn socket() -> c_int {
    // SAFETY: no memory is passed.
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
    // SAFETY: no memory is passed.
    check(unsafe { libc::close(fd) }).unwrap();
}

fn polled(fd: c_int) -> i16 {
    let events = libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP;
    let mut one = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: there is one.
    check(unsafe { libc::poll(&raw mut one, 1, 0) }).unwrap();
    one.revents
}

mod programs {
    use super::*;

    pub(super) fn message() {
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
        // The control message was longer than there was room for.
        assert_eq!(header.msg_flags, libc::MSG_EOR | libc::MSG_CTRUNC);
        assert_eq!((header.msg_controllen, control[0]), (40, 40));
        let mut value = [5_u8; 20];
        let mut length = 20;
        // SAFETY: both are live.
        let told =
            unsafe { libc::getsockopt(fd, SCTP, 0, value.as_mut_ptr().cast(), &raw mut length) };
        assert_eq!((told, length), (0, 8));
        let large: Vec<u8> = (0..1_000_000).map(|index| index as u8).collect();
        assert_eq!(send(fd, &large, 0), 1_000_000);
        assert_eq!(receive(fd, 2_000_000, 0).unwrap(), large);
        close(fd);
    }

    pub(super) fn readiness() {
        let fd = socket();
        for _ in 0..3 {
            assert_eq!(polled(fd), libc::POLLOUT);
            for _ in 0..LIMIT {
                assert_eq!(send(fd, b"x", 0), 1);
            }
            assert_eq!(polled(fd), libc::POLLIN);
            assert_eq!(errno(send(fd, b"x", libc::MSG_DONTWAIT)), libc::EAGAIN);
            assert_eq!(receive(fd, 10, 0).unwrap(), b"x");
            assert_eq!(polled(fd), libc::POLLIN | libc::POLLOUT);
            for _ in 1..LIMIT {
                assert_eq!(receive(fd, 10, 0).unwrap(), b"x");
            }
            assert_eq!(polled(fd), libc::POLLOUT);
            assert_eq!(receive(fd, 10, libc::MSG_DONTWAIT), Err(libc::EAGAIN));
        }
        assert_eq!(send(fd, echo::END, 0), 3);
        assert_eq!(polled(fd), libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP);
        assert_eq!(receive(fd, 10, 0).unwrap(), b"");
        // SAFETY: no memory is passed.
        unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
        let other = socket();
        // SAFETY: no memory is passed.
        unsafe { libc::fcntl(other, libc::F_SETFL, libc::O_NONBLOCK) };
        assert_eq!(receive(other, 10, 0), Err(libc::EAGAIN));
    }

    pub(super) fn waiting() {
        let fd = socket();
        let reader = std::thread::spawn(move || {
            (0..3 * LIMIT).map(|_| receive(fd, 10, 0).unwrap()).collect::<Vec<_>>()
        });
        for index in 0..3 * LIMIT as u8 {
            assert_eq!(send(fd, &[index], 0), 1);
        }
        let got = reader.join().unwrap();
        assert_eq!(got, (0..3 * LIMIT as u8).map(|index| vec![index]).collect::<Vec<_>>());
    }

    extern "C" fn ignore(_: c_int) {}

    pub(super) fn limits() {
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
        let (told, id) = std::sync::mpsc::channel();
        let waiter = std::thread::spawn(move || {
            // SAFETY: no memory is passed.
            told.send(unsafe { libc::pthread_self() }).unwrap();
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

    fn connect(fd: c_int, name: &[u8]) -> c_int {
        // SAFETY: the name is live and has this length.
        unsafe { libc::connect(fd, name.as_ptr().cast(), name.len() as u32) }
    }

    pub(super) fn connecting() {
        let fd = socket();
        assert_eq!(connect(fd, b"anybody"), 0);
        assert_eq!(errno(connect(fd, echo::REFUSED)), libc::ECONNREFUSED);
        // SAFETY: no memory is passed.
        unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
        assert_eq!(errno(connect(fd, echo::REFUSED)), libc::EINPROGRESS);
        let (mut name, mut length) = ([0_u8; 16], 16);
        // SAFETY: both are live.
        let guest = unsafe {
            libc::accept4(fd, name.as_mut_ptr().cast(), &raw mut length, libc::SOCK_CLOEXEC)
        };
        assert_eq!((length, &name[..5]), (5, &b"guest"[..]));
        // SAFETY: no memory is passed.
        assert_eq!(unsafe { libc::fcntl(guest, libc::F_GETFD) }, libc::FD_CLOEXEC);
        assert_eq!(send(guest, b"x", 0), 1);
        // SAFETY: no memory is passed.
        assert_eq!(errno(unsafe { libc::listen(guest, 1) }), libc::EOPNOTSUPP);
    }

    pub(super) fn copies() {
        let fd = socket();
        // SAFETY: no memory is passed.
        let copy = unsafe { libc::dup(fd) };
        close(fd);
        assert_eq!(send(copy, b"still here", 0), 10);
        // Another socket takes its place, and is itself put over the copy.
        let other = socket();
        assert_eq!(other, fd, "programs get the lowest free number");
        // SAFETY: no memory is passed.
        assert_eq!(unsafe { libc::dup2(other, copy) }, copy);
        close(other);
        assert_eq!(receive(copy, 10, libc::MSG_DONTWAIT), Err(libc::EAGAIN));
        close(copy);
    }

    pub(super) fn children() {
        let fd = socket();
        // SAFETY: the child makes system calls alone.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let good = send(fd, b"from the child", 0) == 14;
            // SAFETY: it ends here.
            unsafe { libc::_exit(if good { 0 } else { 1 }) };
        }
        assert_eq!(receive(fd, 100, 0).unwrap(), b"from the child");
        let mut status = 0;
        // SAFETY: the status is live.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        // A program that knows nothing of sockets has one as its standard streams.
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

    pub(super) fn closing() {
        let fd = socket();
        for number in (0..2048).filter(|number| *number != fd && *number > 2) {
            // SAFETY: nobody else has descriptors in this process.
            unsafe { libc::close(number) };
        }
        assert_eq!(send(fd, b"x", 0), 1);
        // SAFETY: as above.
        check(unsafe { libc::close_range(fd as u32 + 1, u32::MAX, 0) }).unwrap();
        assert_eq!(receive(fd, 10, 0).unwrap(), b"x");
        for number in (0..2048).filter(|number| *number != fd && *number > 2) {
            // SAFETY: as above. This goes past libc.
            unsafe { libc::syscall(libc::SYS_close, number) };
        }
        assert_eq!(send(fd, b"y", 0), 1);
    }

    /// Descriptors that are local stream sockets: the library's connections.
    fn connections() -> usize {
        let is_one = |fd: c_int| {
            let (mut kind, mut domain, mut length) = (0, 0, size_of::<c_int>() as u32);
            let level = libc::SOL_SOCKET;
            // SAFETY: all that is passed is live. Past the library, which would hide them.
            let asked = unsafe {
                let option = libc::SO_TYPE;
                let asked = libc::SYS_getsockopt;
                libc::syscall(asked, fd, level, option, &raw mut kind, &raw mut length)
                    | libc::syscall(
                        asked,
                        fd,
                        level,
                        libc::SO_DOMAIN,
                        &raw mut domain,
                        &raw mut length,
                    )
            };
            asked == 0 && (kind, domain) == (libc::SOCK_STREAM, libc::AF_UNIX)
        };
        (0..1024).filter(|fd| is_one(*fd)).count()
    }

    pub(super) fn cancelled() {
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
        assert_eq!(connections(), 0, "the connection of the call has ended with its thread");
        assert_eq!(send(fd, b"x", 0), 1);
    }

    pub(super) fn others() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"over TCP").unwrap();
        let mut data = [0; 8];
        server.read_exact(&mut data).unwrap();
        assert_eq!(&data, b"over TCP");
        // SAFETY: no memory is passed.
        unsafe {
            assert_eq!(
                errno(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, SCTP)),
                libc::EPROTONOSUPPORT
            );
            assert_eq!(errno(libc::close(1000)), libc::EBADF);
        }
    }

    pub(super) fn endless() {
        let (fd, sign) = (socket(), socket());
        close(sign);
        let _ = receive(fd, 10, 0);
    }

    pub(super) fn abandoned() {
        let (fd, sign) = (socket(), socket());
        close(sign);
        assert_eq!(receive(fd, 10, 0), Err(libc::ECONNRESET));
        assert_eq!(receive(fd, 10, 0), Err(libc::ECONNRESET));
        assert_eq!(errno(send(fd, b"x", libc::MSG_NOSIGNAL)), libc::EPIPE);
        // SAFETY: no memory is passed.
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, SCTP) };
        assert_eq!(errno(socket), libc::EPROTONOSUPPORT);
        // As soon as the supervisor has let go of its end.
        while polled(fd) & libc::POLLHUP == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for a message until the service ends every socket.
    pub(super) fn ended() {
        let (fd, sign) = (socket(), socket());
        close(sign);
        assert_eq!(receive(fd, 10, 0), Err(libc::ECONNRESET));
        assert_eq!(errno(send(fd, b"x", libc::MSG_NOSIGNAL)), libc::ECONNRESET);
        assert_ne!(polled(fd) & libc::POLLHUP, 0);
    }
}
