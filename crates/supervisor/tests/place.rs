//! Tests of who may use a supervisor, and who may query it.
#![cfg(target_os = "linux")]

mod echo;

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use echo::{Echo, STATUS};
use eyas_supervisor::local::{Op, REQUEST, RESPONSE, Request, Response};
use eyas_supervisor::{Address, AskError, Place, Supervisor};
use tokio::runtime::Runtime;

#[test]
fn a_supervisor_at_a_path_answers_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sctp");
    let runtime = Runtime::new().unwrap();
    let _runtime_context = runtime.enter();
    let place = Place::Path { path: path.clone(), mode: 0o600 };
    let supervisor = Supervisor::start(Echo::default(), &place).unwrap();
    let address = Address::of_path(&path);
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
    let supervisor = Supervisor::start(Echo::default(), &Place::Private).unwrap();
    let given = Address::parse(supervisor.address()).unwrap();
    assert_eq!(given.status().unwrap(), STATUS);
    let name = supervisor.address().to_str().unwrap().split(' ').next().unwrap();
    let listed = Address::parse(OsStr::new(name)).unwrap();
    assert!(Address::all().unwrap().contains(&listed));
    assert_eq!(listed.status().unwrap(), STATUS, "without its key");
}

#[test]
fn without_the_key_no_socket_is_created() {
    let runtime = Runtime::new().unwrap();
    let _runtime_context = runtime.enter();
    let supervisor = Supervisor::start(Echo::default(), &Place::Private).unwrap();
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
    assert!(matches!(Address::of_path(&path).status(), Err(AskError::OtherVersion)));
    server.join().unwrap();
}
