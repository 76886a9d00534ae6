//! `eyas memory`: shows what has been learnt, and deletes it.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyas::MemoryStore;
use eyas::race::memory::MemoryConfig;
use eyas::race::report::MemoryRowJson;
use eyas::race::target::TargetHost;
use serde_json::{Map, Value, json};

use super::setting::{self, MemoryLocation};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, MemoryAction, MemoryFlags};
use crate::output;
use crate::shape::value;
use crate::terminal::{OutputStyle, Paint, PaintedLine, counted, table, time};

/// Shows or changes the memory.
pub(crate) fn run(flags: &MemoryFlags, common: &CommonFlags) -> Result<(), Failure> {
    let path = match setting::memory_location(flags.memory.as_ref()) {
        MemoryLocation::File(path) => path,
        MemoryLocation::Nowhere => {
            return Err(Failure::new(FailureKind::Usage, "--memory none has nothing to show")
                .hint("give a file, or omit it"));
        }
        MemoryLocation::Unknown => {
            return Err(Failure::new(FailureKind::Memory, setting::NO_MEMORY_DIRECTORY)
                .hint("choose the memory file with --memory FILE"));
        }
    };
    let action = flags.action.clone().unwrap_or(MemoryAction::List { host: None });
    if matches!(action, MemoryAction::Path) {
        return print_path(&path, common);
    }
    if path.symlink_metadata().is_err_and(|cause| cause.kind() == ErrorKind::NotFound) {
        return without_file(&path, &action, common);
    }
    let store = MemoryStore::open(&path);
    if !store.is_persistent() {
        let why = store.warnings().into_iter().next();
        let why = why.unwrap_or_else(|| format!("{} cannot be used", path.display()));
        return Err(Failure::new(FailureKind::Memory, why).hint(
            "choose the memory file with --memory FILE; eyas memory path prints the usual one",
        ));
    }
    match action {
        MemoryAction::List { host } => {
            let host = host.map(|host| parse(&host)).transpose()?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let config = MemoryConfig::default();
            let rows = MemoryRowJson::rows(&store.entries(), host.as_ref(), now, &config);
            list(&path, host.as_ref(), &rows, &store.warnings(), common)
        }
        MemoryAction::Forget { host } => {
            let removed = store.forget(&parse(&host)?);
            changed(&store, &path)?;
            forgotten(&path, removed, common)
        }
        MemoryAction::Clear => {
            let removed = store.entries().len();
            store.clear();
            changed(&store, &path)?;
            forgotten(&path, removed, common)
        }
        MemoryAction::Path => print_path(&path, common),
    }
}

/// Checks that the memory was changed, because a failure to delete must be reported.
fn changed(store: &MemoryStore, path: &Path) -> Result<(), Failure> {
    match store.warnings().first() {
        None => Ok(()),
        Some(warning) => Err(Failure::new(FailureKind::Memory, warning.clone())
            .hint(format!("is {} writable by you?", path.display()))),
    }
}

fn parse(host: &str) -> Result<TargetHost, Failure> {
    eyas::zone::parse_host(host).map_err(|cause| Failure::new(FailureKind::Url, cause.to_string()))
}

fn without_file(path: &Path, action: &MemoryAction, common: &CommonFlags) -> Result<(), Failure> {
    match action {
        MemoryAction::List { .. } => list(path, None, &[], &[], common),
        _ => forgotten(path, 0, common),
    }
}

fn print_path(path: &Path, common: &CommonFlags) -> Result<(), Failure> {
    let text = path.display().to_string();
    match common.json {
        true => output::object(&json!({ "path": text })),
        false => {
            let line = PaintedLine::new().with_span(Paint::Plain, text);
            output::page(&[line], OutputStyle::of_stdout(common.color))
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
        rows => format!("Forgot {}.", counted(rows as u64, "row")),
    };
    output::page(
        &[PaintedLine::new().with_span(Paint::Plain, text)],
        OutputStyle::of_stdout(common.color),
    )
}

fn list(
    path: &Path,
    host: Option<&TargetHost>,
    rows: &[MemoryRowJson],
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
    let style = OutputStyle::of_stdout(common.color);
    let warn = |text: &String| PaintedLine::new().with_span(Paint::Warn, text);
    output::print_to_stderr(&warnings.iter().map(warn).collect::<Vec<_>>(), style);
    if rows.is_empty() {
        let of = host.map(|host| format!(" of {host}")).unwrap_or_default();
        let line = PaintedLine::new()
            .with_span(Paint::Plain, format!("Nothing is remembered{of}.  "))
            .with_span(Paint::Dim, path.display().to_string());
        return output::page(&[line], style);
    }
    output::page(&by_network(rows, style), style)
}

/// Returns a table for each network, the most recently used one first.
fn by_network(rows: &[MemoryRowJson], style: OutputStyle) -> Vec<PaintedLine> {
    let header = ["host", "over", "address", "age", "away", "verdict"];
    let mut networks: Vec<&MemoryRowJson> = Vec::new();
    for row in rows {
        if !networks.iter().any(|known| known.network == row.network) {
            networks.push(row);
        }
    }
    let mut lines = Vec::new();
    for network in &networks {
        let name = network.network_name.as_deref().unwrap_or("an unnamed network");
        let shares_name = |other: &&&MemoryRowJson| other.network_name == network.network_name;
        // Different home networks may have the same name.
        let mark = match networks.iter().filter(shares_name).count() {
            1 => String::new(),
            _ => format!("  ({})", network.network.get(..6).unwrap_or(&network.network)),
        };
        if !lines.is_empty() {
            lines.push(PaintedLine::new());
        }
        lines.push(PaintedLine::new().with_span(Paint::Head, name).with_span(Paint::Dim, mark));
        let of_network = rows.iter().filter(|row| row.network == network.network);
        lines.extend(table(&header, of_network.map(row).collect(), style));
    }
    lines
}

/// Returns the offer and the trust to which the row is restricted.
fn offered(shape: &MemoryRowJson) -> Option<String> {
    let alpn = shape.alpn.as_ref()?;
    let mut text = if alpn.is_empty() { "no ALPN".to_owned() } else { alpn.join(" ") };
    match shape.trust.as_deref() {
        None | Some("" | "platform") => {}
        Some("anyone") => text.push_str(", anyone"),
        // This much of the hash distinguishes the networks of one user.
        Some(other) => match other.split_once('-') {
            Some((word, hash)) => {
                text.push_str(&format!(", {word} {}", hash.get(..4).unwrap_or(hash)));
            }
            None => text.push_str(&format!(", {other}")),
        },
    }
    if shape.ech == Some(true) {
        text.push_str(", ECH");
    }
    if let Some(host) = &shape.certificate_host {
        text.push_str(&format!(", for {host}"));
    }
    Some(text)
}

/// Returns the transport, and its security protocol if there is more than one possibility.
fn transport_column(shape: &MemoryRowJson) -> String {
    match (shape.transport, shape.security) {
        ("quic", _) | (_, None | Some("none")) => shape.transport.to_owned(),
        (transport, Some(security)) => format!("{transport} {security}"),
    }
}

/// Returns the address and port, or the address family for a row about a network.
fn address(shape: &MemoryRowJson) -> String {
    match (&shape.host, shape.address.split_once(':')) {
        (None, Some((family, port))) => {
            let family = if family == "v4" { "IPv4" } else { "IPv6" };
            if port == "0" { family.to_owned() } else { format!("{family}, port {port}") }
        }
        _ => shape.address.clone(),
    }
}

fn row(shape: &MemoryRowJson) -> Vec<(Paint, String)> {
    let span = |ms: f64| time(Duration::from_secs_f64(ms.max(0.0) / 1e3));
    let paint = match shape.verdict {
        "good" | "designated" => Paint::Good,
        "bad" | "network-bad" => Paint::Bad,
        "retest-due" => Paint::Warn,
        _ => Paint::Dim,
    };
    let mut verdict = shape.cause.clone().unwrap_or_else(|| shape.verdict.to_owned());
    match (shape.verdict, shape.holds_for_ms) {
        ("bad", Some(ms)) => verdict.push_str(&format!(", again in {}", span(ms))),
        ("good" | "designated" | "not-designated", Some(ms)) => {
            verdict.push_str(&format!(" for {}", span(ms)));
        }
        ("retest-due", _) => verdict.push_str(", re-test due"),
        ("network-bad", _) => verdict.push_str(" on this network"),
        _ => {}
    }
    if shape.sent_again > 0 {
        let (again, all) = (shape.sent_again, shape.handshakes);
        verdict.push_str(&match all {
            1 => ", its one handshake was retransmitted".to_owned(),
            all => format!(", {again} of the last {all} handshakes retransmitted"),
        });
    }
    if let Some(ms) = shape.short_hello_for_ms {
        verdict.push_str(&format!(", ClientHello of one packet for {}", span(ms)));
    }
    if let Some(name) = &shape.designates {
        verdict.push_str(&format!(": {name}"));
    }
    if let Some(offered) = offered(shape) {
        verdict.push_str(&format!(" ({offered})"));
    }
    vec![
        (Paint::Plain, shape.host.clone().unwrap_or_else(|| "(any)".to_owned())),
        (Paint::Plain, transport_column(shape)),
        (Paint::Plain, address(shape)),
        (Paint::Dim, span(shape.age_ms)),
        (Paint::Dim, shape.rtt_ms.map(span).unwrap_or_default()),
        (paint, verdict),
    ]
}
