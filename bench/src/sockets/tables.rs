//! The measurements as tables, and whether the targets are met.

use std::fmt::Write as _;

use super::run::{AfterClosing, ConcurrentAssociations};
use super::{ASSOCIATIONS, Column, Results, SIZES, Stack};
use crate::statistics::middle;
use crate::transfer::TransferReport;

/// The stacks with their names in the tables.
const STACKS: [(Stack, &str); 4] = [
    (Stack::Sockets, "in C, `eyas sctp run`"),
    (Stack::Iperf, "iperf3, `eyas sctp run`"),
    (Stack::Usrsctp, "usrsctp's API"),
    (Stack::Driver, "eyas, driver"),
];
/// The targets for the ratios, for the added time of a round trip (in microseconds), for associations and
/// for TCP.
const MIN_OF_USRSCTP: f64 = 3.0;
const MIN_OF_DRIVER: f64 = 0.6;
const MAX_ADDED: f64 = 30.0;
const MIN_RATE: f64 = 2000.0;
const MAX_MEMORY: f64 = 16.0;
const MAX_SLOWDOWN: f64 = 1.02;
/// The maximum growth that still counts as flat, in KiB: pages that an allocator retains.
const MAX_GROWTH: f64 = 512.0;

/// Returns whether a measurement meets its target.
type Holds = fn(f64, f64) -> bool;

/// Returns the median of a figure.
fn median(
    results: &Results,
    key: (Stack, Column),
    figure: fn(&TransferReport) -> f64,
) -> Option<f64> {
    middle(&mut results.get(&key)?.iter().map(figure).collect::<Vec<_>>())
}

fn formatted(figure: Option<f64>, digits: usize) -> String {
    figure.map_or("–".into(), |figure| format!("{figure:.digits$}"))
}

/// Returns a table of Mbit/s of messages, and of CPU seconds of all processes.
pub(super) fn messages(results: &Results) -> String {
    let mut text = String::from("| messages |");
    for unit in ["Mbit/s", "CPU-s per GB"] {
        SIZES.iter().for_each(|size| _ = write!(text, " {unit} {size} B |"));
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: |".repeat(2 * SIZES.len()));
    text.push('\n');
    for (stack, name) in STACKS {
        let _ = write!(text, "| {name} |");
        for figure in [TransferReport::speed, TransferReport::cost] {
            for size in SIZES {
                let found = median(results, (stack, Column::Messages(size)), figure);
                let _ =
                    write!(text, " {} |", formatted(found, if found > Some(20.0) { 0 } else { 2 }));
            }
        }
        text.push('\n');
    }
    text
}

fn round_trip(answer: &TransferReport) -> f64 {
    answer.wall * 1e6 / answer.messages.max(1) as f64
}

fn median_round_trip(results: &Results, stack: Stack) -> Option<f64> {
    median(results, (stack, Column::RoundTrips), round_trip)
}

/// Returns the minimum time of a pair of calls on TCP: other load of the machine only adds to it.
fn tcp(results: &Results, stack: Stack) -> Option<f64> {
    results.get(&(stack, Column::Tcp))?.iter().map(round_trip).reduce(f64::min)
}

/// Returns a table of round trips, and of calls on TCP.
pub(super) fn answers(results: &Results) -> String {
    let cells = |of: fn(&Results, Stack) -> Option<f64>| {
        [Stack::Sockets, Stack::Driver].map(|stack| formatted(of(results, stack), 2))
    };
    let [under, driver] = cells(median_round_trip);
    let [with, without] = cells(tcp);
    format!(
        "| round trips and calls, µs | `eyas sctp run` | reference |\n| --- | ---: | ---: |\n\
         | round trip of a 64 B message; reference: eyas's driver | {under} | {driver} |\n\
         | `sendmsg` and `recvmsg` on TCP; reference: without the library | {with} | {without} |\n"
    )
}

/// Returns a table of concurrent associations.
pub(super) fn concurrent(concurrent: &ConcurrentAssociations) -> String {
    let ConcurrentAssociations { count, wall, accepting, connecting } = concurrent;
    format!(
        "| concurrent associations | set up per second | KiB each, accepting side | KiB each, connecting side |\n\
         | ---: | ---: | ---: | ---: |\n\
         | {count} | {:.0} | {accepting:.1} | {connecting:.1} |\n",
        *count as f64 / wall
    )
}

/// Returns a table of what remains of associations that were opened and closed.
pub(super) fn after_closing(after_closing: &AfterClosing) -> String {
    let mut text = String::from(
        "| opened and closed | descriptors, both processes | resident KiB, both processes |\n\
         | ---: | ---: | ---: |\n",
    );
    for series in 0..2 {
        let count = after_closing.count * (series as u64 + 1);
        let (descriptors, memory) =
            (after_closing.descriptors[series], after_closing.memory[series]);
        let _ = writeln!(text, "| {count} | {descriptors} | {memory:.0} |");
    }
    text
}

/// Returns a table of the targets and whether they are met.
pub(super) fn expectations(
    results: &Results,
    concurrent: &ConcurrentAssociations,
    after_closing: &AfterClosing,
) -> String {
    let mut text = String::from("| target | measured | met |\n| --- | --- | --- |\n");
    let mut row = |target: String, measured: Option<f64>, digits, holds: Holds, of| {
        let verdict = match measured {
            None => "–",
            Some(measured) if holds(measured, of) => "yes",
            Some(_) => "**no**",
        };
        let _ = writeln!(text, "| {target} | {} | {verdict} |", formatted(measured, digits));
    };
    let min: Holds = |measured, of| measured >= of;
    let max: Holds = |measured, of| measured <= of;
    let speed =
        |stack, size| median(results, (stack, Column::Messages(size)), TransferReport::speed);
    let ratio = |ours: Option<f64>, other: Option<f64>| Some(ours? / other?);
    for size in SIZES {
        let ours = speed(Stack::Sockets, size);
        let of = ratio(ours, speed(Stack::Usrsctp, size));
        row(
            format!("{size} B: at least {MIN_OF_USRSCTP} × usrsctp's API"),
            of,
            2,
            min,
            MIN_OF_USRSCTP,
        );
        let of = ratio(ours, speed(Stack::Driver, size));
        row(format!("{size} B: at least {MIN_OF_DRIVER} × the driver"), of, 2, min, MIN_OF_DRIVER);
    }
    let of = ratio(speed(Stack::Iperf, 65_536), speed(Stack::Usrsctp, 65_536));
    row(format!("iperf3: at least {MIN_OF_USRSCTP} × usrsctp's API"), of, 2, min, MIN_OF_USRSCTP);
    let of = ratio(speed(Stack::Iperf, 65_536), speed(Stack::Driver, 65_536));
    row(format!("iperf3: at least {MIN_OF_DRIVER} × the driver"), of, 2, min, MIN_OF_DRIVER);
    let later =
        median_round_trip(results, Stack::Sockets).zip(median_round_trip(results, Stack::Driver));
    let later = later.map(|(ours, driver)| ours - driver);
    row(
        format!("a round trip: at most {MAX_ADDED} µs more than the driver's"),
        later,
        1,
        max,
        MAX_ADDED,
    );
    let count = Some(concurrent.count as f64);
    row(format!("{ASSOCIATIONS} concurrent associations"), count, 0, min, ASSOCIATIONS as f64);
    let rate = Some(concurrent.count as f64 / concurrent.wall);
    row(format!("at least {MIN_RATE} set up per second"), rate, 0, min, MIN_RATE);
    let each = Some(concurrent.accepting.max(concurrent.connecting));
    row(format!("an association: at most {MAX_MEMORY} KiB"), each, 1, max, MAX_MEMORY);
    let more = after_closing.descriptors[1].saturating_sub(after_closing.descriptors[0]);
    row("no more descriptors after as many again".into(), Some(more as f64), 0, max, 0.0);
    let more = after_closing.memory[1] - after_closing.memory[0];
    row(format!("at most {MAX_GROWTH} KiB more after that"), Some(more), 0, max, MAX_GROWTH);
    let slower = ratio(tcp(results, Stack::Sockets), tcp(results, Stack::Driver));
    row(format!("TCP: at most {MAX_SLOWDOWN} × without the library"), slower, 3, max, MAX_SLOWDOWN);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_compared_with_measurements() {
        let answer =
            |bytes| TransferReport { bytes, wall: 1.0, messages: 1, ..TransferReport::default() };
        let mut results = Results::new();
        for (stack, bytes) in [(Stack::Sockets, 5), (Stack::Usrsctp, 1), (Stack::Driver, 10)] {
            results.insert((stack, Column::Messages(1024)), vec![answer(bytes)]);
        }
        let concurrent =
            ConcurrentAssociations { count: 20_000, wall: 10.0, accepting: 12.0, connecting: 17.0 };
        let after_closing =
            AfterClosing { count: 10, descriptors: [20, 21], memory: [1000.0, 1100.0] };
        let text = expectations(&results, &concurrent, &after_closing);
        for line in [
            "| 1024 B: at least 3 × usrsctp's API | 5.00 | yes |",
            "| 1024 B: at least 0.6 × the driver | 0.50 | **no** |",
            "| 16384 B: at least 0.6 × the driver | – | – |",
            "| 20000 concurrent associations | 20000 | yes |",
            "| at least 2000 set up per second | 2000 | yes |",
            "| an association: at most 16 KiB | 17.0 | **no** |",
            "| no more descriptors after as many again | 1 | **no** |",
            "| at most 512 KiB more after that | 100 | yes |",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
