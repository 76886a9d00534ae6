//! Programs with their own Happy Eyeballs on networks with faults: directly, and through `eyas proxy`.
//!
//! The far side is the server's command of `eyas netem run`, the near side the client's: both are this
//! program.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde_json::json;

use super::programs::Programs;
use super::proxy::loopback;
use crate::arena::{self, Arena};
use crate::rival::Rival;
use crate::run::{check, command, output};
use crate::server::Server;
use crate::sides::{clear_ready, print_figure, signal_ready, wait_for_far};
use crate::tables::{Column, Figures, expectation};
use crate::verdict::{Bound, Expectation};

/// The name of the server, which the arena's certificate covers, and its addresses (`docs/guide/netem.md`).
const HOST: &str = "far.bench.test";
const IPV4: &str = "198.18.1.2";
const IPV6: &str = "2001:2:0:1::2";
const PORT: u16 = 443;
const PROXY_AT: SocketAddr = loopback(7010);
/// The one-way delay in milliseconds.
const DELAY: u32 = 10;
/// Milliseconds. A client that takes longer is waiting for a timer, so its time varies little from round
/// to round.
const SLOW: f64 = 1000.0;
/// The time limit of clients that have none of their own, in seconds.
const LIMIT: &str = "5";
/// The maximum time of the proxy on a network that it does not know, in milliseconds.
const FIRST: f64 = 350.0;
/// The maximum time on a network that it knows, relative to a network without a fault.
const SECOND: f64 = 1.1;

/// The fault of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Ipv6Dead,
    Ipv6Silent,
    UdpSwallowed,
}

/// The faults, each with its name and the columns of the first and the second request.
const FAULTS: [(Fault, &str, &str, &str); 4] = [
    (Fault::None, "none", "no fault", "again"),
    (Fault::Ipv6Dead, "ipv6-dead", "IPv6 dead", "again, IPv6 dead"),
    (Fault::Ipv6Silent, "ipv6-silent", "IPv6 accepts and stays silent", "again, IPv6 silent"),
    (Fault::UdpSwallowed, "udp-swallowed", "UDP swallowed", "again, UDP swallowed"),
];

/// The clients, directly and through the proxy.
const CLIENTS: [(&str, &str); 5] = [
    ("libcurl", "libcurl, eyas proxy"),
    ("Go", "Go, eyas proxy"),
    ("Node", "Node, eyas proxy"),
    ("Deno", "Deno, eyas proxy"),
    ("Python", "Python, eyas proxy"),
];

/// Runs every client on a network with each fault, this number of times.
pub(super) fn measure(
    programs: &Programs,
    arena: &Arena,
    rounds: usize,
) -> Result<Figures, String> {
    let mut figures = Figures::default();
    if programs.caddy.is_none() {
        return Ok(figures);
    }
    arena.add_host(HOST, &[IPV6, IPV4])?;
    let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let (this, directory) = (this.to_string_lossy(), arena.directory().to_string_lossy());
    let columns = FAULTS.map(|(_, _, first, second)| [first, second]);
    for (_, word, label, _) in FAULTS {
        println!("proxy: {label}");
        let mut run = programs.eyas(&["netem", "run", "--quiet", "--delay"]);
        run.arg(format!("{DELAY}ms"));
        let far = format!("exec '{this}' relay --far-fault '{directory}' {word}");
        run.args(["--server", &far, "--"]);
        run.args([&*this, "relay", "--near-fault", &*directory, word]);
        run.arg(rounds.to_string());
        figures.take(&output(&mut run)?, columns.as_flattened());
    }
    Ok(figures)
}

fn fault(word: &str) -> Result<(Fault, &'static str, &'static str), String> {
    let found = FAULTS.iter().find(|(_, name, ..)| *name == word);
    let (fault, _, first, second) = found.ok_or_else(|| format!("unknown fault {word}"))?;
    Ok((*fault, first, second))
}

/// Runs the server with this fault until it is killed.
pub(super) fn far(programs: &Programs, directory: &Path, word: &str) -> Result<(), String> {
    let (fault, ..) = fault(word)?;
    let mut listen = vec![format!("{IPV4}:{PORT}")];
    let _silent = if fault == Fault::Ipv6Silent {
        // Only the kernel accepts connections, and nothing reads from them.
        let listener = TcpListener::bind((IPV6, PORT));
        Some(listener.map_err(|error| format!("{IPV6}: {error}"))?)
    } else {
        listen.push(format!("[{IPV6}]:{PORT}"));
        None
    };
    let dropped = match fault {
        Fault::Ipv6Dead => Some("meta nfproto ipv6 meta l4proto { tcp, udp } th dport 443"),
        Fault::UdpSwallowed => Some("udp dport 443"),
        Fault::None | Fault::Ipv6Silent => None,
    };
    if let Some(dropped) = dropped {
        let file = directory.join("fault.nft");
        fs::write(&file, arena::filter_of([dropped])).map_err(|error| error.to_string())?;
        check(command("nft", &["-f"]).arg(file))?;
    }
    let caddy = programs.caddy.as_ref().ok_or("there is no Caddy")?;
    let page = json!({ "handler": "static_response", "body": "well\n" });
    let at = SocketAddr::new(IPV4.parse().map_err(|_| "an address")?, PORT);
    let _caddy = arena::caddy(caddy, directory, at, &listen, &page)?;
    signal_ready(directory)?;
    loop {
        thread::park();
    }
}

/// Runs the clients on the other side.
pub(super) fn near(
    programs: &Programs,
    directory: &Path,
    word: &str,
    rounds: usize,
) -> Result<(), String> {
    let (fault, first, second) = fault(word)?;
    wait_for_far(directory)?;
    let url = format!("https://{HOST}/");
    for (direct, proxied) in CLIENTS {
        let Some(program) = programs.client(direct, &directory.join("authority.pem")) else {
            continue;
        };
        let mode = if fault == Fault::UdpSwallowed && direct == "libcurl" { "race" } else { "h1" };
        for (name, is_proxied) in [(direct, false), (proxied, true)] {
            for round in 0..rounds {
                let directory = directory.join(format!("{word}-{direct}-{round}"));
                let _proxy =
                    if is_proxied { Some(fresh_proxy(programs, &directory)?) } else { None };
                let mut rival = Rival::start(direct, client(&program, is_proxied))?;
                let time = rival.round(mode, &url);
                let is_slow = time.as_ref().map_or(true, |time| *time > SLOW);
                // After a failure, a second request would only fail the same way.
                let failed = time.as_ref().err().cloned();
                print_figure(name, first, time);
                print_figure(name, second, failed.map_or_else(|| rival.round(mode, &url), Err));
                if is_slow {
                    break;
                }
            }
        }
    }
    // The next fault has its own far side.
    clear_ready(directory)
}

/// Starts a proxy with an empty memory.
fn fresh_proxy(programs: &Programs, directory: &Path) -> Result<Server, String> {
    fs::create_dir_all(directory).map_err(|error| format!("{directory:?}: {error}"))?;
    let mut proxy = programs.eyas(&["proxy", "--listen", &PROXY_AT.to_string()]);
    Server::start("proxy", proxy.env("XDG_STATE_HOME", directory), PROXY_AT, directory)
}

fn client(args: &[PathBuf], is_proxied: bool) -> Command {
    let mut command = Command::new(&args[0]);
    command.args(&args[1..]).env_remove("no_proxy").env_remove("NO_PROXY");
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"]
    {
        command.env_remove(name);
    }
    command.env("ROUND_LIMIT", LIMIT);
    if is_proxied {
        command.env("https_proxy", format!("http://{PROXY_AT}"));
    }
    command
}

/// Returns a table of the time of each client, in milliseconds.
pub(super) fn table(figures: &Figures) -> String {
    let columns =
        FAULTS.map(|(_, _, first, second)| [first, second].map(|name| Column { name, digits: 0 }));
    let rows = CLIENTS.iter().flat_map(|(direct, proxied)| [*direct, *proxied]);
    let measured =
        rows.filter(|name| FAULTS.iter().any(|(_, _, it, _)| figures.rounds(name, it).is_some()));
    figures.table("ms until the response", &measured.collect::<Vec<_>>(), columns.as_flattened())
}

/// Returns the targets for the proxy; the slowest client counts.
pub(super) fn expectations(figures: &Figures) -> Vec<Expectation> {
    let no_fault = FAULTS[0].3;
    let mut expectations = Vec::new();
    for (fault, _, first, second) in FAULTS {
        if fault == Fault::None {
            continue;
        }
        let measured =
            || CLIENTS.iter().filter(|(_, proxied)| figures.rounds(proxied, first).is_some());
        let worst = |of: &dyn Fn(&str, &str) -> Option<f64>| {
            let all: Option<Vec<f64>> =
                measured().map(|(direct, proxied)| of(direct, proxied)).collect();
            all?.into_iter().reduce(f64::max)
        };
        let slowest = worst(&|_, proxied| figures.median(proxied, first));
        let target = format!("proxy, {first}: within {FIRST} ms");
        expectations.push(expectation(&target, slowest, Bound::AtMost(FIRST), "ms"));
        let slowest = worst(&|direct, proxied| {
            Some(figures.median(proxied, second)? / figures.median(direct, no_fault)?)
        });
        let target = format!("proxy, {second}: at most {SECOND} × no proxy, no fault");
        expectations.push(expectation(&target, slowest, Bound::AtMost(SECOND), ""));
    }
    expectations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_client_counts() {
        let mut figures = Figures::default();
        for (name, column, figure) in [
            ("Go", "again", 60.0),
            ("Go, eyas proxy", "IPv6 dead", 300.0),
            ("Go, eyas proxy", "again, IPv6 dead", 63.0),
            ("libcurl", "again", 50.0),
            ("libcurl, eyas proxy", "IPv6 dead", 400.0),
            ("libcurl, eyas proxy", "again, IPv6 dead", 51.0),
        ] {
            figures.add(name, column, Ok(figure));
        }
        let rows: String = expectations(&figures).iter().map(Expectation::row).collect();
        for row in [
            "| proxy, IPv6 dead: within 350 ms | 400 ms | **no** |",
            "no proxy, no fault | 1.05 | yes |",
            "| proxy, UDP swallowed: within 350 ms | – | not measured |",
        ] {
            assert!(rows.contains(row), "{row} in {rows}");
        }
        // A client that never succeeds must not count as fast.
        figures.add("Python, eyas proxy", "IPv6 dead", Err("no".into()));
        let rows: String = expectations(&figures).iter().map(Expectation::row).collect();
        assert!(rows.contains("| proxy, IPv6 dead: within 350 ms | – | not measured |"), "{rows}");
        assert_eq!(fault("ipv6-dead").unwrap().0, Fault::Ipv6Dead);
        assert!(fault("other").is_err());
    }
}
