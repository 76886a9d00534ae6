//! eyas-sctp against SCTP stacks without sockets, in memory and in virtual time: every run is the same
//! except for random tags and TSNs.
//!
//! ```text
//! memory-peers [--seed N] [WORD]...   # cases with all of these in "PEER DIRECTION CASE"
//! ```
//!
//! One line of JSON for each case: `peer`, `we_connect`, `case`, `result` (`ok`, `FAIL` or `skip`)
//! and `detail`.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`side`] | the interface to a side |
//! | [`ours`], [`dcsctp_side`], [`rtc_side`] | one stack each |
//! | [`link`] | the link between them |
//! | [`exchange`] | one association, step by step |
//! | [`cases`] | the cases |

mod cases;
mod content;
mod dcsctp_side;
mod exchange;
mod link;
mod ours;
mod rtc_side;
mod side;

use std::panic::{AssertUnwindSafe, catch_unwind};

use cases::Case;
use exchange::{Arrived, Exchange};
use side::{Side, SideOptions};

const SEED: u64 = 0x6579_6173;

/// A third-party stack.
struct Peer {
    name: &'static str,
    create: fn(SideOptions) -> Box<dyn Side>,
    /// Why a case cannot work with it; the flag is `true` if we connect.
    skip: fn(&str, bool) -> Option<&'static str>,
}

const PEERS: [Peer; 2] = [
    Peer {
        name: "dcsctp",
        create: |options| Box::new(dcsctp_side::Dcsctp::new(options)),
        skip: |_, _| None,
    },
    Peer {
        name: "rtc-sctp",
        create: |options| Box::new(rtc_side::Rtc::new(options)),
        skip: skip_for_rtc,
    },
];

fn skip_for_rtc(case: &str, we_connect: bool) -> Option<&'static str> {
    match case {
        "interleaving" => Some("rtc-sctp has no I-DATA (RFC 8260)"),
        "zero checksum" => Some("rtc-sctp has no zero checksum (RFC 9653)"),
        "both connect" => {
            Some("rtc-sctp 0.21 opens a second association when INITs cross (RFC 9260 §5.2.1)")
        }
        // Its shutdown() sends SHUTDOWN as soon as no chunk is in flight, and queued messages are
        // never sent: RFC 9260 §9.2 requires that they are delivered first.
        "shutdown with data under way" if !we_connect => {
            Some("the shutdown of rtc-sctp 0.21 drops queued messages (RFC 9260 §9.2)")
        }
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

/// Removes and returns the value of `--seed`, if that comes first.
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
    // A stack that panics fails only its case.
    let attempt = AssertUnwindSafe(|| run_case(peer, we_connect, case, seed));
    let (good, detail) = catch_unwind(attempt).unwrap_or((false, "a panic".into()));
    (if good { "ok" } else { "FAIL" }, detail)
}

fn run_case(peer: &Peer, we_connect: bool, case: &Case, seed: u64) -> (bool, String) {
    let ours: Box<dyn Side> = Box::new(ours::Ours::new(case.options, seed));
    let theirs = (peer.create)(case.options);
    let (connector, listener) = if we_connect { (ours, theirs) } else { (theirs, ours) };
    let mut exchange = (case.prepare)(Exchange::new(connector, listener, seed));
    let outcome = exchange.run(case.both_connect);
    let (one, other) = exchange.arrived();
    let stats = &exchange.link.stats;
    let good = outcome.is_ok() && (case.check)(one, other, stats);
    let error = outcome.err().map_or(String::new(), |error| format!("{error}; "));
    let detail = format!(
        "{error}connector: {}; listener: {}; {} packets, {} lost, {:.1} s",
        describe(one),
        describe(other),
        stats.packets,
        stats.lost,
        exchange.now.as_secs_f64()
    );
    (good, detail)
}

/// Returns a description of what one side has received.
fn describe(arrived: &Arrived) -> String {
    let Arrived { messages, bytes, bad, disordered, events, .. } = arrived;
    let damage = match (bad, disordered) {
        (0, 0) => String::new(),
        _ => format!(", {bad} bad, {disordered} out of order"),
    };
    format!("{messages} messages, {bytes} bytes{damage}, {events:?}")
}

fn print(peer: &str, we_connect: bool, case: &str, result: &str, detail: &str) {
    let detail = detail.replace('\\', "/").replace('"', "'");
    println!(
        "{{\"peer\": \"{peer}\", \"we_connect\": {we_connect}, \"case\": \"{case}\", \
         \"result\": \"{result}\", \"detail\": \"{detail}\"}}"
    );
}
