//! A workload for an instruction counter: `instructions CASE N` performs the operation of a case N
//! times.
//!
//! ```text
//! cargo bench -p eyas-sctp --bench instructions -- list
//! valgrind --tool=callgrind target/release/deps/instructions-… message-1024 1000
//! ```
//!
//! Both sides run in this process, in virtual time: what is counted is everything of both, from the
//! message given to the one side to the message received from the other, with the packets and the
//! acknowledgements between them.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "this is a program beside the core: it reads its arguments and prints"
)]

#[path = "../examples/transfer/pair.rs"]
mod pair;
#[path = "../examples/transfer/side.rs"]
mod side;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;

use pair::Pair;

/// The cases, with a description of one operation.
const CASES: [(&str, Case, &str); 6] = [
    ("message-64", Case::Message(64), "many messages fit into one packet"),
    ("message-1024", Case::Message(1024), "one message fits"),
    ("message-1452", Case::Message(1452), "a message takes two packets, one of them nearly empty"),
    ("message-16384", Case::Message(16_384), "a message takes twelve packets"),
    ("message-65536", Case::Message(65_536), "a message takes 46 packets"),
    ("association", Case::Association, "opened, beside those before"),
];

#[derive(Clone, Copy)]
enum Case {
    /// A message of this many bytes, sent, received and acknowledged.
    Message(usize),
    /// An association, from the INIT until both sides have reported it.
    Association,
}

/// The time between two exchanges of packets.
const STEP: Duration = Duration::from_micros(10);

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
            let case = CASES.iter().find(|(known, ..)| known == name);
            let (Some((_, case, _)), Ok(repetitions)) = (case, repetitions.parse()) else {
                return usage();
            };
            match case {
                Case::Message(size) => messages(*size, repetitions),
                Case::Association => associations(repetitions),
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
    eprintln!("instructions list\ninstructions CASE N");
    for (name, _, about) in CASES {
        eprintln!("  {name:14} {about}");
    }
    ExitCode::FAILURE
}

fn messages(size: usize, count: u64) -> Result<(), Box<dyn Error>> {
    let (mut pair, mut now) = (Pair::new(), Duration::ZERO);
    let ours = pair.client.connect(now)?;
    while pair.turn(now)? {}
    let theirs = pair.server.up.ok_or("the association did not come up")?;
    let message = Bytes::from(vec![0x5a; size]);
    let (mut sent, mut received) = (0, 0);
    while received < count {
        now += STEP;
        while sent < count && pair.client.send(now, ours, &message)? {
            sent += 1;
        }
        let has_moved = pair.turn(now)?;
        while let Some(length) = pair.server.receive(now, theirs) {
            if length != size {
                return Err(format!("a message of {length} bytes").into());
            }
            received += 1;
        }
        if !has_moved {
            // Only a timer can make progress: advance to it.
            let due = [pair.client.timeout, pair.server.timeout].into_iter().flatten().min();
            now = due.ok_or("the transfer stalled")?.max(now);
        }
    }
    Ok(())
}

fn associations(count: u64) -> Result<(), Box<dyn Error>> {
    let (mut pair, mut now) = (Pair::new(), Duration::ZERO);
    for _ in 0..count {
        now += STEP;
        pair.client.connect(now)?;
        while pair.turn(now)? {}
        pair.server.up.take().ok_or("an association did not come up")?;
    }
    Ok(())
}
