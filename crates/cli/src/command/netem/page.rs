//! The packet counters as tables and as an object.

use eyas_emulator::{
    ByProtocol, DirectionCounters, DropCause, EmulatorCounters, LinkDirection, MiddleboxCounters,
};
use serde_json::{Value, json};

use crate::terminal::{OutputStyle, Paint, PaintedLine, counted, table_of_numbers};

/// The minimum and maximum of the requested width.
const WIDTHS: (usize, usize) = (20, 500);
/// Both directions, their names and their arrows.
const DIRECTIONS: [(LinkDirection, &str, &str, &str); 2] = [
    (LinkDirection::Forward, "forward", "→", "->"),
    (LinkDirection::Backward, "backward", "←", "<-"),
];

/// Returns a table with one line for each direction of each path, the counters of the middleboxes,
/// and warnings below.
pub(super) fn lines(counters: &EmulatorCounters, style: OutputStyle) -> Vec<PaintedLine> {
    let header = ["path", "", "sent", "arrived", "lost", "queue full", "other", "inside"];
    let row = |name: &str, arrow: &str, of: &DirectionCounters| -> Vec<(Paint, String)> {
        let dropped = |cause| of.link.dropped(cause).packets;
        let (lost, full) = (dropped(DropCause::Loss), dropped(DropCause::QueueFull));
        let other = of.link.total_dropped().packets - lost - full + of.unwritten;
        let in_transit = of.queued.packets + of.in_flight.packets;
        let share = |count: u64| match count as f64 / of.link.offered.packets.max(1) as f64 {
            _ if count == 0 => "0".to_owned(),
            share => format!("{count} ({:.2} %)", share * 100.0),
        };
        let plain = |text: String| (Paint::Plain, text);
        vec![
            plain(name.to_owned()),
            plain(arrow.to_owned()),
            plain(of.link.offered.packets.to_string()),
            plain(amount(of.link.delivered.packets, of.link.delivered.bytes)),
            plain(share(lost)),
            plain(share(full)),
            plain(other.to_string()),
            plain(in_transit.to_string()),
        ]
    };
    let rows = counters.paths.iter().flat_map(|path| {
        DIRECTIONS.iter().map(move |(direction, _, arrow, ascii)| {
            let arrow = if style.unicode { arrow } else { ascii };
            row(&path.name, arrow, path.direction(*direction))
        })
    });
    let mut lines = table_of_numbers(&header, rows.collect(), style);
    lines.extend(middleboxes(counters, style));
    let mut warn =
        |text: String| lines.push(PaintedLine::new().with_span(Paint::Warn, format!("  {text}")));
    for path in counters.paths.iter().filter(|path| path.fragments > 0) {
        let fragments = counted(path.fragments, "fragment");
        warn(format!("{}: {fragments} that no middlebox passes", path.name));
    }
    if counters.missed > 0 {
        warn(format!(
            "the emulator was too late for {}, not counted above",
            counted(counters.missed, "packet")
        ));
    }
    if counters.uncaptured > 0 {
        let missing = counted(counters.uncaptured, "packet");
        warn(format!("the disk was too slow: {missing} not captured"));
    }
    lines
}

/// Returns a line for each middlebox, the one nearest to the client first; empty if there are none.
fn middleboxes(counters: &EmulatorCounters, style: OutputStyle) -> Vec<PaintedLine> {
    let row = |path: &str, of: &MiddleboxCounters| -> Vec<(Paint, String)> {
        let packets = &of.packets;
        let rule = if of.rule.is_empty() { String::new() } else { format!(" ({})", of.rule) };
        [
            format!("{path}: {}{rule}", of.kind),
            packets.received.to_string(),
            packets.passed.to_string(),
            by_protocol(&packets.dropped),
            packets.generated.to_string(),
        ]
        .map(|text| (Paint::Plain, text))
        .to_vec()
    };
    let of_path = |path: &'_ eyas_emulator::PathCounters| {
        path.middleboxes.iter().map(|of| row(&path.name, of)).collect::<Vec<_>>()
    };
    let rows: Vec<_> = counters.paths.iter().flat_map(of_path).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![PaintedLine::new()];
    let header = ["middlebox", "received", "passed", "dropped", "own"];
    lines.extend(table_of_numbers(&header, rows, style));
    lines
}

/// Formats the total and the protocols: `12 (9 udp, 3 sctp)`.
fn by_protocol(dropped: &ByProtocol) -> String {
    let each = dropped.each().into_iter().filter(|(_, count)| *count > 0);
    let each: Vec<String> = each.map(|(name, count)| format!("{count} {name}")).collect();
    match each.is_empty() {
        true => "0".to_owned(),
        false => format!("{} ({})", dropped.total(), each.join(", ")),
    }
}

fn amount(packets: u64, bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e4 => format!("{packets} ({bytes} B)"),
        bytes if bytes < 1e6 => format!("{packets} ({:.0} kB)", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{packets} ({:.1} MB)", bytes / 1e6),
        bytes => format!("{packets} ({:.1} GB)", bytes / 1e9),
    }
}

/// Returns the response to `show`: the tables as text with the requested width, and the object.
pub(super) fn answer(counters: &EmulatorCounters, unicode: bool, width: usize) -> Value {
    let style = OutputStyle { colour: false, unicode, width: width.clamp(WIDTHS.0, WIDTHS.1) };
    let text: Vec<String> =
        lines(counters, style).iter().map(|line| line.to_text(style.colour)).collect();
    json!({ "table": text, "object": object(counters) })
}

/// Returns all counters as an object.
pub(super) fn object(counters: &EmulatorCounters) -> Value {
    let direction = |of: &DirectionCounters| {
        let count = |count: eyas_emulator::PacketCount| json!({ "packets": count.packets, "bytes": count.bytes });
        let dropped: serde_json::Map<String, Value> = DropCause::ALL
            .iter()
            .map(|cause| (cause.text().replace(' ', "_"), count(of.link.dropped(*cause))))
            .collect();
        json!({
            "up": of.is_up,
            "offered": count(of.link.offered),
            "sent": count(of.link.sent),
            "delivered": count(of.link.delivered),
            "duplicated": count(of.link.duplicated),
            "marked": count(of.link.marked),
            "late": count(of.link.late),
            "dropped": dropped,
            "queued": count(of.queued),
            "in_flight": count(of.in_flight),
            "unwritten": of.unwritten,
        })
    };
    let paths = counters.paths.iter().map(|path| {
        let middleboxes = path.middleboxes.iter().map(|of| {
            let dropped: serde_json::Map<String, Value> = of
                .packets
                .dropped
                .each()
                .into_iter()
                .map(|(protocol, count)| (protocol.to_owned(), count.into()))
                .collect();
            json!({
                "kind": of.kind, "rule": of.rule,
                "received": of.packets.received, "passed": of.packets.passed,
                "dropped": of.packets.dropped.total(), "dropped_by_protocol": dropped,
                "made": of.packets.generated, "entries": of.entries,
            })
        });
        let mut object = json!({ "name": path.name });
        for (way, name, ..) in DIRECTIONS {
            object[name] = direction(path.direction(way));
        }
        object["middleboxes"] = middleboxes.collect();
        object["fragments_dropped"] = path.fragments.into();
        object
    });
    json!({
        "seconds": counters.time.as_secs_f64(),
        "paths": paths.collect::<Vec<_>>(),
        "missed": counters.missed,
        "uncaptured": counters.uncaptured,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use eyas_emulator::{LinkConfig, MiddleboxCounters, PathCounters};

    use super::*;

    fn counters(packets: u64) -> EmulatorCounters {
        let direction = || {
            let mut link = eyas_emulator::LinkCounters::default();
            link.offered.packets = packets;
            link.delivered.packets = packets;
            link.delivered.bytes = packets * 1500;
            DirectionCounters {
                config: LinkConfig::default(),
                queued: Default::default(),
                in_flight: Default::default(),
                link,
                is_up: true,
                unwritten: 0,
            }
        };
        let empty = || MiddleboxCounters {
            kind: "firewall",
            rule: "drops udp, sctp".to_owned(),
            packets: Default::default(),
            entries: 0,
            busy: Duration::ZERO,
        };
        let mut firewall = empty();
        firewall.packets.received = packets;
        firewall.packets.passed = packets - 12;
        firewall.packets.dropped = ByProtocol { udp: 9, sctp: 3, ..Default::default() };
        let nat = MiddleboxCounters { kind: "nat", rule: String::new(), ..empty() };
        let path = |name: &str, middleboxes| PathCounters {
            name: name.to_owned(),
            forward: direction(),
            backward: direction(),
            middleboxes,
            fragments: 0,
        };
        let paths =
            vec![path("wifi", vec![nat, firewall]), path("the-line-of-the-neighbours", vec![])];
        EmulatorCounters { time: Duration::from_secs(1), paths, missed: 0, uncaptured: 0 }
    }

    fn rendered(packets: u64, unicode: bool) -> Vec<String> {
        let style = OutputStyle { colour: false, unicode, width: 80 };
        lines(&counters(packets), style).iter().map(|line| line.to_text(false)).collect()
    }

    #[test]
    fn middleboxes_report_what_they_dropped() {
        insta::assert_snapshot!(rendered(120, false).join("\n"));
    }

    #[test]
    fn the_tables_fit_on_a_screen() {
        for unicode in [false, true] {
            for line in rendered(12_345_678, unicode) {
                assert!(line.chars().count() <= 80, "{line}");
                assert!(unicode || line.is_ascii(), "{line}");
            }
        }
    }

    #[test]
    fn names_of_paths_are_whole() {
        for packets in [120, 12_345_678] {
            let lines = rendered(packets, true);
            for name in ["wifi", "the-line-of-the-neighbours"] {
                assert!(lines.iter().any(|line| line.contains(name)), "{name}: {lines:#?}");
            }
        }
    }

    /// However long a name may be, no line of 80 columns breaks it.
    #[test]
    fn no_name_is_broken() {
        for length in 1..=32 {
            let name = "abcdefghijklmnopqrstuvwxyz-1.2_3"[..length].to_owned();
            for (packets, unicode) in [(0, false), (0, true), (123_456_789, false), (99, true)] {
                let mut counters = counters(packets.max(12));
                counters.paths[0].name.clone_from(&name);
                let style = OutputStyle { colour: false, unicode, width: 80 };
                let lines: Vec<String> =
                    lines(&counters, style).iter().map(|line| line.to_text(false)).collect();
                let has = |text: &str| lines.iter().any(|line| line.contains(text));
                assert!(has(&name) && has(&format!("{name}:")), "{lines:#?}");
                assert!(has("the-line-of-the-neighbours"), "{lines:#?}");
                assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
            }
        }
    }

    #[test]
    fn the_object_counts_by_protocol() {
        let object = object(&counters(120));
        let firewall = &object["paths"][0]["middleboxes"][1];
        assert_eq!(
            (&firewall["kind"], &firewall["rule"]),
            (&"firewall".into(), &"drops udp, sctp".into())
        );
        assert_eq!((&firewall["dropped"], &firewall["passed"]), (&12.into(), &108.into()));
        assert_eq!(firewall["dropped_by_protocol"]["sctp"], 3);
    }
}
