//! A workload for an instruction counter: `connect CASE N` makes the connection of a case N times.
//!
//! ```text
//! cargo bench -p eyas --bench connect -- list
//! valgrind --tool=callgrind target/release/deps/connect-… connect 100
//! ```
//!
//! The peer is a socket of this process on loopback that accepts and stays silent, and there is no
//! TLS: what is counted is everything from the preconnection to the connection and to the end of
//! its race. An instruction counter does not see the kernel.

use std::hint::black_box;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;

use eyas::race::candidate::{Security, Transport};
use eyas::race::target::{Target, TargetHost};
use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters, race::memory};

/// The name of the peer, which is not looked up in DNS.
const PEER: &str = "peer.test";

/// The cases, with a description of one operation.
const CASES: [(&str, &str); 2] = [
    ("connect", "a whole connect over TCP, the only candidate, and its end; nothing is remembered"),
    ("connect-remembered", "the same, and the memory of this process learns from it"),
];

fn main() -> ExitCode {
    // `cargo bench` adds the argument `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] | ["list"] => {
            CASES.iter().for_each(|(name, _)| println!("{name}"));
            Ok(())
        }
        [name, repetitions] => match (memory_of(name), repetitions.parse()) {
            (Some(memory), Ok(repetitions)) => connect(memory, repetitions),
            _ => return usage(),
        },
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
    for (name, about) in CASES {
        eprintln!("  {name:18} {about}");
    }
    ExitCode::FAILURE
}

fn memory_of(case: &str) -> Option<MemoryStore> {
    match case {
        "connect" => Some(MemoryStore::none()),
        "connect-remembered" => Some(MemoryStore::in_memory(memory::MemoryConfig::default())),
        _ => None,
    }
}

fn connect(memory: MemoryStore, repetitions: u64) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let resolver = Resolver::system().overriding(PEER, port, vec![Ipv4Addr::LOCALHOST.into()]);
    let security = SecurityParameters::platform().accept_any_certificate();
    let endpoint =
        Endpoint::builder().resolver(resolver).memory(memory).security(security).build()?;
    let host = TargetHost::parse(PEER)?;
    let target = Target::plain(host, port, vec![Transport::Tcp], Security::None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // In a task, as in most programs: the runtime's root future is woken through the kernel.
        let all = tokio::spawn(async move {
            for _ in 0..repetitions {
                let mut initiation = endpoint.preconnection(target.clone()).initiate();
                black_box(initiation.usable().await.map_err(io::Error::other)?);
                initiation.finished().await;
                listener.accept()?;
            }
            Ok::<_, io::Error>(())
        });
        Ok(all.await??)
    })
}
