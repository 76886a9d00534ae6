//! Whether the target ratios hold.

use super::programs::{CHANNEL, DCSCTP, Link, WITH_BBR};
use super::tables::median;
use super::{Column, Results};
use crate::statistics::middle;
use crate::transfer::TransferReport;
use crate::verdict::{self, Bound};

const RIVALS: [&str; 4] = ["rtc-sctp", "dcsctp", "usrsctp", "pion"];
/// The maximum memory of an idle association, in bytes.
const IDLE: f64 = 4096.0;
/// The minimum share of the link for the BBR-class controller.
const SHARE: f64 = 0.85;
/// The minimum share of a data channel, relative to dcsctp.
const CHANNEL_RATIO: f64 = 2.0;

/// A target ratio: a figure of eyas relative to that of rivals.
struct Expectation {
    text: &'static str,
    column: Column,
    figure: fn(&TransferReport) -> f64,
    /// The best of these counts.
    rivals: &'static [&'static str],
    bound: Bound,
}

const EXPECTATIONS: [Expectation; 7] = [
    Expectation {
        text: "memory, 1 KiB: at most 0.5 × the CPU of rtc-sctp",
        column: Column::Memory(1024),
        figure: TransferReport::cost,
        rivals: &["rtc-sctp"],
        bound: Bound::AtMost(0.5),
    },
    Expectation {
        text: "memory, 64 KiB: at most 0.5 × the CPU of rtc-sctp",
        column: Column::Memory(65_536),
        figure: TransferReport::cost,
        rivals: &["rtc-sctp"],
        bound: Bound::AtMost(0.5),
    },
    Expectation {
        text: "memory, 64 B: at least 2 × the messages of rtc-sctp",
        column: Column::Memory(64),
        figure: TransferReport::rate,
        rivals: &["rtc-sctp"],
        bound: Bound::AtLeast(2.0),
    },
    Expectation {
        text: "UDP, 64 KiB: at least 4 × the Mbit/s of rtc-sctp",
        column: Column::Udp(65_536),
        figure: TransferReport::speed,
        rivals: &["rtc-sctp"],
        bound: Bound::AtLeast(4.0),
    },
    Expectation {
        text: "UDP, 64 KiB: at least 10 × the Mbit/s of usrsctp",
        column: Column::Udp(65_536),
        figure: TransferReport::speed,
        rivals: &["usrsctp"],
        bound: Bound::AtLeast(10.0),
    },
    Expectation {
        text: "UDP, 1,452 B: at least 4 × the Mbit/s of the best rival",
        column: Column::Udp(1452),
        figure: TransferReport::speed,
        rivals: &RIVALS,
        bound: Bound::AtLeast(4.0),
    },
    Expectation {
        text: "at least 5 × the associations of usrsctp",
        column: Column::Associations,
        figure: TransferReport::rate,
        rivals: &["usrsctp"],
        bound: Bound::AtLeast(5.0),
    },
];

/// Returns a table of the targets with their outcomes.
pub(super) fn text(results: &Results, links: &[Link]) -> String {
    let mut expectations: Vec<verdict::Expectation> = Vec::new();
    let mut add = |target: &str, measured: Option<f64>, shown: fn(f64) -> String, bound: Bound| {
        let measured = measured.map(|measured| (shown(measured), bound.holds(measured)));
        expectations.push(verdict::Expectation { target: target.to_owned(), measured });
    };
    let plain = |figure: f64| format!("{figure:.2}");
    for expectation in &EXPECTATIONS {
        add(expectation.text, ratio(results, expectation), plain, expectation.bound);
    }
    let idle = median(results, "eyas", Column::Associations, |answer| answer.memory / 2.0);
    let bytes = |bytes: f64| format!("{bytes:.0} bytes");
    add("idle association: at most 4 KiB", idle, bytes, Bound::AtMost(IDLE));
    let share_of = |name| links.iter().find(|link| link.name == name).map(|link| link.share);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let target = "long link: at least 85 % with BBR";
    add(target, share_of(WITH_BBR), percent, Bound::AtLeast(SHARE));
    let ratio = share_of(CHANNEL).zip(share_of(DCSCTP)).map(|(ours, theirs)| ours / theirs);
    let target = "long link: a data channel has at least 2 × the share of dcsctp";
    add(target, ratio, plain, Bound::AtLeast(CHANNEL_RATIO));
    verdict::table(&expectations)
}

/// Returns the median of the ratios within each round.
fn ratio(results: &Results, expectation: &Expectation) -> Option<f64> {
    let ours = results.get(&("eyas", expectation.column))?;
    let mut ratios = Vec::new();
    for (round, ours) in ours.iter().enumerate() {
        let figures = expectation.rivals.iter().filter_map(|name| {
            let runs = results.get(&(*name, expectation.column))?;
            runs.get(round)?.as_ref().map(expectation.figure)
        });
        let best = match expectation.bound {
            Bound::AtMost(_) => figures.fold(f64::INFINITY, f64::min),
            Bound::AtLeast(_) => figures.fold(0.0, f64::max),
        };
        if let Some(ours) = ours
            && best > 0.0
            && best.is_finite()
        {
            ratios.push((expectation.figure)(ours) / best);
        }
    }
    middle(&mut ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_round() {
        let runs = |speeds: &[f64]| {
            let one = |speed: &f64| {
                Some(TransferReport {
                    bytes: 125_000,
                    wall: 1.0 / speed,
                    cpu: 1.0,
                    ..TransferReport::default()
                })
            };
            speeds.iter().map(one).collect::<Vec<_>>()
        };
        let mut results = Results::new();
        results.insert(("eyas", Column::Udp(65_536)), runs(&[40.0, 80.0, 9.0]));
        results.insert(("rtc-sctp", Column::Udp(65_536)), runs(&[10.0, 20.0, 3.0]));
        results.insert(("usrsctp", Column::Udp(65_536)), runs(&[10.0, 20.0, 3.0]));
        let text = text(
            &results,
            &[
                Link { name: WITH_BBR, share: 0.9 },
                Link { name: CHANNEL, share: 0.9 },
                Link { name: DCSCTP, share: 0.5 },
            ],
        );
        assert!(text.contains("the Mbit/s of rtc-sctp | 4.00 | yes |"));
        assert!(text.contains("the Mbit/s of usrsctp | 4.00 | **no** |"));
        assert!(text.contains("4 KiB | – | not measured |"));
        assert!(text.contains("BBR | 90.0 % | yes |"));
        assert!(text.contains("the share of dcsctp | 1.80 | **no** |"));
    }
}
