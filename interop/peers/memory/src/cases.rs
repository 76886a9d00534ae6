//! What is checked with each peer, in both directions. Names and steps are those of the peers on
//! real links (eyas_interop/sctp/cases.py), as far as there is one path only.

use std::time::Duration;

use crate::link::{Seen, Trouble};
use crate::meeting::{Arrived, Meeting, Messages, Step};
use crate::side::{Happened, Wishes};

const SIZES: [usize; 12] = [1, 2, 3, 5, 64, 1400, 1452, 1453, 16_384, 65_536, 262_144, 1_048_576];
/// Chunk types that show which extension was used.
const I_DATA: u8 = 64;
const RE_CONFIG: u8 = 130;
const FORWARD_TSN: u8 = 192;

/// One case.
pub struct Case {
    pub name: &'static str,
    pub wishes: Wishes,
    pub both_connect: bool,
    pub prepare: fn(Meeting) -> Meeting,
    pub judge: fn(&Arrived, &Arrived, &Seen) -> bool,
}

fn send(count: u32, sizes: &[usize], streams: u16) -> Step {
    let sizes = sizes.to_vec();
    Step::Send(Messages { count, sizes, streams, unordered: false, retransmissions: None })
}

fn pause(milliseconds: u64) -> Step {
    Step::Sleep(Duration::from_millis(milliseconds))
}

/// `steps` on both sides, and the connector shuts down.
fn alike(meeting: Meeting, steps: &[Step]) -> Meeting {
    let with = |last: Step| steps.iter().cloned().chain([last]).collect();
    meeting.steps(with(Step::Shutdown), with(Step::Wait))
}

fn one_way(meeting: Meeting, step: Step) -> Meeting {
    meeting.steps(vec![step, Step::Dry, Step::Shutdown], vec![Step::Wait])
}

fn good(arrived: &Arrived, messages: u64) -> bool {
    arrived.messages == messages && arrived.bad == 0 && arrived.disordered == 0
}

fn closed(one: &Arrived, other: &Arrived) -> bool {
    one.was_told(&Happened::Closed) && other.was_told(&Happened::Closed)
}

fn plain(
    name: &'static str,
    prepare: fn(Meeting) -> Meeting,
    judge: fn(&Arrived, &Arrived, &Seen) -> bool,
) -> Case {
    let wishes = Wishes { streams: 1024, ..Wishes::default() };
    Case { name, wishes, both_connect: false, prepare, judge }
}

/// All of them.
pub fn all() -> Vec<Case> {
    let mut cases = transfers();
    cases.extend(endings());
    cases.extend(troubles());
    cases.extend(extensions());
    cases
}

fn transfers() -> Vec<Case> {
    vec![
        plain(
            "sizes",
            |meeting| alike(meeting, &[send(24, &SIZES, 3), Step::Receive(24), Step::Dry]),
            |a, b, _| good(a, 24) && good(b, 24) && closed(a, b),
        ),
        plain(
            "bulk",
            |meeting| alike(meeting, &[send(200, &[65_536], 4), Step::Receive(200), Step::Dry]),
            |a, b, _| good(a, 200) && good(b, 200) && closed(a, b),
        ),
        plain(
            "many streams",
            |meeting| one_way(meeting, send(100_000, &[64], 1000)),
            |_, b, _| good(b, 100_000),
        ),
        plain(
            "echo",
            |meeting| {
                let steps =
                    vec![send(500, &[10, 1000, 3000], 5), Step::Receive(500), Step::Shutdown];
                meeting.steps(steps, vec![Step::Wait]).with_echo()
            },
            |a, b, _| good(a, 500) && good(b, 500),
        ),
        plain(
            "unordered",
            |mut meeting| {
                meeting.link.trouble = Trouble { overtaken: 10, ..Trouble::default() };
                let sizes = vec![10, 1000, 3000];
                let messages = Messages {
                    count: 500,
                    sizes,
                    streams: 5,
                    unordered: true,
                    retransmissions: None,
                };
                one_way(meeting, Step::Send(messages))
            },
            // They did overtake each other, and none is lost.
            |_, b, _| b.messages == 500 && b.bad == 0 && b.disordered > 0,
        ),
    ]
}

fn endings() -> Vec<Case> {
    let mut both = plain(
        "both connect",
        |meeting| alike(meeting, &[send(50, &[1000], 5), Step::Receive(50), Step::Dry]),
        |a, b, _| good(a, 50) && good(b, 50) && closed(a, b),
    );
    both.both_connect = true;
    vec![
        both,
        plain(
            "listener shuts down",
            |meeting| {
                let steps = vec![Step::Receive(10), Step::Shutdown];
                meeting.steps(vec![send(10, &[1000], 1), Step::Wait], steps)
            },
            |a, b, _| good(b, 10) && closed(a, b),
        ),
        plain(
            "shutdown with data under way",
            |meeting| {
                let steps = vec![send(300, &[3000], 4), Step::Shutdown];
                meeting.steps(steps, vec![Step::Wait])
            },
            |a, b, _| good(b, 300) && closed(a, b),
        ),
        plain(
            "connector aborts",
            |meeting| {
                let steps = vec![send(10, &[1000], 1), Step::Dry, Step::Abort];
                meeting.steps(steps, vec![Step::Wait])
            },
            |_, b, _| good(b, 10) && b.was_lost(),
        ),
        plain(
            "listener aborts",
            |meeting| {
                let steps = vec![Step::Receive(10), Step::Abort];
                meeting.steps(vec![send(10, &[1000], 1), Step::Wait], steps)
            },
            |a, b, _| good(b, 10) && a.was_lost(),
        ),
    ]
}

fn troubles() -> Vec<Case> {
    vec![
        plain(
            "losses",
            |mut meeting| {
                meeting.link.trouble = Trouble { lost: 5, ..Trouble::default() };
                alike(meeting, &[send(400, &[3000], 4), Step::Receive(400), Step::Dry])
            },
            |a, b, seen| good(a, 400) && good(b, 400) && seen.lost > 0,
        ),
        plain(
            "order and copies",
            |mut meeting| {
                meeting.link.trouble = Trouble { copied: 10, overtaken: 10, lost: 0 };
                alike(meeting, &[send(400, &[10, 3000], 4), Step::Receive(400), Step::Dry])
            },
            |a, b, _| good(a, 400) && good(b, 400),
        ),
        plain(
            "all at once",
            |mut meeting| {
                meeting.link.trouble = Trouble { copied: 5, overtaken: 5, lost: 5 };
                alike(meeting, &[send(400, &[10, 3000], 40), Step::Receive(400), Step::Dry])
            },
            |a, b, _| good(a, 400) && good(b, 400),
        ),
        plain(
            "partial reliability",
            |mut meeting| {
                meeting.link.trouble = Trouble { lost: 8, ..Trouble::default() };
                let sizes = vec![1000];
                let messages = Messages {
                    count: 150,
                    sizes,
                    streams: 4,
                    unordered: false,
                    retransmissions: Some(0),
                };
                let calm = Step::Trouble(Trouble::default());
                let last = [Step::Dry, calm, send(20, &[1000], 4), Step::Dry, Step::Shutdown];
                let steps = [Step::Send(messages)].into_iter().chain(last).collect();
                meeting.steps(steps, vec![Step::Wait])
            },
            |_, b, seen| {
                let clean = b.bad == 0 && b.disordered == 0;
                clean && (20..170).contains(&b.messages) && seen.chunks.contains(&FORWARD_TSN)
            },
        ),
    ]
}

fn extensions() -> Vec<Case> {
    let mut interleaving = plain(
        "interleaving",
        |meeting| alike(meeting, &[send(60, &[100, 200_000], 6), Step::Receive(60), Step::Dry]),
        |a, b, seen| good(a, 60) && good(b, 60) && seen.chunks.contains(&I_DATA),
    );
    interleaving.wishes.interleaving = true;
    let mut zero_checksum = plain(
        "zero checksum",
        |meeting| {
            let steps = vec![send(200, &[10, 3000], 5), Step::Receive(200), Step::Shutdown];
            meeting.steps(steps, vec![Step::Wait]).with_echo()
        },
        |a, b, seen| good(a, 200) && good(b, 200) && seen.without_checksum > 100,
    );
    zero_checksum.wishes.zero_checksum = true;
    let reset = plain(
        "reset",
        |meeting| {
            let once = || [send(40, &[100], 4), Step::Dry, pause(200)];
            let reset = Step::Reset(vec![1, 2]);
            let last = [send(40, &[100], 4), Step::Dry, Step::Receive(80), pause(300)];
            let steps: Vec<_> = once().into_iter().chain([reset, pause(500)]).chain(last).collect();
            alike(meeting, &steps)
        },
        |a, b, seen| {
            let told = |it: &Arrived| it.was_told(&Happened::TheirStreamsReset);
            good(a, 80) && good(b, 80) && told(a) && told(b) && seen.chunks.contains(&RE_CONFIG)
        },
    );
    vec![reset, interleaving, zero_checksum]
}
