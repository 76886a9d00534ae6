//! eyas-sctp against SCTP stacks without sockets of their own, in memory and in a time of its own:
//! every run is the same but for the tags and TSNs that they draw.
//!
//! ```text
//! memory-peers [--seed N] [WORD]...   # cases with all of these in "PEER DIRECTION CASE"
//! ```
//!
//! One line of JSON for each case: `peer`, `we_connect`, `case`, `result` (`ok`, `FAIL` or `skip`)
//! and `detail`.
//!
//! | module | job |
//! | --- | --- |
//! | [`side`] | what a side has to be able to do |
//! | [`ours`], [`dcsctp_side`], [`rtc_side`] | one stack each |
//! | [`link`] | the link between them |
//! | [`meeting`] | one association, step by step |
//! | [`cases`] | what is checked |

mod cases;
mod content;
mod dcsctp_side;
mod link;
mod meeting;
mod ours;
mod rtc_side;
mod side;

use std::panic::{AssertUnwindSafe, catch_unwind};

use cases::Case;
use meeting::{Arrived, Meeting};
use side::{Side, Wishes};

const SEED: u64 = 0x6579_6173;

/// A stack of others.
struct Peer {
    name: &'static str,
    make: fn(Wishes) -> Box<dyn Side>,
    /// Why a case makes no sense with it; `true` if we connect.
    skip: fn(&str, bool) -> Option<&'static str>,
}

const PEERS: [Peer; 2] = [
    Peer {
        name: "dcsctp",
        make: |wishes| Box::new(dcsctp_side::Dcsctp::new(wishes)),
        skip: |_, _| None,
    },
    Peer { name: "rtc-sctp", make: |wishes| Box::new(rtc_side::Rtc::new(wishes)), skip: rtc_lacks },
];

fn rtc_lacks(case: &str, we_connect: bool) -> Option<&'static str> {
    match case {
        "interleaving" => Some("rtc-sctp has no I-DATA (RFC 8260)"),
        "zero checksum" => Some("rtc-sctp has no zero checksum (RFC 9653)"),
        "both connect" => {
            Some("rtc-sctp 0.21 opens a second association when INITs cross (RFC 9260 §5.2.1)")
        }
        // Its shutdown() sends SHUTDOWN as soon as no chunk is in flight, and what still waits to be
        // sent is never sent: RFC 9260 §9.2 wants it delivered first.
        "shutdown with data under way" if !we_connect => Some(
            "the shutdown of rtc-sctp 0.21 drops messages that wait to be sent (RFC 9260 §9.2)",
        ),
        _ => None,
    }
}

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let seed = take_seed(&mut words).unwrap_or(SEED);
    for peer in &PEERS {
        for we_connect in [true, false] {
            for case in cases::all() {
                let direction = if we_connect { "we" } else { "they" };
                let label = format!("{} {direction} {}", peer.name, case.name);
                if words.iter().all(|word| label.contains(word.as_str())) {
                    let (result, detail) = run(peer, we_connect, &case, seed);
                    print(peer.name, we_connect, case.name, result, &detail);
                }
            }
        }
    }
}

/// What stands behind `--seed`, if that comes first.
fn take_seed(words: &mut Vec<String>) -> Option<u64> {
    let seed = match words.as_slice() {
        [first, seed, ..] if first == "--seed" => seed.parse().ok(),
        _ => None,
    };
    words.drain(..if seed.is_some() { 2 } else { 0 });
    seed
}

fn run(peer: &Peer, we_connect: bool, case: &Case, seed: u64) -> (&'static str, String) {
    if let Some(why) = (peer.skip)(case.name, we_connect) {
        return ("skip", why.into());
    }
    // A stack that panics fails its case, and no other.
    let attempt = AssertUnwindSafe(|| meet(peer, we_connect, case, seed));
    let (good, detail) = catch_unwind(attempt).unwrap_or((false, "a panic".into()));
    (if good { "ok" } else { "FAIL" }, detail)
}

fn meet(peer: &Peer, we_connect: bool, case: &Case, seed: u64) -> (bool, String) {
    let ours: Box<dyn Side> = Box::new(ours::Ours::new(case.wishes, seed));
    let theirs = (peer.make)(case.wishes);
    let (connector, listener) = if we_connect { (ours, theirs) } else { (theirs, ours) };
    let mut meeting = (case.prepare)(Meeting::new(connector, listener, seed));
    let outcome = meeting.run(case.both_connect);
    let (one, other) = meeting.arrived();
    let seen = &meeting.link.seen;
    let good = outcome.is_ok() && (case.judge)(one, other, seen);
    let error = outcome.err().map_or(String::new(), |error| format!("{error}; "));
    let detail = format!(
        "{error}connector: {}; listener: {}; {} packets, {} lost, {:.1} s",
        shown(one),
        shown(other),
        seen.packets,
        seen.lost,
        meeting.now.as_secs_f64()
    );
    (good, detail)
}

/// For people.
fn shown(arrived: &Arrived) -> String {
    let Arrived { messages, bytes, bad, disordered, happened, .. } = arrived;
    let harm = match (bad, disordered) {
        (0, 0) => String::new(),
        _ => format!(", {bad} bad, {disordered} out of order"),
    };
    format!("{messages} messages, {bytes} bytes{harm}, {happened:?}")
}

fn print(peer: &str, we_connect: bool, case: &str, result: &str, detail: &str) {
    let detail = detail.replace('\\', "/").replace('"', "'");
    println!(
        "{{\"peer\": \"{peer}\", \"we_connect\": {we_connect}, \"case\": \"{case}\", \
         \"result\": \"{result}\", \"detail\": \"{detail}\"}}"
    );
}
