//! Tests of who may use a supervisor, and who may query it.
#![cfg(target_os = "linux")]

mod echo;

use std::ffi::OsStr;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use echo::{Echo, STATUS};
use eyas_supervisor::local::{Capability, Op, REQUEST, RESPONSE, Request, Response};
use eyas_supervisor::{AskError, Supervisor, SupervisorAddress, SupervisorPlace};
use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, sockopt_impl};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;

#[test]
fn a_supervisor_at_a_path_answers_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sctp");
    let runtime = Runtime::new().unwrap();
    let _runtime_context = runtime.enter();
    let place = SupervisorPlace::Path { path: path.clone(), mode: 0o600 };
    let supervisor = Supervisor::start(Echo::default(), &place).unwrap();
    let address = SupervisorAddress::from_path(&path);
    assert_eq!(address.status().unwrap(), STATUS);
    assert_eq!(&address.value(), supervisor.address());
    drop(supervisor);
    drop(runtime);
    assert!(matches!(address.status(), Err(AskError::Unreached(_))));
}

#[test]
fn the_owner_finds_it_and_may_query_it() {
    let runtime = Runtime::new().unwrap();
    let _runtime_context = runtime.enter();
    let supervisor = Supervisor::start(Echo::default(), &SupervisorPlace::Private).unwrap();
    let given = SupervisorAddress::parse(supervisor.address()).unwrap();
    assert_eq!(given.status().unwrap(), STATUS);
    let name = supervisor.address().to_str().unwrap().split(' ').next().unwrap();
    let listed = SupervisorAddress::parse(OsStr::new(name)).unwrap();
    assert!(SupervisorAddress::all().unwrap().contains(&listed));
    assert_eq!(listed.status().unwrap(), STATUS, "without its key");
}

#[test]
fn without_the_key_no_socket_is_created() {
    let runtime = Runtime::new().unwrap();
    let _runtime_context = runtime.enter();
    let supervisor = Supervisor::start(Echo::default(), &SupervisorPlace::Private).unwrap();
    let (name, key) = supervisor.address().to_str().unwrap().split_once(' ').unwrap();
    let name = SocketAddr::from_abstract_name(&name[1..]).unwrap();
    let key = u64::from_str_radix(key, 16).unwrap();
    for (key, answer) in [(key, RESPONSE), (!key, 0)] {
        let mut stream = UnixStream::connect_addr(&name).unwrap();
        stream.write_all(&Request { key, ..Request::new(Op::Socket) }.encode()).unwrap();
        let mut head = [0; RESPONSE];
        assert_eq!(stream.read(&mut head).unwrap(), answer);
    }
}

sockopt_impl!(
    /// The option that contains a capability.
    CapabilityOption,
    GetOnly,
    libc::SOL_SOCKET,
    Capability::OPTION,
    u64
);

/// Makes a request for the socket with this capability; returns the result and a descriptor.
fn ask(mut stream: &UnixStream, op: Op, capability: u64) -> (i32, Option<OwnedFd>) {
    let request = Request { capability, ..Request::new(op) };
    stream.write_all(&request.encode()).unwrap();
    let mut head = [0; RESPONSE];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let parts = &mut [IoSliceMut::new(&mut head)];
    let received = recvmsg(stream, parts, &mut control, RecvFlags::WAITALL).unwrap();
    assert_eq!(received.bytes, RESPONSE);
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    (Response::parse(&head).unwrap().result, descriptor)
}

//= hostile sctp-run
//# a guessed capability
//= bound: 56 unpredictable bits
#[test]
fn only_who_has_its_descriptor_can_use_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sctp");
    let runtime = Runtime::new().unwrap();
    let _runtime_context = runtime.enter();
    let place = SupervisorPlace::Path { path: path.clone(), mode: 0o666 };
    let _supervisor = Supervisor::start(Echo::default(), &place).unwrap();
    let (owner, stranger) =
        (UnixStream::connect(&path).unwrap(), UnixStream::connect(&path).unwrap());
    let descriptor = ask(&owner, Op::Socket, 0).1.unwrap();
    let rate = getsockopt(&descriptor, CapabilityOption).unwrap();
    // The owner's other threads and processes have connections of their own.
    for user in [&owner, &stranger] {
        assert_eq!(ask(user, Op::LocalName, rate).0, 0);
    }
    let names = std::fs::read_to_string("/proc/thread-self/net/unix").unwrap();
    assert!(!names.contains("eyas-sctp-socket"), "{names}");
    let guesses = (0..100)
        .flat_map(|guess| [guess, Capability::new(guess).rate(), rate ^ (1 << (guess % 56))]);
    for guess in guesses {
        for op in [Op::LocalName, Op::Send, Op::Receive, Op::SetOption, Op::GiveBack] {
            assert_eq!(ask(&stranger, op, guess).0, -libc::ECONNRESET, "{op:?} {guess:x}");
        }
        assert_eq!(ask(&stranger, Op::Closed, guess).0, 0);
    }
    assert_eq!(ask(&owner, Op::LocalName, rate).0, 0);
}

//= hostile sctp-run
//# connections without a request
//= bound: `FIRST_REQUEST_TIMEOUT`
#[test]
fn a_connection_without_a_request_is_closed() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sctp");
        let place = SupervisorPlace::Path { path: path.clone(), mode: 0o666 };
        let _supervisor = Supervisor::start(Echo::default(), &place).unwrap();
        let mut silent = tokio::net::UnixStream::connect(&path).await.unwrap();
        assert_eq!(silent.read(&mut [0]).await.unwrap(), 0);
        let mut slow = tokio::net::UnixStream::connect(&path).await.unwrap();
        slow.write_all(&Request::new(Op::Socket).encode()[..7]).await.unwrap();
        assert_eq!(slow.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn another_version_is_distinguished_from_a_missing_supervisor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sctp");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; REQUEST]).unwrap();
        let mut answer = Response::new(-93).encode();
        answer[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        stream.write_all(&answer).unwrap();
    });
    assert!(matches!(SupervisorAddress::from_path(&path).status(), Err(AskError::OtherVersion)));
    server.join().unwrap();
}
