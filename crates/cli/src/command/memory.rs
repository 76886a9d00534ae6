//! `eyas memory`: what has been learnt, and forgetting it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyas::MemoryStore;
use eyas::race::evidence::NetworkId;
use eyas::race::memory::{
    Config, Entry, Outcome, PathEntry, PeerEntry, Record, Secured, Seen, SetUp, Subject, Verdict,
};
use eyas::race::target::Host;
use serde_json::{Map, Value, json};

use super::setting;
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, MemoryAction, MemoryFlags};
use crate::output;
use crate::shape::{MemoryRowShape, millis, value};
use crate::terminal::{Line, Look, Paint, table, time};

/// Shows or changes the memory.
pub(crate) fn run(flags: &MemoryFlags, common: &CommonFlags) -> Result<(), Failure> {
    let Some(path) = setting::memory_path(flags.memory.as_ref())? else {
        return Err(Failure::new(Kind::Usage, "--memory none has nothing to show")
            .hint("name a file, or leave it out"));
    };
    let action = flags.action.clone().unwrap_or(MemoryAction::List { host: None });
    if matches!(action, MemoryAction::Path) {
        return say_path(&path, common);
    }
    if path.symlink_metadata().is_err_and(|cause| cause.kind() == ErrorKind::NotFound) {
        return nothing_there(&path, &action, common);
    }
    let store = MemoryStore::open(&path);
    if !store.is_persistent() {
        let why = store.warnings().into_iter().next();
        let why = why.unwrap_or_else(|| format!("{} cannot be used", path.display()));
        return Err(Failure::new(Kind::Memory, why).hint(
            "name the memory file with --memory FILE; eyas memory path says where it usually is",
        ));
    }
    match action {
        MemoryAction::List { host } => {
            let host = host.map(|host| parse(&host)).transpose()?;
            let entries = store.entries();
            let names = names(&entries);
            let rows = entries.iter().filter(|row| match (&host, row.key.host()) {
                (None, _) => true,
                (Some(host), of) => of == Some(host),
            });
            let rows = shapes(rows, &names);
            list(&path, host.as_ref(), &rows, &store.warnings(), common)
        }
        MemoryAction::Forget { host } => {
            let gone = store.forget(&parse(&host)?);
            changed(&store, &path)?;
            forgotten(&path, gone, common)
        }
        MemoryAction::Clear => {
            let gone = store.entries().len();
            store.clear();
            changed(&store, &path)?;
            forgotten(&path, gone, common)
        }
        MemoryAction::Path => say_path(&path, common),
    }
}

/// Forgetting must not fail in silence.
fn changed(store: &MemoryStore, path: &Path) -> Result<(), Failure> {
    match store.warnings().first() {
        None => Ok(()),
        Some(warning) => Err(Failure::new(Kind::Memory, warning.clone())
            .hint(format!("is {} writable by you?", path.display()))),
    }
}

fn parse(host: &str) -> Result<Host, Failure> {
    Host::parse(host).map_err(|cause| Failure::new(Kind::Url, cause.to_string()))
}

fn nothing_there(path: &Path, action: &MemoryAction, common: &CommonFlags) -> Result<(), Failure> {
    match action {
        MemoryAction::List { .. } => list(path, None, &[], &[], common),
        _ => forgotten(path, 0, common),
    }
}

fn say_path(path: &Path, common: &CommonFlags) -> Result<(), Failure> {
    let text = path.display().to_string();
    match common.json {
        true => output::object(&json!({ "path": text })),
        false => {
            let line = Line::new().with(Paint::Plain, text);
            output::page(&[line], Look::of_stdout(common.color))
        }
    }
}

fn forgotten(path: &Path, count: usize, common: &CommonFlags) -> Result<(), Failure> {
    if common.json {
        let path = path.display().to_string();
        return output::object(&json!({ "path": path, "forgotten": count }));
    }
    let text = match count {
        0 => "Nothing was remembered.".to_owned(),
        1 => "Forgot one row.".to_owned(),
        count => format!("Forgot {count} rows."),
    };
    output::page(&[Line::new().with(Paint::Plain, text)], Look::of_stdout(common.color))
}

/// What people call the networks.
fn names(rows: &[Record]) -> BTreeMap<NetworkId, String> {
    let named = rows.iter().filter_map(|row| match &row.entry {
        Entry::Network(entry) => Some((row.key.network.clone(), entry.name.clone())),
        _ => None,
    });
    named.collect()
}

/// Rows as the shapes have them, newest first.
fn shapes<'a>(
    rows: impl Iterator<Item = &'a Record>,
    names: &BTreeMap<NetworkId, String>,
) -> Vec<MemoryRowShape> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let config = Config::default();
    let mut shapes: Vec<MemoryRowShape> = rows
        .flat_map(|row| {
            let name = names.get(&row.key.network);
            let mut shapes = of_row(row, now, &config);
            shapes.iter_mut().for_each(|shape| shape.network_name = name.cloned());
            shapes
        })
        .collect();
    shapes.sort_by(|a, b| a.age_ms.total_cmp(&b.age_ms));
    shapes
}

/// One row: a shape for each set-up that it tells of. One whose key and entry disagree was damaged and
/// says nothing.
fn of_row(row: &Record, now: Duration, config: &Config) -> Vec<MemoryRowShape> {
    let mut shape = MemoryRowShape { network: row.key.network.0.clone(), ..Default::default() };
    match (&row.key.subject, &row.entry) {
        (Subject::Peer { host, transport, security, address }, Entry::Peer(peer)) => {
            shape.host = Some(host.to_string());
            shape.transport = transport.name();
            shape.security = Some(security.name());
            shape.address = address.to_string();
            shape.rtt_ms = peer.round_trip.map(|round_trip| millis(round_trip.smoothed));
            let verdicts = peer.verdicts(*security, now, config);
            let of = |(secured, verdict)| of_peer(shape.clone(), peer, secured, verdict, now);
            verdicts.into_iter().map(of).collect()
        }
        (Subject::Path { transport, family, port }, Entry::Path(path)) => {
            shape.transport = transport.name();
            shape.address = format!("{family}:{port}");
            shape.strikes = u32::try_from(path.silent.len()).unwrap_or(u32::MAX);
            shape.age_ms = millis(now.saturating_sub(path.at));
            vec![of_path(shape, path, now, config)]
        }
        _ => Vec::new(),
    }
}

fn of_peer(
    mut shape: MemoryRowShape,
    peer: &PeerEntry,
    secured: Option<&Secured>,
    verdict: Verdict,
    now: Duration,
) -> MemoryRowShape {
    let seen = secured.map(|secured| secured.seen);
    let at = seen.or(peer.reach).map_or(peer.at, |seen| seen.at);
    shape.age_ms = millis(now.saturating_sub(at));
    let strikes = |seen: Seen| match seen.outcome {
        Outcome::Bad { strikes, .. } => strikes,
        Outcome::Good { .. } => 0,
    };
    shape.strikes = seen.into_iter().chain(peer.reach).map(strikes).max().unwrap_or_default();
    if let Some(Secured { set_up: SetUp { alpn, trust }, .. }) = secured {
        shape.alpn = Some(alpn.clone());
        shape.trust = Some(trust.parameters.clone());
        shape.certificate_host = trust.certificate_host.as_ref().map(ToString::to_string);
    }
    (shape.verdict, shape.cause) = match verdict {
        Verdict::Good { .. } => ("good", None),
        Verdict::Bad { cause, .. } => ("bad", Some(cause.to_string())),
        Verdict::RetestDue { cause, .. } => ("retest-due", Some(cause.to_string())),
        _ => ("unknown", None),
    };
    let until = match verdict {
        Verdict::Good { .. } => Some(at.saturating_add(Config::default().good_for)),
        Verdict::Bad { until, .. } => Some(until),
        _ => None,
    };
    shape.holds_for_ms = until.map(|until| millis(until.saturating_sub(now)));
    shape
}

fn of_path(
    mut shape: MemoryRowShape,
    path: &PathEntry,
    now: Duration,
    config: &Config,
) -> MemoryRowShape {
    let swallowed = path.swallowed(now, config).is_some();
    let heard = path.heard_at.is_some() && path.silent.is_empty();
    (shape.verdict, shape.cause) = match (swallowed, heard) {
        (true, _) => ("network-bad", Some("silent".to_owned())),
        (false, true) => ("good", None),
        (false, false) => ("unknown", None),
    };
    let loss = path.loss(now, config);
    (shape.handshakes, shape.sent_again) = (loss.handshakes, loss.sent_again);
    shape
}

fn list(
    path: &Path,
    host: Option<&Host>,
    rows: &[MemoryRowShape],
    warnings: &[String],
    common: &CommonFlags,
) -> Result<(), Failure> {
    if common.json {
        let mut object = Map::new();
        object.insert("path".to_owned(), path.display().to_string().into());
        object.insert("rows".to_owned(), rows.iter().map(value).collect::<Vec<Value>>().into());
        object.insert("warnings".to_owned(), warnings.to_vec().into());
        return output::object(&object.into());
    }
    let look = Look::of_stdout(common.color);
    let warn = |text: &String| Line::new().with(Paint::Warn, text);
    output::aside(&warnings.iter().map(warn).collect::<Vec<_>>(), look);
    if rows.is_empty() {
        let of = host.map(|host| format!(" of {host}")).unwrap_or_default();
        let line = Line::new()
            .with(Paint::Plain, format!("Nothing is remembered{of}.  "))
            .with(Paint::Dim, path.display().to_string());
        return output::page(&[line], look);
    }
    output::page(&by_network(rows, look), look)
}

/// A table for each network, the one that was heard of last first.
fn by_network(rows: &[MemoryRowShape], look: Look) -> Vec<Line> {
    let header = ["host", "over", "address", "age", "away", "verdict"];
    let mut networks: Vec<&MemoryRowShape> = Vec::new();
    for row in rows {
        if !networks.iter().any(|known| known.network == row.network) {
            networks.push(row);
        }
    }
    let mut lines = Vec::new();
    for network in &networks {
        let name = network.network_name.as_deref().unwrap_or("a network without a name");
        let shares_name = |other: &&&MemoryRowShape| other.network_name == network.network_name;
        // Two homes may look alike from inside.
        let mark = match networks.iter().filter(shares_name).count() {
            1 => String::new(),
            _ => format!("  ({})", network.network.get(..6).unwrap_or(&network.network)),
        };
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.push(Line::new().with(Paint::Head, name).with(Paint::Dim, mark));
        let of_network = rows.iter().filter(|row| row.network == network.network);
        lines.extend(table(&header, of_network.map(row).collect(), look));
    }
    lines
}

/// What was offered and who was trusted, where the row holds for that alone.
fn offered(shape: &MemoryRowShape) -> Option<String> {
    let alpn = shape.alpn.as_ref()?;
    let mut text = if alpn.is_empty() { "no ALPN".to_owned() } else { alpn.join(" ") };
    match shape.trust.as_deref() {
        None | Some("" | "platform") => {}
        Some("anyone") => text.push_str(", anyone"),
        // So much of the hash tells apart what one user has.
        Some(other) => match other.split_once('-') {
            Some((word, hash)) => {
                text.push_str(&format!(", {word} {}", hash.get(..4).unwrap_or(hash)));
            }
            None => text.push_str(&format!(", {other}")),
        },
    }
    if let Some(host) = &shape.certificate_host {
        text.push_str(&format!(", for {host}"));
    }
    Some(text)
}

/// The transport, and its security where that is not the only one that it has.
fn over(shape: &MemoryRowShape) -> String {
    match (shape.transport, shape.security) {
        ("quic", _) | (_, None | Some("none")) => shape.transport.to_owned(),
        (transport, Some(security)) => format!("{transport} {security}"),
    }
}

/// Address and port, or which of the network's ways it is.
fn address(shape: &MemoryRowShape) -> String {
    match (&shape.host, shape.address.split_once(':')) {
        (None, Some((family, port))) => {
            let family = if family == "v4" { "IPv4" } else { "IPv6" };
            if port == "0" { family.to_owned() } else { format!("{family}, port {port}") }
        }
        _ => shape.address.clone(),
    }
}

fn row(shape: &MemoryRowShape) -> Vec<(Paint, String)> {
    let span = |ms: f64| time(Duration::from_secs_f64(ms.max(0.0) / 1e3));
    let paint = match shape.verdict {
        "good" => Paint::Good,
        "bad" | "network-bad" => Paint::Bad,
        "retest-due" => Paint::Warn,
        _ => Paint::Dim,
    };
    let mut verdict = shape.cause.clone().unwrap_or_else(|| shape.verdict.to_owned());
    match (shape.verdict, shape.holds_for_ms) {
        ("bad", Some(ms)) => verdict.push_str(&format!(", again in {}", span(ms))),
        ("good", Some(ms)) => verdict.push_str(&format!(" for {}", span(ms))),
        ("retest-due", _) => verdict.push_str(", re-test due"),
        ("network-bad", _) => verdict.push_str(" on this network"),
        _ => {}
    }
    if shape.sent_again > 0 {
        let (again, all) = (shape.sent_again, shape.handshakes);
        verdict.push_str(&format!(", {again} of the last {all} handshakes sent packets again"));
    }
    if let Some(offered) = offered(shape) {
        verdict.push_str(&format!(" ({offered})"));
    }
    vec![
        (Paint::Plain, shape.host.clone().unwrap_or_else(|| "(any)".to_owned())),
        (Paint::Plain, over(shape)),
        (Paint::Plain, address(shape)),
        (Paint::Dim, span(shape.age_ms)),
        (Paint::Dim, shape.rtt_ms.map(span).unwrap_or_default()),
        (paint, verdict),
    ]
}
