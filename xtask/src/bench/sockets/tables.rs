//! What was measured, as tables, and whether what we want holds.

use std::fmt::Write as _;

use super::super::sctp::run::Answer;
use super::super::sctp::tables::middle;
use super::run::{Kept, Many};
use super::{AT_ONCE, Column, Results, SIZES, Way};

/// The ways that carry messages, as the tables call them.
const WAYS: [(Way, &str); 4] = [
    (Way::Sockets, "in C, `eyas sctp run`"),
    (Way::Iperf, "iperf3, `eyas sctp run`"),
    (Way::Usrsctp, "usrsctp's API"),
    (Way::Driver, "eyas, driver"),
];
/// What we want of the ratios, of a round trip (microseconds more), of associations and of TCP.
const OVER_USRSCTP: f64 = 3.0;
const OF_DRIVER: f64 = 0.6;
const LATER: f64 = 30.0;
const A_SECOND: f64 = 2000.0;
const EACH: f64 = 16.0;
const SLOWER: f64 = 1.02;
/// Memory may differ by so much and be flat, in KiB: pages that an allocator keeps.
const FLAT: f64 = 512.0;

/// Whether what was seen is as it was wanted.
type Holds = fn(f64, f64) -> bool;

/// The median of a figure.
fn median(results: &Results, key: (Way, Column), figure: fn(&Answer) -> f64) -> Option<f64> {
    middle(&mut results.get(&key)?.iter().map(figure).collect::<Vec<_>>())
}

fn shown(figure: Option<f64>, digits: usize) -> String {
    figure.map_or("–".into(), |figure| format!("{figure:.digits$}"))
}

/// Mbit/s of messages, and CPU-seconds of all processes.
pub(super) fn messages(results: &Results) -> String {
    let mut text = String::from("| |");
    for unit in ["Mbit/s", "CPU-s per GB"] {
        SIZES.iter().for_each(|size| _ = write!(text, " {unit} {size} B |"));
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: |".repeat(2 * SIZES.len()));
    text.push('\n');
    for (way, name) in WAYS {
        let _ = write!(text, "| {name} |");
        for figure in [Answer::speed, Answer::cost] {
            for size in SIZES {
                let found = median(results, (way, Column::Messages(size)), figure);
                let _ = write!(text, " {} |", shown(found, if found > Some(20.0) { 0 } else { 2 }));
            }
        }
        text.push('\n');
    }
    text
}

fn round_trip(answer: &Answer) -> f64 {
    answer.wall * 1e6 / answer.messages.max(1) as f64
}

fn trip(results: &Results, way: Way) -> Option<f64> {
    median(results, (way, Column::Asked), round_trip)
}

/// The least time of a pair of calls on TCP: what else the machine does only adds.
fn tcp(results: &Results, way: Way) -> Option<f64> {
    results.get(&(way, Column::Tcp))?.iter().map(round_trip).reduce(f64::min)
}

/// Round trips, and calls on TCP.
pub(super) fn answers(results: &Results) -> String {
    let cells = |of: fn(&Results, Way) -> Option<f64>| {
        [Way::Sockets, Way::Driver].map(|way| shown(of(results, way), 2))
    };
    let [under, driver] = cells(trip);
    let [with, without] = cells(tcp);
    format!(
        "| µs | `eyas sctp run` | reference |\n| --- | ---: | ---: |\n\
         | round trip of a 64 B message; reference: eyas's driver | {under} | {driver} |\n\
         | `sendmsg` and `recvmsg` on TCP; reference: without the library | {with} | {without} |\n"
    )
}

/// Associations that were there at once.
pub(super) fn many(many: &Many) -> String {
    let Many { count, wall, accepting, connecting } = many;
    format!(
        "| concurrent associations | set up per second | KiB each, accepting side | KiB each, connecting side |\n\
         | ---: | ---: | ---: | ---: |\n\
         | {count} | {:.0} | {accepting:.1} | {connecting:.1} |\n",
        *count as f64 / wall
    )
}

/// What is left of associations that were opened and closed.
pub(super) fn kept(kept: &Kept) -> String {
    let mut text = String::from(
        "| opened and closed | descriptors, both processes | resident KiB, both processes |\n\
         | ---: | ---: | ---: |\n",
    );
    for series in 0..2 {
        let count = kept.count * (series as u64 + 1);
        let (descriptors, memory) = (kept.descriptors[series], kept.memory[series]);
        let _ = writeln!(text, "| {count} | {descriptors} | {memory:.0} |");
    }
    text
}

/// What we want, and whether it holds.
pub(super) fn expectations(results: &Results, many: &Many, kept: &Kept) -> String {
    let mut text = String::from("| target | measured | met |\n| --- | --- | --- |\n");
    let mut expectation = |wanted: String, seen: Option<f64>, digits, holds: Holds, of| {
        let verdict = match seen {
            None => "–",
            Some(seen) if holds(seen, of) => "yes",
            Some(_) => "**no**",
        };
        let _ = writeln!(text, "| {wanted} | {} | {verdict} |", shown(seen, digits));
    };
    let least: Holds = |seen, of| seen >= of;
    let most: Holds = |seen, of| seen <= of;
    let speed = |way, size| median(results, (way, Column::Messages(size)), Answer::speed);
    let ratio = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
    for size in SIZES {
        let ours = speed(Way::Sockets, size);
        let of = ratio(ours, speed(Way::Usrsctp, size));
        expectation(
            format!("{size} B: at least {OVER_USRSCTP} × usrsctp's API"),
            of,
            2,
            least,
            OVER_USRSCTP,
        );
        let of = ratio(ours, speed(Way::Driver, size));
        expectation(
            format!("{size} B: at least {OF_DRIVER} × the driver"),
            of,
            2,
            least,
            OF_DRIVER,
        );
    }
    let of = ratio(speed(Way::Iperf, 65_536), speed(Way::Usrsctp, 65_536));
    expectation(
        format!("iperf3: at least {OVER_USRSCTP} × usrsctp's API"),
        of,
        2,
        least,
        OVER_USRSCTP,
    );
    let of = ratio(speed(Way::Iperf, 65_536), speed(Way::Driver, 65_536));
    expectation(format!("iperf3: at least {OF_DRIVER} × the driver"), of, 2, least, OF_DRIVER);
    let later = trip(results, Way::Sockets).zip(trip(results, Way::Driver));
    let later = later.map(|(ours, driver)| ours - driver);
    expectation(
        format!("a round trip: at most {LATER} µs more than the driver's"),
        later,
        1,
        most,
        LATER,
    );
    let count = Some(many.count as f64);
    expectation(format!("{AT_ONCE} concurrent associations"), count, 0, least, AT_ONCE as f64);
    let rate = Some(many.count as f64 / many.wall);
    expectation(format!("at least {A_SECOND} set up per second"), rate, 0, least, A_SECOND);
    let each = Some(many.accepting.max(many.connecting));
    expectation(format!("an association: at most {EACH} KiB"), each, 1, most, EACH);
    let more = kept.descriptors[1].saturating_sub(kept.descriptors[0]);
    expectation("no more descriptors after as many again".into(), Some(more as f64), 0, most, 0.0);
    let more = kept.memory[1] - kept.memory[0];
    expectation(format!("at most {FLAT} KiB more after that"), Some(more), 0, most, FLAT);
    let slower = ratio(tcp(results, Way::Sockets), tcp(results, Way::Driver));
    expectation(format!("TCP: at most {SLOWER} × without the library"), slower, 3, most, SLOWER);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_compared_with_measurements() {
        let answer = |bytes| Answer { bytes, wall: 1.0, messages: 1, ..Answer::default() };
        let mut results = Results::new();
        for (way, bytes) in [(Way::Sockets, 5), (Way::Usrsctp, 1), (Way::Driver, 10)] {
            results.insert((way, Column::Messages(1024)), vec![answer(bytes)]);
        }
        let many = Many { count: 20_000, wall: 10.0, accepting: 12.0, connecting: 17.0 };
        let kept = Kept { count: 10, descriptors: [20, 21], memory: [1000.0, 1100.0] };
        let text = expectations(&results, &many, &kept);
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
