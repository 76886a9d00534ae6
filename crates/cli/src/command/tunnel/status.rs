//! `eyas tunnel status`: the tunnels of this user, their paths and their traffic.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::control;
use crate::failure::Failure;
use crate::flags::{CommonFlags, TunnelStatusFlags};
use crate::output;
use crate::shape::tunnel::{
    ChannelShape, PacketsShape, TunnelPathShape, TunnelSessionShape, TunnelShape, TunnelStatusShape,
};
use crate::shape::value;
use crate::terminal::{OutputStyle, Paint, PaintedLine, table, time, wrapped};

/// The time between the two readings from which a rate is computed.
const RATE_INTERVAL: Duration = Duration::from_millis(500);
/// The interval between two updates.
const TICK: Duration = Duration::from_secs(1);

/// Shows the tunnels, with periodic updates on a terminal.
pub(super) async fn run(flags: &TunnelStatusFlags, common: &CommonFlags) -> Result<(), Failure> {
    let style = OutputStyle::of_stdout(common.color);
    let mut snapshot = StatusSnapshot::first()?;
    let has_cursor = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    if common.json || flags.once || !has_cursor || !io::stdout().is_terminal() {
        if !snapshot.tunnels.is_empty() {
            sleep(RATE_INTERVAL).await;
            snapshot = snapshot.next()?;
        }
        let status = TunnelStatusShape { tunnels: snapshot.tunnels };
        return match common.json {
            true => output::object(&value(&status)),
            false => output::page(&page(&status, style), style),
        };
    }
    let mut interruption = crate::command::listen()?;
    let mut height = 0;
    loop {
        let status = TunnelStatusShape { tunnels: snapshot.tunnels.clone() };
        height = redraw(page(&status, style), height, style)?;
        tokio::select! {
            () = sleep(TICK) => {}
            _ = interruption.next() => return Ok(()),
        }
        snapshot = snapshot.next()?;
    }
}

/// The state at one moment.
struct StatusSnapshot {
    tunnels: Vec<TunnelShape>,
    at: Instant,
}

impl StatusSnapshot {
    fn first() -> Result<Self, Failure> {
        let at = Instant::now();
        let read = control::all();
        let tunnels = read.map_err(|cause| Failure::read("the sockets of tunnels", &cause))?;
        Ok(Self { tunnels, at })
    }

    /// Returns the current state, with rates.
    fn next(&self) -> Result<Self, Failure> {
        let mut now = Self::first()?;
        for tunnel in &mut now.tunnels {
            let previous = self.tunnels.iter().find(|shape| shape.process == tunnel.process);
            if let Some(previous) = previous {
                tunnel.compare(previous, now.at - self.at);
            }
        }
        Ok(now)
    }
}

/// Redraws over the previous output, which has this number of lines, and returns the new number of
/// lines. What does not fit on the terminal is omitted, because lines that have scrolled out cannot
/// be overwritten.
fn redraw(
    mut lines: Vec<PaintedLine>,
    height: usize,
    style: OutputStyle,
) -> Result<usize, Failure> {
    let rows = terminal_size::terminal_size().map_or(24, |(_, rows)| usize::from(rows.0));
    lines.truncate(rows.saturating_sub(1).max(1));
    let mut text = match height {
        0 => String::new(),
        height => format!("\x1b[{height}A\r"),
    };
    for line in &lines {
        text += &format!("{}\x1b[K\n", line.to_text(style.colour));
    }
    text += "\x1b[J";
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|cause| Failure::write("standard output", &cause))?;
    Ok(lines.len())
}

fn page(status: &TunnelStatusShape, style: OutputStyle) -> Vec<PaintedLine> {
    if status.tunnels.is_empty() {
        return vec![PaintedLine::new().with_span(Paint::Plain, "this user has no tunnel")];
    }
    let mut lines = Vec::new();
    for shape in &status.tunnels {
        if !lines.is_empty() {
            lines.push(PaintedLine::new());
        }
        lines.extend(tunnel(shape, style));
    }
    lines
}

fn tunnel(shape: &TunnelShape, style: OutputStyle) -> Vec<PaintedLine> {
    let up = time(Duration::from_secs_f64(shape.up_ms.max(0.0) / 1e3));
    let head = format!("{}: {} of {}, for {up}", shape.process, shape.role, shape.name);
    let mut lines = wrapped(Paint::Head, &head, 0, style);
    for forward in &shape.forwards {
        lines.extend(wrapped(Paint::Dim, forward, 2, style));
    }
    if shape.sessions.is_empty() {
        let text = match shape.role == "client" {
            true => "not connected",
            false => "no client is connected",
        };
        lines.extend(wrapped(Paint::Warn, text, 2, style));
    }
    for session in &shape.sessions {
        lines.push(PaintedLine::new());
        lines.extend(session_lines(session, style));
    }
    lines
}

fn session_lines(shape: &TunnelSessionShape, style: OutputStyle) -> Vec<PaintedLine> {
    let up = time(Duration::from_secs_f64(shape.up_ms.max(0.0) / 1e3));
    let (sent, received) = (bytes(shape.sent), bytes(shape.received));
    let way = match &shape.proxy {
        Some(proxy) => format!("through {proxy}"),
        None => format!("at {}", shape.remote),
    };
    let head = format!(
        "{} {way} over {}, for {up}; connections: {}, on streams: {}; sent {sent}, received {received}",
        shape.peer, shape.transport, shape.channels, shape.streams
    );
    let mut lines = wrapped(Paint::Plain, &head, 2, style);
    let header = ["LINE TO", "STATE", "RTT", "RATE", "LOST", "FROM"];
    lines.extend(table(&header, shape.paths.iter().map(path).collect(), style));
    if let Some(packets) = &shape.packets {
        lines.extend(wrapped(Paint::Plain, &interface(packets), 2, style));
    }
    if !shape.busiest.is_empty() {
        lines.push(PaintedLine::new());
        let header = ["CONNECTION", "STREAM", "SENT", "RECEIVED", "WAITS", "WHERE"];
        lines.extend(table(&header, shape.busiest.iter().map(channel).collect(), style));
        let left = shape.channels.saturating_sub(shape.busiest.len());
        if left > 0 {
            lines.extend(wrapped(Paint::Dim, &format!("and {left} more"), 2, style));
        }
    }
    lines
}

fn interface(shape: &PacketsShape) -> String {
    let (sent, received) = (bytes(shape.sent_bytes), bytes(shape.received_bytes));
    let mut text =
        format!("packets: {} sent, {sent}; {} received, {received}", shape.sent, shape.received);
    let dropped = [
        (shape.late, "late"),
        (shape.overflow, "too many"),
        (shape.forged, "from others' addresses"),
        (shape.malformed, "malformed"),
        (shape.refused, "not taken by the interface"),
    ];
    let dropped: Vec<_> = dropped
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    if !dropped.is_empty() {
        text += &format!("; dropped: {}", dropped.join(", "));
    }
    text
}

fn path(shape: &TunnelPathShape) -> Vec<(Paint, String)> {
    let paint = if shape.state == "active" { Paint::Good } else { Paint::Warn };
    // RFC 7829's term is too long.
    let state = shape.state.replace("potentially-failed", "in doubt");
    let millis = |millis: f64| time(Duration::from_secs_f64(millis.max(0.0) / 1e3));
    let plain = |text: String| (Paint::Plain, text);
    let lost = match (shape.lost, shape.delivered) {
        (0, _) => "0".to_owned(),
        (lost, delivered) => {
            format!("{:.2} %", 100.0 * lost as f64 / (lost + delivered) as f64)
        }
    };
    vec![
        plain(shape.remote.strip_suffix(":0").unwrap_or(&shape.remote).to_owned()),
        (paint, state),
        plain(shape.rtt_ms.map_or(String::new(), millis)),
        plain(shape.rate.map_or(String::new(), rate)),
        plain(lost),
        plain(shape.local.clone().unwrap_or_default()),
    ]
}

fn channel(shape: &ChannelShape) -> Vec<(Paint, String)> {
    let plain = |text: String| (Paint::Plain, text);
    let place = match shape.kind.as_str() {
        "connect" => format!("to {}", shape.place),
        "accepted" => format!("from {}", shape.place),
        "packets" => format!("packets of {}", shape.place),
        kind => format!("{kind} {}", shape.place),
    };
    let place = if shape.waiting { format!("{place}, not answered yet") } else { place };
    vec![
        plain(shape.id.to_string()),
        plain(shape.stream.to_string()),
        plain(bytes(shape.sent)),
        plain(bytes(shape.received)),
        plain(bytes((shape.unsent + shape.unread) as u64)),
        plain(place),
    ]
}

/// Formats an amount with SI prefixes.
fn bytes(amount: u64) -> String {
    match amount as f64 {
        bytes if bytes < 1e4 => format!("{amount} B"),
        bytes if bytes < 1e6 => format!("{:.0} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.1} GB", bytes / 1e9),
    }
}

fn rate(bits: f64) -> String {
    match bits {
        bits if bits < 1e3 => format!("{bits:.0} bit/s"),
        bits if bits < 1e6 => format!("{:.0} kbit/s", bits / 1e3),
        bits => format!("{:.1} Mbit/s", bits / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> TunnelShape {
        let path = |remote: &str, state: &str, delivered| TunnelPathShape {
            local: Some("192.0.2.7".to_owned()),
            remote: remote.to_owned(),
            state: state.to_owned(),
            primary: state == "active",
            rtt_ms: Some(20.5),
            window: Some(65_536),
            delivered,
            lost: delivered / 100,
            rate: None,
        };
        let channel = ChannelShape {
            id: 3,
            stream: 2,
            kind: "connect".to_owned(),
            place: "db.example:5432".to_owned(),
            own: true,
            waiting: true,
            sent: 1_234,
            received: 12_345_678,
            unsent: 100,
            unread: 20,
        };
        let paths = vec![
            path("192.0.2.1:9899", "active", 40_000_000),
            path("[2001:db8::1]:9899", "potentially-failed", 100),
        ];
        let session = TunnelSessionShape {
            peer: "gate.example:4433".to_owned(),
            remote: "192.0.2.1:4433".to_owned(),
            transport: "sctp-udp".to_owned(),
            proxy: None,
            up_ms: 12_000.0,
            sent: 40_000_000,
            received: 5,
            streams: 3,
            packets: None,
            paths,
            channels: 2,
            busiest: vec![channel],
        };
        TunnelShape {
            process: 4_711,
            version: "0.1.0".to_owned(),
            role: "client".to_owned(),
            name: "gate.example:4433".to_owned(),
            forwards: vec!["localhost:8080 leads to localhost:80 at the server".to_owned()],
            up_ms: 15_000.0,
            sessions: vec![session],
        }
    }

    fn text(status: &TunnelStatusShape) -> String {
        let style = OutputStyle { colour: false, unicode: true, width: 80 };
        let lines = page(status, style);
        let lines: Vec<String> = lines.iter().map(|line| line.to_text(false)).collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{}", lines.join("\n"));
        lines.join("\n")
    }

    #[test]
    fn a_page_fits_eighty_columns() {
        let (previous, mut after) = (shape(), shape());
        after.sessions[0].paths[0].delivered += 1_250_000;
        after.compare(&previous, Duration::from_secs(1));
        insta::assert_snapshot!(text(&TunnelStatusShape { tunnels: vec![after] }));
    }

    #[test]
    fn rates_compare_only_the_same_session_and_path() {
        let (previous, mut after) = (shape(), shape());
        after.sessions[0].paths[0].delivered += 500;
        after.sessions[0].paths[1].remote = "198.51.100.1:9899".to_owned();
        after.compare(&previous, Duration::from_millis(500));
        let rates: Vec<_> = after.sessions[0].paths.iter().map(|path| path.rate).collect();
        assert_eq!(rates, [Some(8_000.0), None]);
        // It was connected anew.
        let mut younger = shape();
        younger.sessions[0].up_ms = 1.0;
        younger.compare(&previous, Duration::from_secs(1));
        assert!(younger.sessions[0].paths.iter().all(|path| path.rate.is_none()));
    }

    #[test]
    fn packets_are_shown_and_drops_if_there_were_any() {
        let mut packets = PacketsShape {
            sent: 7,
            sent_bytes: 700,
            sent_as_datagrams: 7,
            received: 8,
            received_bytes: 12_345,
            late: 0,
            overflow: 0,
            forged: 0,
            malformed: 0,
            refused: 0,
        };
        let expected = "packets: 7 sent, 700 B; 8 received, 12 kB";
        assert_eq!(interface(&packets), expected);
        (packets.late, packets.forged) = (3, 1);
        assert_eq!(
            interface(&packets),
            format!("{expected}; dropped: 3 late, 1 from others' addresses")
        );
        let mut shown = shape();
        shown.sessions[0].packets = Some(packets);
        assert!(text(&TunnelStatusShape { tunnels: vec![shown] }).contains("dropped: 3 late"));
    }

    #[test]
    fn an_empty_list_is_a_sentence() {
        assert_eq!(text(&TunnelStatusShape::default()), "this user has no tunnel");
        let mut alone = shape();
        alone.sessions.clear();
        assert!(text(&TunnelStatusShape { tunnels: vec![alone] }).contains("not connected"));
    }
}
