//! `eyas proxy` on a path without a fault, compared with microsocks, HAProxy's TCP mode and no proxy.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Instant;
use std::{fs, thread};

use super::programs::Programs;
use super::traffic::{self, HoldingServer, Route, connect, milliseconds, request};
use crate::arena::Arena;
use crate::process::{cpu_time, resident};
use crate::server::Server;
use crate::tables::{Column, Figures, expectation, ratio};
use crate::verdict::{Bound, Expectation};

/// The ports of the servers: for short connections, and for connections that stay open.
const PORT: u16 = 7001;
const HOLDING: u16 = 7002;
/// The addresses of the proxies. HAProxy has one for each port of the server.
const EYAS_AT: SocketAddr = loopback(7010);
const MICROSOCKS_AT: SocketAddr = loopback(7011);
const HAPROXY_AT: SocketAddr = loopback(7012);
const HAPROXY_HOLDING_AT: SocketAddr = loopback(7013);

const DIRECT: &str = "no proxy";
const EYAS: &str = "eyas proxy";
const HAPROXY: &str = "HAProxy, TCP";
const MICROSOCKS: &str = "microsocks";

const FIRST_BYTE: &str = "first byte, ms";
const CPU_TIME: &str = "CPU-s per GB";
const SPEED: &str = "Mbit/s";
const CONNECTIONS: &str = "connections/s";
const MEMORY: &str = "KiB per open connection";
const COLUMNS: [Column; 5] = [
    Column { name: FIRST_BYTE, digits: 3 },
    Column { name: CPU_TIME, digits: 3 },
    Column { name: SPEED, digits: 0 },
    Column { name: CONNECTIONS, digits: 0 },
    Column { name: MEMORY, digits: 1 },
];

/// Concurrent clients.
const CLIENTS: usize = 4;
/// Descriptors of a proxy for other things than connections: eyas has some for attempts to connect and for looking up
/// names, so that open connections leave some.
const OTHER_DESCRIPTORS: usize = 2200;
/// The maximum additional time of the proxy compared with no proxy, in milliseconds.
const MAX_ADDED: f64 = 1.0;
/// The maximum CPU time of the proxy, relative to HAProxy and to microsocks.
const MAX_OF_HAPROXY: f64 = 1.2;
const MAX_OF_MICROSOCKS: f64 = 1.0;
/// The minimum number of new connections per second.
const MIN_RATE: f64 = 2000.0;
/// The maximum memory of an open connection, in KiB.
const MAX_MEMORY: f64 = 32.0;

/// How much is measured.
pub(super) struct Amounts {
    pub(super) rounds: usize,
    /// Connections of a round whose first byte is timed.
    pub(super) first_bytes: usize,
    /// Bytes transferred in a round.
    pub(super) bytes: u64,
    /// New connections of a round.
    pub(super) connections: usize,
    /// Connections that are open at the same time, if there are enough descriptors.
    pub(super) open: usize,
}

/// A proxy, or none.
struct Proxy {
    name: &'static str,
    route: Route,
    /// The route to the server for connections that stay open.
    holding: Route,
    server: Option<Server>,
}

/// The measurements.
pub(super) struct Healthy {
    figures: Figures,
    names: Vec<&'static str>,
    open: usize,
}

/// Measures all installed proxies in turn.
pub(super) fn measure(
    programs: &Programs,
    arena: &Arena,
    amounts: &Amounts,
) -> Result<Healthy, String> {
    traffic::serve(PORT)?;
    let holding = HoldingServer::serve(HOLDING)?;
    let proxies = start(programs, arena)?;
    let mut figures = Figures::default();
    for round in 0..amounts.rounds {
        println!("proxy: round {} of {}", round + 1, amounts.rounds);
        for turn in 0..proxies.len() {
            let proxy = &proxies[(turn + round) % proxies.len()];
            first_bytes(&mut figures, proxy, amounts.first_bytes);
            transfer(&mut figures, proxy, amounts.bytes);
            figures.add(proxy.name, CONNECTIONS, rate(proxy.route, amounts.connections));
        }
    }
    let open = amounts.open.min(max_open());
    drop(proxies);
    for proxy in start(programs, arena)? {
        println!("proxy: {open} open, {}", proxy.name);
        if let Some(server) = &proxy.server {
            figures.add(proxy.name, MEMORY, hold(proxy.holding, server.id(), open));
            holding.close_all();
        }
    }
    let names = [DIRECT, EYAS, HAPROXY, MICROSOCKS];
    let names = names.into_iter().filter(|name| figures.rounds(name, FIRST_BYTE).is_some());
    Ok(Healthy { names: names.collect(), figures, open })
}

/// Starts all proxies.
fn start(programs: &Programs, arena: &Arena) -> Result<Vec<Proxy>, String> {
    let directory = arena.directory();
    let mut all =
        vec![Proxy { name: DIRECT, route: Route::Direct, holding: Route::Direct, server: None }];
    let mut add = |name: &'static str, program: &Command, route: Route, holding: Route| {
        let (Route::At(at) | Route::Socks(at)) = route else {
            return Err("a proxy has an address".into());
        };
        let server = Server::start(name, program, at, directory)?;
        all.push(Proxy { name, route, holding, server: Some(server) });
        Ok::<(), String>(())
    };
    let mut eyas = programs.eyas(&["proxy", "--max-connections", "20000", "--listen"]);
    eyas.arg(EYAS_AT.to_string()).env("XDG_STATE_HOME", directory);
    let route = Route::Socks(EYAS_AT);
    add(EYAS, &eyas, route, route)?;
    if let Some(program) = &programs.haproxy {
        let file = arena.write("haproxy.cfg", &configuration(max_open()))?;
        let mut haproxy = Command::new(program);
        haproxy.args(["-db", "-f"]).arg(file);
        add(HAPROXY, &haproxy, Route::At(HAPROXY_AT), Route::At(HAPROXY_HOLDING_AT))?;
    }
    if let Some(program) = &programs.microsocks {
        let mut microsocks = Command::new(program);
        microsocks.args(["-i", "127.0.0.1", "-p", &MICROSOCKS_AT.port().to_string()]);
        let route = Route::Socks(MICROSOCKS_AT);
        add(MICROSOCKS, &microsocks, route, route)?;
    }
    Ok(all)
}

/// Returns the configuration of HAProxy: the address of the server, and by default all cores.
fn configuration(max_connections: usize) -> String {
    format!(
        "global\n  maxconn {max_connections}\n\
         defaults\n  mode tcp\n  maxconn {max_connections}\n  timeout connect 5s\n  timeout client 1h\n  \
         timeout server 1h\n\
         listen passing\n  bind {HAPROXY_AT}\n  server it 127.0.0.1:{PORT}\n\
         listen holding\n  bind {HAPROXY_HOLDING_AT}\n  server it 127.0.0.1:{HOLDING}\n"
    )
}

/// Measures the time from connecting to the first byte, each with its own connection.
fn first_bytes(figures: &mut Figures, proxy: &Proxy, count: usize) {
    for _ in 0..count {
        let start = Instant::now();
        let response = connect(proxy.route, PORT).and_then(|mut stream| request(&mut stream, 1));
        let elapsed = start.elapsed();
        let figure = response.map(|_| milliseconds(elapsed)).map_err(|error| error.to_string());
        figures.add(proxy.name, FIRST_BYTE, figure);
    }
}

/// Measures a transfer over one connection, and the CPU time of the proxy.
fn transfer(figures: &mut Figures, proxy: &Proxy, bytes: u64) {
    let spent = || proxy.server.as_ref().map_or(Ok(0.0), |server| cpu_time(server.id()));
    let result = || {
        let before = spent()?;
        let stream = connect(proxy.route, PORT);
        let response = stream.and_then(|mut stream| request(&mut stream, bytes));
        let seconds = response.map_err(|error| error.to_string())?.whole.as_secs_f64();
        Ok::<_, String>((seconds, (spent()? - before) / 1e3))
    };
    let result = result();
    let of = |figure: fn((f64, f64), f64) -> f64| {
        result.clone().map(|result| figure(result, bytes as f64 / 1e9))
    };
    figures.add(proxy.name, SPEED, of(|(seconds, _), gigabytes| gigabytes * 8e3 / seconds));
    if proxy.server.is_some() {
        figures.add(proxy.name, CPU_TIME, of(|(_, cpu_time), gigabytes| cpu_time / gigabytes));
    }
}

/// Returns the number of new connections per second, each of which transfers one byte.
fn rate(route: Route, count: usize) -> Result<f64, String> {
    let start = Instant::now();
    let client = move || {
        for _ in 0..count / CLIENTS {
            let response = connect(route, PORT).and_then(|mut stream| request(&mut stream, 1));
            response.map_err(|error| error.to_string())?;
        }
        Ok::<(), String>(())
    };
    let clients: Vec<_> = (0..CLIENTS).map(|_| thread::spawn(client)).collect();
    for client in clients {
        client.join().map_err(|_| "a client has panicked")??;
    }
    Ok((count / CLIENTS * CLIENTS) as f64 / start.elapsed().as_secs_f64())
}

/// Returns the resident memory of a proxy per connection in KiB, with this number of connections, each
/// of which has transferred one byte.
fn hold(route: Route, id: u32, count: usize) -> Result<f64, String> {
    let open = || -> std::io::Result<TcpStream> {
        let mut stream = connect(route, HOLDING)?;
        request(&mut stream, 1)?;
        Ok(stream)
    };
    let before = resident(id)?;
    let opened = (0..count).map(|_| open()).collect::<Result<Vec<_>, _>>();
    let opened = opened.map_err(|error| error.to_string())?;
    let after = resident(id)?;
    drop(opened);
    Ok((after - before) / count as f64)
}

/// Returns the number of connections for both ends of which a process has descriptors, with some to spare.
fn max_open() -> usize {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    limit(&text).unwrap_or(1024).saturating_sub(OTHER_DESCRIPTORS) * 2 / 5
}

fn limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

pub(super) const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

impl Healthy {
    /// Returns a table of medians of each proxy.
    pub(super) fn table(&self) -> String {
        self.figures.table(&format!("proxy, {} connections open", self.open), &self.names, &COLUMNS)
    }

    /// Returns the targets for the proxy.
    pub(super) fn expectations(&self) -> Vec<Expectation> {
        let of = |name, column| self.figures.median(name, column);
        let first = of(EYAS, FIRST_BYTE).zip(of(DIRECT, FIRST_BYTE));
        let later = first.map(|(ours, direct)| ours - direct);
        let cost = |rival| ratio(of(EYAS, CPU_TIME), of(rival, CPU_TIME));
        vec![
            expectation(
                "proxy, first byte: at most 1 ms later",
                later,
                Bound::AtMost(MAX_ADDED),
                "ms",
            ),
            expectation(
                "proxy, CPU per GB: at most 1.2 × HAProxy",
                cost(HAPROXY),
                Bound::AtMost(MAX_OF_HAPROXY),
                "",
            ),
            expectation(
                "proxy, CPU per GB: below microsocks",
                cost(MICROSOCKS),
                Bound::AtMost(MAX_OF_MICROSOCKS),
                "",
            ),
            expectation(
                "proxy: at least 2,000 new connections per second",
                of(EYAS, CONNECTIONS),
                Bound::AtLeast(MIN_RATE),
                "",
            ),
            expectation(
                "proxy: an open connection takes at most 32 KiB",
                of(EYAS, MEMORY),
                Bound::AtMost(MAX_MEMORY),
                "KiB",
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_descriptors_is_parsed() {
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax processes  5  6  processes\n\
                    Max open files            1024                 20000                files\n";
        assert_eq!(limit(text), Some(1024));
        assert!(max_open() > 0);
    }

    #[test]
    fn expectations_hold_or_not() {
        let mut figures = Figures::default();
        for (name, column, figure) in [
            (EYAS, FIRST_BYTE, 1.5),
            (DIRECT, FIRST_BYTE, 0.3),
            (EYAS, CPU_TIME, 0.3),
            (HAPROXY, CPU_TIME, 0.3),
            (EYAS, CONNECTIONS, 2500.0),
        ] {
            figures.add(name, column, Ok(figure));
        }
        let healthy = Healthy { figures, names: vec![DIRECT, EYAS], open: 10 };
        let rows: String = healthy.expectations().iter().map(Expectation::row).collect();
        for row in [
            "1 ms later | 1.20 ms | **no** |",
            "HAProxy | 1.00 | yes |",
            "microsocks | – | not measured |",
            "per second | 2500 | yes |",
        ] {
            assert!(rows.contains(row), "{row} in {rows}");
        }
        assert!(healthy.table().contains("| no proxy | 0.300 | – | – | – | – |"));
    }
}
