//! `eyas proxy` on a path without a fault, beside microsocks, HAProxy's TCP mode and no proxy.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Instant;
use std::{fs, thread};

use super::super::arena::Arena;
use super::super::cost::{processor, resident};
use super::super::server::Server;
use super::super::verdict::{Bound, Expectation};
use super::programs::Programs;
use super::tables::{Column, Figures, expectation, ratio};
use super::traffic::{self, Staying, Way, ask, connect, milliseconds};

/// Where the servers are: for clients that come and go, and for those who stay.
const PORT: u16 = 7001;
const STAYING: u16 = 7002;
/// Where the proxies are. HAProxy has one for each port of the server.
const EYAS_AT: SocketAddr = loopback(7010);
const MICROSOCKS_AT: SocketAddr = loopback(7011);
const HAPROXY_AT: SocketAddr = loopback(7012);
const HAPROXY_STAYING_AT: SocketAddr = loopback(7013);

const DIRECT: &str = "no proxy";
const EYAS: &str = "eyas proxy";
const HAPROXY: &str = "HAProxy, TCP";
const MICROSOCKS: &str = "microsocks";

const FIRST_BYTE: &str = "first byte, ms";
const PROCESSOR: &str = "CPU-s per GB";
const SPEED: &str = "Mbit/s";
const CONNECTIONS: &str = "connections/s";
const MEMORY: &str = "KiB per open connection";
const COLUMNS: [Column; 5] = [
    Column { name: FIRST_BYTE, digits: 3 },
    Column { name: PROCESSOR, digits: 3 },
    Column { name: SPEED, digits: 0 },
    Column { name: CONNECTIONS, digits: 0 },
    Column { name: MEMORY, digits: 1 },
];

/// Clients that connect at once.
const CLIENTS: usize = 4;
/// Descriptors of a process that are not connections.
const OTHER_DESCRIPTORS: usize = 200;
/// Milliseconds that the proxy may take longer than no proxy.
const LATER: f64 = 1.0;
/// What the proxy may take of HAProxy's CPU time, and of microsocks'.
const OF_HAPROXY: f64 = 1.2;
const OF_MICROSOCKS: f64 = 1.0;
const A_SECOND: f64 = 2000.0;
const EACH: f64 = 32.0;

/// How much is measured.
pub(super) struct Amounts {
    pub(super) rounds: usize,
    /// Connections of a round whose first byte is waited for.
    pub(super) first_bytes: usize,
    /// Bytes of a round.
    pub(super) bytes: u64,
    /// New connections of a round.
    pub(super) connections: usize,
    /// Connections that are open at once, if there are descriptors for so many.
    pub(super) open: usize,
}

/// A way through a proxy, or without.
struct Proxy {
    name: &'static str,
    way: Way,
    /// The way to the server for those who stay.
    staying: Way,
    server: Option<Server>,
}

/// What was measured.
pub(super) struct Healthy {
    figures: Figures,
    names: Vec<&'static str>,
    open: usize,
}

/// Measures all proxies that are there, in turns.
pub(super) fn measure(
    programs: &Programs,
    arena: &Arena,
    amounts: &Amounts,
) -> Result<Healthy, String> {
    traffic::serve(PORT)?;
    let staying = Staying::serve(STAYING)?;
    let proxies = start(programs, arena)?;
    let mut figures = Figures::default();
    for round in 0..amounts.rounds {
        println!("proxy: round {} of {}", round + 1, amounts.rounds);
        for turn in 0..proxies.len() {
            let proxy = &proxies[(turn + round) % proxies.len()];
            first_bytes(&mut figures, proxy, amounts.first_bytes);
            carry(&mut figures, proxy, amounts.bytes);
            figures.add(proxy.name, CONNECTIONS, rate(proxy.way, amounts.connections));
        }
    }
    let open = amounts.open.min(most_open());
    drop(proxies);
    for proxy in start(programs, arena)? {
        println!("proxy: {open} open, {}", proxy.name);
        if let Some(server) = &proxy.server {
            figures.add(proxy.name, MEMORY, hold(proxy.staying, server.id(), open));
            staying.let_go();
        }
    }
    let names = [DIRECT, EYAS, HAPROXY, MICROSOCKS];
    let names = names.into_iter().filter(|name| figures.rounds(name, FIRST_BYTE).is_some());
    Ok(Healthy { names: names.collect(), figures, open })
}

/// Starts the proxies anew.
fn start(programs: &Programs, arena: &Arena) -> Result<Vec<Proxy>, String> {
    let directory = arena.directory();
    let mut all =
        vec![Proxy { name: DIRECT, way: Way::Direct, staying: Way::Direct, server: None }];
    let mut add = |name: &'static str, program: &Command, way: Way, staying: Way| {
        let (Way::At(at) | Way::Socks(at)) = way else { return Err("a proxy has a place".into()) };
        let server = Server::start(name, program, at, directory)?;
        all.push(Proxy { name, way, staying, server: Some(server) });
        Ok::<(), String>(())
    };
    let mut eyas = programs.eyas(&["proxy", "--max-connections", "20000", "--listen"]);
    eyas.arg(EYAS_AT.to_string()).env("XDG_STATE_HOME", directory);
    let way = Way::Socks(EYAS_AT);
    add(EYAS, &eyas, way, way)?;
    if let Some(program) = &programs.haproxy {
        let file = arena.write("haproxy.cfg", &configuration(most_open()))?;
        let mut haproxy = Command::new(program);
        haproxy.args(["-db", "-f"]).arg(file);
        add(HAPROXY, &haproxy, Way::At(HAPROXY_AT), Way::At(HAPROXY_STAYING_AT))?;
    }
    if let Some(program) = &programs.microsocks {
        let mut microsocks = Command::new(program);
        microsocks.args(["-i", "127.0.0.1", "-p", &MICROSOCKS_AT.port().to_string()]);
        let way = Way::Socks(MICROSOCKS_AT);
        add(MICROSOCKS, &microsocks, way, way)?;
    }
    Ok(all)
}

/// HAProxy is told where the server is, and has all cores, as it has unless it is told otherwise.
fn configuration(most: usize) -> String {
    format!(
        "global\n  maxconn {most}\n\
         defaults\n  mode tcp\n  maxconn {most}\n  timeout connect 5s\n  timeout client 1h\n  \
         timeout server 1h\n\
         listen passing\n  bind {HAPROXY_AT}\n  server it 127.0.0.1:{PORT}\n\
         listen staying\n  bind {HAPROXY_STAYING_AT}\n  server it 127.0.0.1:{STAYING}\n"
    )
}

/// Each with a connection of its own: from connecting to the first byte.
fn first_bytes(figures: &mut Figures, proxy: &Proxy, count: usize) {
    for _ in 0..count {
        let start = Instant::now();
        let seen = connect(proxy.way, PORT).and_then(|mut stream| ask(&mut stream, 1));
        let taken = start.elapsed();
        let figure = seen.map(|_| milliseconds(taken)).map_err(|error| error.to_string());
        figures.add(proxy.name, FIRST_BYTE, figure);
    }
}

/// Bytes over one connection, and what the proxy takes for them.
fn carry(figures: &mut Figures, proxy: &Proxy, bytes: u64) {
    let spent = || proxy.server.as_ref().map_or(Ok(0.0), |server| processor(server.id()));
    let carried = || {
        let before = spent()?;
        let stream = connect(proxy.way, PORT);
        let seen = stream.and_then(|mut stream| ask(&mut stream, bytes));
        let seconds = seen.map_err(|error| error.to_string())?.whole.as_secs_f64();
        Ok::<_, String>((seconds, (spent()? - before) / 1e3))
    };
    let carried = carried();
    let of = |figure: fn((f64, f64), f64) -> f64| {
        carried.clone().map(|carried| figure(carried, bytes as f64 / 1e9))
    };
    figures.add(proxy.name, SPEED, of(|(seconds, _), gigabytes| gigabytes * 8e3 / seconds));
    if proxy.server.is_some() {
        figures.add(proxy.name, PROCESSOR, of(|(_, processor), gigabytes| processor / gigabytes));
    }
}

/// New connections a second, with a byte over each.
fn rate(way: Way, count: usize) -> Result<f64, String> {
    let start = Instant::now();
    let client = move || {
        for _ in 0..count / CLIENTS {
            let seen = connect(way, PORT).and_then(|mut stream| ask(&mut stream, 1));
            seen.map_err(|error| error.to_string())?;
        }
        Ok::<(), String>(())
    };
    let clients: Vec<_> = (0..CLIENTS).map(|_| thread::spawn(client)).collect();
    for client in clients {
        client.join().map_err(|_| "a client has panicked")??;
    }
    Ok((count / CLIENTS * CLIENTS) as f64 / start.elapsed().as_secs_f64())
}

/// Resident KiB of a proxy for each of so many connections, of which each has carried a byte.
fn hold(way: Way, id: u32, count: usize) -> Result<f64, String> {
    let open = || -> std::io::Result<TcpStream> {
        let mut stream = connect(way, STAYING)?;
        ask(&mut stream, 1)?;
        Ok(stream)
    };
    let before = resident(id)?;
    let opened = (0..count).map(|_| open()).collect::<Result<Vec<_>, _>>();
    let opened = opened.map_err(|error| error.to_string())?;
    let after = resident(id)?;
    drop(opened);
    Ok((after - before) / count as f64)
}

/// Connections for whose two ends a process has descriptors; this one, and every proxy.
fn most_open() -> usize {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    limit(&text).unwrap_or(1024).saturating_sub(OTHER_DESCRIPTORS) / 2
}

fn limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

pub(super) const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

impl Healthy {
    /// Medians of each way.
    pub(super) fn table(&self) -> String {
        self.figures.table(&format!("{} open", self.open), &self.names, &COLUMNS)
    }

    /// What is wanted of the proxy.
    pub(super) fn expectations(&self) -> Vec<Expectation> {
        let of = |name, column| self.figures.median(name, column);
        let first = of(EYAS, FIRST_BYTE).zip(of(DIRECT, FIRST_BYTE));
        let later = first.map(|(ours, direct)| ours - direct);
        let cost = |rival| ratio(of(EYAS, PROCESSOR), of(rival, PROCESSOR));
        vec![
            expectation("proxy, first byte: at most 1 ms later", later, Bound::AtMost(LATER), "ms"),
            expectation(
                "proxy, CPU per GB: at most 1.2 × HAProxy",
                cost(HAPROXY),
                Bound::AtMost(OF_HAPROXY),
                "",
            ),
            expectation(
                "proxy, CPU per GB: below microsocks",
                cost(MICROSOCKS),
                Bound::AtMost(OF_MICROSOCKS),
                "",
            ),
            expectation(
                "proxy: at least 2,000 new connections per second",
                of(EYAS, CONNECTIONS),
                Bound::AtLeast(A_SECOND),
                "",
            ),
            expectation(
                "proxy: an open connection takes at most 32 KiB",
                of(EYAS, MEMORY),
                Bound::AtMost(EACH),
                "KiB",
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_a_table_of_limits() {
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax processes  5  6  processes\n\
                    Max open files            1024                 20000                files\n";
        assert_eq!(limit(text), Some(1024));
        assert!(most_open() > 0);
    }

    #[test]
    fn expectations_hold_or_not() {
        let mut figures = Figures::default();
        for (name, column, figure) in [
            (EYAS, FIRST_BYTE, 1.5),
            (DIRECT, FIRST_BYTE, 0.3),
            (EYAS, PROCESSOR, 0.3),
            (HAPROXY, PROCESSOR, 0.3),
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
