//! What became of the packets, as a table and as an object.

use eyas_lab::emulator::{Counters, Direction, DirectionCounters, DropCause};
use serde_json::{Value, json};

use crate::terminal::{Line, Look, Paint, table};

/// Columns of the table that a run sends to who asks.
const WIDTH: usize = 100;
/// Both directions, their names and their arrows.
const DIRECTIONS: [(Direction, &str, &str, &str); 2] =
    [(Direction::Forward, "forward", "→", "->"), (Direction::Backward, "backward", "←", "<-")];

/// A table: one line for each direction of each path, and what deserves a look below.
pub(super) fn lines(counters: &Counters, look: Look) -> Vec<Line> {
    let header = ["path", "", "sent", "arrived", "lost", "queue full", "other", "inside"];
    let row = |name: &str, arrow: &str, of: &DirectionCounters| -> Vec<(Paint, String)> {
        let dropped = |cause| of.link.dropped(cause).packets;
        let (lost, full) = (dropped(DropCause::Loss), dropped(DropCause::QueueFull));
        let other = of.link.dropped_in_all().packets - lost - full + of.unwritten;
        let way = of.queued.packets + of.in_flight.packets;
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
            plain(way.to_string()),
        ]
    };
    let rows = counters.paths.iter().flat_map(|path| {
        DIRECTIONS.iter().map(move |(direction, _, arrow, ascii)| {
            let arrow = if look.unicode { arrow } else { ascii };
            row(&path.name, arrow, path.direction(*direction))
        })
    });
    let mut lines = table(&header, rows.collect(), look);
    let mut warn = |text: String| lines.push(Line::new().with(Paint::Warn, format!("  {text}")));
    if counters.missed > 0 {
        warn(format!(
            "the emulator came too late for {} packets, which are counted nowhere above",
            counters.missed
        ));
    }
    if counters.uncaptured > 0 {
        warn(format!("the disk was too slow: {} packets not captured", counters.uncaptured));
    }
    lines
}

fn amount(packets: u64, bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e4 => format!("{packets} ({bytes} B)"),
        bytes if bytes < 1e6 => format!("{packets} ({:.0} kB)", bytes / 1e3),
        bytes => format!("{packets} ({:.1} MB)", bytes / 1e6),
    }
}

/// What `show` gets: the table as text, and the object.
pub(super) fn answer(counters: &Counters) -> Value {
    let look = Look { colour: false, unicode: true, width: WIDTH };
    let text: Vec<String> =
        lines(counters, look).iter().map(|line| line.to_text(look.colour)).collect();
    json!({ "table": text, "object": object(counters) })
}

/// The same as an object, with everything that is counted.
pub(super) fn object(counters: &Counters) -> Value {
    let direction = |of: &DirectionCounters| {
        let count = |count: eyas_lab::emulator::Count| json!({ "packets": count.packets, "bytes": count.bytes });
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
            json!({
                "received": of.received, "passed": of.passed,
                "dropped": of.dropped, "made": of.made,
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
