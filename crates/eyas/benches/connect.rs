//! A workload for an instruction counter: `connect CASE N` makes the connection of a case N times.
//!
//! ```text
//! cargo bench -p eyas --bench connect -- list
//! valgrind --tool=callgrind target/release/deps/connect-… connect 100
//! ```
//!
//! The peer is a socket of this process on loopback that accepts and stays silent; without TLS, what is
//! counted is everything from the preconnection to the connection and to the end of its race. With TLS
//! the peer is a listener of this process, whose half of the handshake is counted, too. An instruction
//! counter does not see the kernel.

use std::hint::black_box;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;

use eyas::race::candidate::{Security, Transport};
use eyas::race::target::{Target, TargetHost};
use eyas::rustls::NamedGroup;
use eyas::{
    Endpoint, ListenParameters, Listener, MemoryStore, Resolver, SecurityParameters,
    ServerIdentity, race::memory,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The name of the peer, which is not looked up in DNS.
const PEER: &str = "peer.test";

/// What is connected to, and what is remembered.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ConnectCase {
    Clear,
    Remembered,
    Tls(NamedGroup),
}

/// The cases, with a description of one operation.
const CASES: [(&str, ConnectCase, &str); 4] = [
    (
        "connect",
        ConnectCase::Clear,
        "a whole connect over TCP, the only candidate, and its end; nothing is remembered",
    ),
    (
        "connect-remembered",
        ConnectCase::Remembered,
        "the same, and the memory of this process learns from it",
    ),
    (
        "connect-tls",
        ConnectCase::Tls(NamedGroup::X25519MLKEM768),
        "connect with TLS, both ends, with X25519MLKEM768",
    ),
    ("connect-tls-x25519", ConnectCase::Tls(NamedGroup::X25519), "the same with X25519 alone"),
];

fn main() -> ExitCode {
    // `cargo bench` adds the argument `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] | ["list"] => {
            CASES.iter().for_each(|(name, ..)| println!("{name}"));
            Ok(())
        }
        [name, repetitions] => {
            let case = CASES.iter().find(|(known, ..)| known == name).map(|(_, case, _)| *case);
            match (case, repetitions.parse()) {
                (Some(ConnectCase::Tls(group)), Ok(repetitions)) => connect_tls(group, repetitions),
                (Some(case), Ok(repetitions)) => connect(case, repetitions),
                _ => return usage(),
            }
        }
        _ => return usage(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("connect list\nconnect CASE N");
    for (name, _, about) in CASES {
        eprintln!("  {name:18} {about}");
    }
    ExitCode::FAILURE
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn connect(case: ConnectCase, repetitions: u64) -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let memory = match case {
        ConnectCase::Remembered => MemoryStore::in_memory(memory::MemoryConfig::default()),
        _ => MemoryStore::none(),
    };
    let resolver = Resolver::system().overriding(PEER, port, vec![Ipv4Addr::LOCALHOST.into()]);
    let security = SecurityParameters::platform().accept_any_certificate();
    let endpoint =
        Endpoint::builder().resolver(resolver).memory(memory).security(security).build()?;
    let target = target(port, Security::None)?;
    runtime()?.block_on(async {
        // In a task, as in most programs: the runtime's root future is woken through the kernel.
        let all = tokio::spawn(async move {
            for _ in 0..repetitions {
                connect_once(&endpoint, &target, None).await?;
                listener.accept()?;
            }
            Ok::<_, Failure>(())
        });
        all.await?
    })
}

fn connect_tls(group: NamedGroup, repetitions: u64) -> Result<(), Failure> {
    runtime()?.block_on(async {
        let identity = ServerIdentity::self_signed([PEER])?;
        let parameters = ListenParameters::new((Ipv4Addr::LOCALHOST, 0).into())
            .transports([Transport::Tcp])
            .security(identity.clone());
        let listener = Listener::bind(parameters).await?;
        let port = listener.local_addr().port();
        let serving = tokio::spawn(async move {
            loop {
                drop(listener.accept().await);
            }
        });
        let resolver = Resolver::system().overriding(PEER, port, vec![Ipv4Addr::LOCALHOST.into()]);
        // By default X25519 goes beside X25519MLKEM768.
        let alone = (group == NamedGroup::X25519).then_some(group);
        let security = SecurityParameters::platform()
            .with_roots([identity.certificate().clone()])
            .with_key_exchange_groups(alone)
            .without_resumption();
        let endpoint = Endpoint::builder()
            .resolver(resolver)
            .memory(MemoryStore::none())
            .security(security)
            .build()?;
        let target = target(port, Security::Tls)?;
        let all = tokio::spawn(async move {
            for _ in 0..repetitions {
                connect_once(&endpoint, &target, group.as_str()).await?;
            }
            Ok::<_, Failure>(())
        });
        let result = all.await?;
        serving.abort();
        result
    })
}

fn target(port: u16, security: Security) -> Result<Target, Failure> {
    Ok(Target::plain(TargetHost::parse(PEER)?, port, vec![Transport::Tcp], security))
}

async fn connect_once(
    endpoint: &Endpoint,
    target: &Target,
    key_exchange: Option<&str>,
) -> Result<(), Failure> {
    let mut initiation = endpoint.preconnection(target.clone()).initiate();
    let connection = black_box(initiation.usable().await?);
    assert_eq!(connection.info().key_exchange, key_exchange);
    initiation.finished().await;
    Ok(())
}
