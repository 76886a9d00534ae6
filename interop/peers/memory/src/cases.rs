//! The cases for each peer, in both directions. Names and steps are those of the cases on real links
//! (eyas_interop/sctp/cases.py) that need only one path.

use std::time::Duration;

use crate::exchange::{Arrived, Exchange, Messages, Step};
use crate::link::{Impairments, Stats};
use crate::side::{SideEvent, SideOptions};

const SIZES: [usize; 12] = [1, 2, 3, 5, 64, 1400, 1452, 1453, 16_384, 65_536, 262_144, 1_048_576];
/// Chunk types that show which extension was used.
const I_DATA: u8 = 64;
const RE_CONFIG: u8 = 130;
const FORWARD_TSN: u8 = 192;

/// One case.
pub struct Case {
    pub name: &'static str,
    pub options: SideOptions,
    pub both_connect: bool,
    pub prepare: fn(Exchange) -> Exchange,
    pub check: fn(&Arrived, &Arrived, &Stats) -> bool,
}

fn send(count: u32, sizes: &[usize], streams: u16) -> Step {
    let sizes = sizes.to_vec();
    Step::Send(Messages { count, sizes, streams, unordered: false, retransmissions: None })
}

fn pause(milliseconds: u64) -> Step {
    Step::Sleep(Duration::from_millis(milliseconds))
}

/// Sets `steps` on both sides; at the end the connector shuts down.
fn same_steps(exchange: Exchange, steps: &[Step]) -> Exchange {
    let with = |last: Step| steps.iter().cloned().chain([last]).collect();
    exchange.steps(with(Step::Shutdown), with(Step::Wait))
}

fn one_way(exchange: Exchange, step: Step) -> Exchange {
    exchange.steps(vec![step, Step::Dry, Step::Shutdown], vec![Step::Wait])
}

fn good(arrived: &Arrived, messages: u64) -> bool {
    arrived.messages == messages && arrived.bad == 0 && arrived.disordered == 0
}

fn closed(one: &Arrived, other: &Arrived) -> bool {
    one.has_event(&SideEvent::Closed) && other.has_event(&SideEvent::Closed)
}

fn plain(
    name: &'static str,
    prepare: fn(Exchange) -> Exchange,
    check: fn(&Arrived, &Arrived, &Stats) -> bool,
) -> Case {
    let options = SideOptions { streams: 1024, ..SideOptions::default() };
    Case { name, options, both_connect: false, prepare, check }
}

/// Returns all cases.
pub fn all() -> Vec<Case> {
    let mut cases = transfers();
    cases.extend(endings());
    cases.extend(impairment_cases());
    cases.extend(extensions());
    cases
}

fn transfers() -> Vec<Case> {
    vec![
        plain(
            "sizes",
            |exchange| same_steps(exchange, &[send(24, &SIZES, 3), Step::Receive(24), Step::Dry]),
            |a, b, _| good(a, 24) && good(b, 24) && closed(a, b),
        ),
        plain(
            "bulk",
            |exchange| {
                same_steps(exchange, &[send(200, &[65_536], 4), Step::Receive(200), Step::Dry])
            },
            |a, b, _| good(a, 200) && good(b, 200) && closed(a, b),
        ),
        plain(
            "many streams",
            |exchange| one_way(exchange, send(100_000, &[64], 1000)),
            |_, b, _| good(b, 100_000),
        ),
        plain(
            "echo",
            |exchange| {
                let steps =
                    vec![send(500, &[10, 1000, 3000], 5), Step::Receive(500), Step::Shutdown];
                exchange.steps(steps, vec![Step::Wait]).with_echo()
            },
            |a, b, _| good(a, 500) && good(b, 500),
        ),
        plain(
            "unordered",
            |mut exchange| {
                exchange.link.impairments = Impairments { reordered: 10, ..Impairments::default() };
                let sizes = vec![10, 1000, 3000];
                let messages = Messages {
                    count: 500,
                    sizes,
                    streams: 5,
                    unordered: true,
                    retransmissions: None,
                };
                one_way(exchange, Step::Send(messages))
            },
            // They were reordered, and none was lost.
            |_, b, _| b.messages == 500 && b.bad == 0 && b.disordered > 0,
        ),
    ]
}

fn endings() -> Vec<Case> {
    let mut both = plain(
        "both connect",
        |exchange| same_steps(exchange, &[send(50, &[1000], 5), Step::Receive(50), Step::Dry]),
        |a, b, _| good(a, 50) && good(b, 50) && closed(a, b),
    );
    both.both_connect = true;
    vec![
        both,
        plain(
            "listener shuts down",
            |exchange| {
                let steps = vec![Step::Receive(10), Step::Shutdown];
                exchange.steps(vec![send(10, &[1000], 1), Step::Wait], steps)
            },
            |a, b, _| good(b, 10) && closed(a, b),
        ),
        plain(
            "shutdown with data under way",
            |exchange| {
                let steps = vec![send(300, &[3000], 4), Step::Shutdown];
                exchange.steps(steps, vec![Step::Wait])
            },
            |a, b, _| good(b, 300) && closed(a, b),
        ),
        plain(
            "connector aborts",
            |exchange| {
                let steps = vec![send(10, &[1000], 1), Step::Dry, Step::Abort];
                exchange.steps(steps, vec![Step::Wait])
            },
            |_, b, _| good(b, 10) && b.was_lost(),
        ),
        plain(
            "listener aborts",
            |exchange| {
                let steps = vec![Step::Receive(10), Step::Abort];
                exchange.steps(vec![send(10, &[1000], 1), Step::Wait], steps)
            },
            |a, b, _| good(b, 10) && a.was_lost(),
        ),
    ]
}

fn impairment_cases() -> Vec<Case> {
    vec![
        plain(
            "losses",
            |mut exchange| {
                exchange.link.impairments = Impairments { lost: 5, ..Impairments::default() };
                same_steps(exchange, &[send(400, &[3000], 4), Step::Receive(400), Step::Dry])
            },
            |a, b, stats| good(a, 400) && good(b, 400) && stats.lost > 0,
        ),
        plain(
            "order and copies",
            |mut exchange| {
                exchange.link.impairments = Impairments { duplicated: 10, reordered: 10, lost: 0 };
                same_steps(exchange, &[send(400, &[10, 3000], 4), Step::Receive(400), Step::Dry])
            },
            |a, b, _| good(a, 400) && good(b, 400),
        ),
        plain(
            "all at once",
            |mut exchange| {
                exchange.link.impairments = Impairments { duplicated: 5, reordered: 5, lost: 5 };
                same_steps(exchange, &[send(400, &[10, 3000], 40), Step::Receive(400), Step::Dry])
            },
            |a, b, _| good(a, 400) && good(b, 400),
        ),
        plain(
            "partial reliability",
            |mut exchange| {
                exchange.link.impairments = Impairments { lost: 8, ..Impairments::default() };
                let sizes = vec![1000];
                let messages = Messages {
                    count: 150,
                    sizes,
                    streams: 4,
                    unordered: false,
                    retransmissions: Some(0),
                };
                let unimpaired = Step::Impairments(Impairments::default());
                let last = [Step::Dry, unimpaired, send(20, &[1000], 4), Step::Dry, Step::Shutdown];
                let steps = [Step::Send(messages)].into_iter().chain(last).collect();
                exchange.steps(steps, vec![Step::Wait])
            },
            |_, b, stats| {
                let clean = b.bad == 0 && b.disordered == 0;
                clean && (20..170).contains(&b.messages) && stats.chunks.contains(&FORWARD_TSN)
            },
        ),
    ]
}

fn extensions() -> Vec<Case> {
    let mut interleaving = plain(
        "interleaving",
        |exchange| {
            same_steps(exchange, &[send(60, &[100, 200_000], 6), Step::Receive(60), Step::Dry])
        },
        |a, b, stats| good(a, 60) && good(b, 60) && stats.chunks.contains(&I_DATA),
    );
    interleaving.options.interleaving = true;
    let mut zero_checksum = plain(
        "zero checksum",
        |exchange| {
            let steps = vec![send(200, &[10, 3000], 5), Step::Receive(200), Step::Shutdown];
            exchange.steps(steps, vec![Step::Wait]).with_echo()
        },
        |a, b, stats| good(a, 200) && good(b, 200) && stats.without_checksum > 100,
    );
    zero_checksum.options.zero_checksum = true;
    let reset = plain(
        "reset",
        |exchange| {
            let once = || [send(40, &[100], 4), Step::Dry, pause(200)];
            let reset = Step::Reset(vec![1, 2]);
            let last = [send(40, &[100], 4), Step::Dry, Step::Receive(80), pause(300)];
            let steps: Vec<_> = once().into_iter().chain([reset, pause(500)]).chain(last).collect();
            same_steps(exchange, &steps)
        },
        |a, b, stats| {
            let reported = |it: &Arrived| it.has_event(&SideEvent::TheirStreamsReset);
            good(a, 80)
                && good(b, 80)
                && reported(a)
                && reported(b)
                && stats.chunks.contains(&RE_CONFIG)
        },
    );
    vec![reset, interleaving, zero_checksum]
}
