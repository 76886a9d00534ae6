//! `eyas sctp status`: sockets, associations and their paths.

use std::path::Path;
use std::time::Duration;

use eyas_supervisor::{AskError, SupervisorAddress};

use super::join::join_failure;
use super::serve::carrier_text;
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, SctpStatusFlags};
use crate::output;
use crate::shape::sctp::{
    AssociationShape, CountersShape, SctpStatusShape, SocketShape, StyleShape, SupervisorShape,
};
use crate::shape::value;
use crate::terminal::{OutputStyle, Paint, PaintedLine, count, table, time, wrapped};

/// Queries supervisors, and prints their state.
pub(super) fn run(flags: &SctpStatusFlags, common: &CommonFlags) -> Result<(), Failure> {
    let supervisors = match (&flags.socket, SupervisorAddress::from_this_process()) {
        (Some(path), _) => {
            let status = SupervisorAddress::from_path(path).status();
            vec![read(&status.map_err(|cause| join_failure(path, &cause))?)?]
        }
        (None, Some(address)) => {
            let path = address.value();
            let status =
                address.status().map_err(|cause| join_failure(Path::new(&path), &cause))?;
            vec![read(&status)?]
        }
        (None, None) => all(common)?,
    };
    let status = SctpStatusShape { supervisors };
    match common.json {
        true => output::object(&value(&status)),
        false => {
            let style = OutputStyle::of_stdout(common.color);
            output::page(&page(&status, style), style)
        }
    }
}

fn read(status: &[u8]) -> Result<SupervisorShape, Failure> {
    SupervisorShape::read(status).map_err(|cause| {
        Failure::new(FailureKind::Protocol, format!("its status cannot be parsed: {cause}"))
            .hint("use the same version of eyas on both sides")
    })
}

/// Returns the supervisors of this user; of others only their existence is known.
fn all(common: &CommonFlags) -> Result<Vec<SupervisorShape>, Failure> {
    let listed =
        SupervisorAddress::all().map_err(|cause| Failure::read("/proc/net/unix", &cause))?;
    let mut found = Vec::new();
    for address in listed {
        match address.status() {
            Ok(status) => found.push(read(&status)?),
            Err(AskError::OtherVersion) => {
                let line = PaintedLine::new()
                    .with_span(Paint::Warn, "one of another version is running, too");
                output::print_to_stderr(&[line], OutputStyle::of_stderr(common.color));
            }
            Err(AskError::Unreached(_) | AskError::Silent(_)) => {}
        }
    }
    found.sort_by_key(|supervisor: &SupervisorShape| supervisor.process);
    Ok(found)
}

fn page(status: &SctpStatusShape, style: OutputStyle) -> Vec<PaintedLine> {
    if status.supervisors.is_empty() {
        let text = "this user serves no SCTP sockets in this network namespace";
        return vec![PaintedLine::new().with_span(Paint::Plain, text)];
    }
    let mut lines = Vec::new();
    for shape in &status.supervisors {
        if !lines.is_empty() {
            lines.push(PaintedLine::new());
        }
        lines.extend(supervisor(shape, style));
    }
    lines
}

fn supervisor(shape: &SupervisorShape, style: OutputStyle) -> Vec<PaintedLine> {
    let mut lines = wrapped(Paint::Head, &format!("{}: {}", shape.process, shape.serves), 0, style);
    let mut summary = carrier_text(&shape.carrier, shape.udp_port);
    summary += &format!(", for {}", time(Duration::from_secs_f64(shape.up_ms / 1e3)));
    if shape.multipath {
        summary += ", on all paths at once";
    }
    summary += &counters_text(&shape.counters);
    lines.extend(wrapped(Paint::Dim, &summary, 2, style));
    for option in &shape.unknown_options {
        let text = format!(
            "option {} of level {} is not supported; requests: {}",
            option.name, option.level, option.count
        );
        lines.extend(wrapped(Paint::Warn, &text, 2, style));
    }
    if !shape.sockets.is_empty() {
        lines.push(PaintedLine::new());
        let header = ["SOCKET", "KIND", "STATE", "PORT", "WAITING", "POLL", "ADDRESSES"];
        lines.extend(table(&header, shape.sockets.iter().map(socket).collect(), style));
    }
    if !shape.associations.is_empty() {
        lines.push(PaintedLine::new());
        let header = ["ASSOC", "SOCKET", "STATE", "PORTS", "UNACKED", "WINDOWS"];
        lines.extend(table(&header, shape.associations.iter().map(association).collect(), style));
        lines.push(PaintedLine::new());
        let header = ["ASSOC", "PATH TO", "STATE", "RTT", "WINDOW", "SENT"];
        lines.extend(table(&header, shape.associations.iter().flat_map(paths).collect(), style));
    }
    lines
}

/// Describes the counters that are not zero.
fn counters_text(counters: &CountersShape) -> String {
    let all = [
        (counters.associations, "associations so far"),
        (counters.packets_in, "packets in"),
        (counters.packets_out, "packets out"),
        (counters.retransmissions, "chunks retransmitted"),
        (counters.duplicate_data, "duplicate chunks"),
        (counters.out_of_the_blue, "packets without an association"),
        (counters.packets_for_others, "packets for other ports"),
        (counters.broken_packets, "broken packets"),
        (counters.bad_tags, "packets with a wrong tag"),
    ];
    let nonzero = all.iter().filter(|(number, _)| *number > 0);
    nonzero.map(|(number, what)| format!("; {what}: {}", count(*number))).collect()
}

fn socket(socket: &SocketShape) -> Vec<(Paint, String)> {
    let kind = match socket.style {
        StyleShape::OneToOne => "1 to 1",
        StyleShape::OneToMany => "1 to n",
    };
    let addresses = match socket.addresses.is_empty() {
        true if socket.port != 0 => "all".to_owned(),
        _ => socket.addresses.join(" "),
    };
    let waiting = match socket.state == "listening" && socket.style == StyleShape::OneToOne {
        true => format!("{} to accept", socket.backlog),
        false => format!("{} B", socket.queued),
    };
    let port = if socket.port == 0 { String::new() } else { socket.port.to_string() };
    let cells = [&socket.id.to_string(), kind, &socket.state, &port, &waiting, &socket.readiness];
    let cells = cells.map(ToOwned::to_owned).into_iter().chain([addresses]);
    cells.map(|text| (Paint::Plain, text)).collect()
}

fn association(shape: &AssociationShape) -> Vec<(Paint, String)> {
    let paint = if shape.state == "ESTABLISHED" { Paint::Good } else { Paint::Plain };
    let plain = |text: String| (Paint::Plain, text);
    vec![
        plain(shape.id.to_string()),
        plain(shape.socket.map_or("closed".to_owned(), |socket| socket.to_string())),
        (paint, shape.state.clone()),
        plain(format!("{}→{}", shape.local_port, shape.remote_port)),
        plain(shape.send_queue.to_string()),
        plain(format!("{} {}", shape.peer_window, shape.window)),
    ]
}

fn paths(association: &AssociationShape) -> impl Iterator<Item = Vec<(Paint, String)>> {
    let millis = |millis: f64| time(Duration::from_secs_f64(millis.max(0.0) / 1e3));
    association.paths.iter().map(move |path| {
        let paint = if path.state == "active" { Paint::Good } else { Paint::Warn };
        let mark = if path.primary && association.paths.len() > 1 { ", primary" } else { "" };
        let state = format!("{}{mark}", path.state);
        let remote = path.remote.strip_suffix(":0").unwrap_or(&path.remote);
        let plain = |text: String| (Paint::Plain, text);
        vec![
            plain(association.id.to_string()),
            plain(remote.to_owned()),
            (paint, state),
            plain(path.smoothed_rtt_ms.map_or(String::new(), millis)),
            plain(path.congestion_window.to_string()),
            plain(path.outstanding.to_string()),
        ]
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> Vec<u8> {
        let path = |remote: &str, state: &str, primary: bool, rtt: Option<f64>| {
            json!({
                "remote": remote, "local": null, "state": state, "primary": primary,
                "congestion_window": 4_380, "outstanding": 1_200, "smoothed_rtt_ms": rtt,
                "rto_ms": 1_000.0, "mtu": 1_400,
            })
        };
        let paths = [
            path("192.0.2.1:9899", "active", true, Some(0.412_345)),
            path("[2001:db8::1]:9899", "potentially failed", false, None),
        ];
        let object = json!({
            "process": 4_711, "version": "0.1.0", "serves": "iperf3 -s", "carrier": "udp",
            "udp_port": 9_899, "peer_udp_port": 9_899, "multipath": false,
            "addresses": ["192.0.2.7"], "up_ms": 3_000.0,
            "sockets": [
                { "id": 1, "domain": "Inet6", "style": "OneToOne", "state": "listening", "port": 5_201,
                  "addresses": [], "associations": [], "backlog": 1, "queued": 0, "readiness": "IN" },
                { "id": 2, "domain": "Inet6", "style": "OneToOne", "state": "connected",
                  "port": 5_201, "addresses": ["192.0.2.7", "2001:db8::7"], "associations": [3],
                  "backlog": 0, "queued": 20, "readiness": "IN|OUT" },
            ],
            "associations": [
                { "id": 3, "socket": 2, "state": "ESTABLISHED", "local_port": 5_201,
                  "remote_port": 40_001, "outbound_streams": 10, "inbound_streams": 10,
                  "peer_window": 212_992, "window": 212_992, "send_queue": 64_000, "paths": paths },
            ],
            "counters": {
                "packets_in": 12_345, "packets_out": 9, "packets_for_others": 0,
                "out_of_the_blue": 0, "broken_packets": 0, "bad_tags": 0, "retransmissions": 2,
                "duplicate_data": 0, "associations": 1,
            },
            "unknown_options": [{ "level": 132, "name": 200, "count": 3 }],
        });
        serde_json::to_vec(&object).unwrap()
    }

    #[test]
    fn a_page_fits_eighty_columns() {
        let style = OutputStyle { colour: false, unicode: true, width: 80 };
        let supervisors = vec![SupervisorShape::read(&status()).unwrap()];
        let lines = page(&SctpStatusShape { supervisors }, style);
        let text: Vec<String> = lines.iter().map(|line| line.to_text(false)).collect();
        assert!(text.iter().all(|line| line.chars().count() <= 80), "{}", text.join("\n"));
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn objects_use_the_usual_names() {
        let object = value(&SupervisorShape::read(&status()).unwrap());
        assert_eq!(object["sockets"][0]["style"], "one-to-one");
        assert_eq!(object["sockets"][0]["domain"], "ipv6");
        let paths = &object["associations"][0]["paths"];
        assert_eq!(paths[1]["state"], "potentially-failed");
        assert_eq!(paths[0]["smoothed_rtt_ms"], 0.412);
    }

    #[test]
    fn an_empty_list_is_a_sentence() {
        let style = OutputStyle { colour: false, unicode: true, width: 80 };
        let lines = page(&SctpStatusShape::default(), style);
        assert!(lines[0].to_text(false).starts_with("this user serves no SCTP sockets"));
    }
}
