//! `eyas serve --upstream`, compared with Caddy and HAProxy, over all versions of HTTP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::programs::Programs;
use super::proxy::loopback;
use super::traffic;
use crate::arena::{self, Arena, HEALTHY};
use crate::process::cpu_time;
use crate::run::{command, output};
use crate::server::Server;
use crate::tables::{Column, Figures, expectation, ratio};
use crate::verdict::{Bound, Expectation};

/// The address of the upstream.
const UPSTREAM: SocketAddr = loopback(7080);

const EYAS: &str = "eyas serve --upstream";
const CADDY: &str = "Caddy";
const HAPROXY: &str = "HAProxy";

/// Each version of HTTP, with the columns for requests per second and for the cost of a request.
const VERSIONS: [(Http, &str, &str); 3] = [
    (Http::One, "h1, requests/s", "h1, CPU µs"),
    (Http::Two, "h2, requests/s", "h2, CPU µs"),
    (Http::Three, "h3, requests/s", "h3, CPU µs"),
];
/// Connections of the client, and concurrent requests on each of them, except over HTTP/1.1.
const CONNECTIONS: usize = 32;
const STREAMS: usize = 8;
/// More requests per second than any gateway answers over HTTP/3: requests that exceed the number of
/// streams are dropped before they start.
const OFFERED: u32 = 40_000;
/// A time limit that nothing reaches, in seconds.
const LIMIT: &str = "60";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Http {
    One,
    Two,
    Three,
}

/// How much is measured.
pub(super) struct Amounts {
    pub(super) rounds: usize,
    /// Requests of a round over HTTP/1.1 and 2.
    pub(super) requests: u32,
    /// Seconds of a round over HTTP/3.
    pub(super) seconds: u32,
}

/// A running gateway.
struct Gateway {
    name: &'static str,
    at: SocketAddr,
    has_h3: bool,
    server: Server,
}

/// The measurements.
pub(super) struct Measured {
    figures: Figures,
    names: Vec<&'static str>,
}

/// Measures all installed gateways in turn.
pub(super) fn measure(
    programs: &Programs,
    arena: &Arena,
    amounts: &Amounts,
) -> Result<Measured, String> {
    traffic::serve_http(UPSTREAM.port())?;
    let gateways = start(programs, arena)?;
    let clients = Clients { programs, authority: arena.authority(), amounts };
    let mut figures = Figures::default();
    for round in 0..amounts.rounds {
        println!("gateway: round {} of {}", round + 1, amounts.rounds);
        for (version, requests, cost) in VERSIONS {
            for turn in 0..gateways.len() {
                let gateway = &gateways[(turn + round) % gateways.len()];
                if version == Http::Three && (!gateway.has_h3) {
                    continue;
                }
                let result = clients.load(gateway, version);
                let of = |figure: fn(&LoadResult) -> f64| {
                    result.as_ref().map(figure).map_err(String::clone)
                };
                figures.add(gateway.name, requests, of(|result| result.rate));
                figures.add(gateway.name, cost, of(|result| result.cost));
            }
        }
    }
    let names = gateways.iter().map(|gateway| gateway.name).collect();
    Ok(Measured { figures, names })
}

fn start(programs: &Programs, arena: &Arena) -> Result<Vec<Gateway>, String> {
    let directory = arena.directory();
    let (certificate, key) = (directory.join("server.pem"), directory.join("server.key"));
    let at = loopback(7443);
    let mut eyas = programs.eyas(&["serve", "--no-sctp", "--listen"]);
    eyas.arg(at.to_string()).arg("--upstream").arg(format!("http://{UPSTREAM}"));
    eyas.arg("--cert").arg(&certificate).arg("--key").arg(&key);
    let server = Server::start(EYAS, &eyas, at, directory)?;
    let mut all = vec![Gateway { name: EYAS, at, has_h3: true, server }];
    if let Some(program) = &programs.caddy {
        let at = loopback(7444);
        let handler =
            json!({ "handler": "reverse_proxy", "upstreams": [{ "dial": UPSTREAM.to_string() }] });
        let server = arena::caddy(program, directory, at, &[at.to_string()], &handler)?;
        all.push(Gateway { name: CADDY, at, has_h3: true, server });
    }
    if let Some(program) = &programs.haproxy {
        let at = loopback(7445);
        let both = concatenated(arena, &certificate, &key)?;
        let file = arena.write("haproxy-http.cfg", &configuration(at, &both))?;
        let mut haproxy = Command::new(program);
        haproxy.args(["-db", "-f"]).arg(file);
        let server = Server::start(HAPROXY, &haproxy, at, directory)?;
        // Debian builds it without QUIC.
        all.push(Gateway { name: HAPROXY, at, has_h3: false, server });
    }
    Ok(all)
}

/// Writes the certificate and its key to one file, as HAProxy requires.
fn concatenated(arena: &Arena, certificate: &Path, key: &Path) -> Result<PathBuf, String> {
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{path:?}: {error}"));
    arena.write("haproxy.pem", &format!("{}{}", read(certificate)?, read(key)?))
}

fn configuration(at: SocketAddr, certificate: &Path) -> String {
    format!(
        "defaults\n  mode http\n  option forwardfor\n  timeout connect 5s\n  timeout client 60s\n  \
         timeout server 60s\n\
         listen gateway\n  bind {at} ssl crt {} alpn h2,http/1.1\n  server it {UPSTREAM}\n",
        certificate.display()
    )
}

/// The result of a load on a gateway.
#[derive(Debug, PartialEq)]
struct LoadResult {
    /// Requests per second.
    rate: f64,
    /// CPU time of the gateway per request, in microseconds.
    cost: f64,
}

struct Clients<'a> {
    programs: &'a Programs,
    authority: PathBuf,
    amounts: &'a Amounts,
}

impl Clients<'_> {
    fn load(&self, gateway: &Gateway, version: Http) -> Result<LoadResult, String> {
        let before = cpu_time(gateway.server.id())?;
        let (requests, rate) = match version {
            Http::Three => answered(&output(&mut self.eyas_load(gateway.at))?)?,
            _ => succeeded(&output(&mut self.h2load(gateway.at, version))?)?,
        };
        let spent = cpu_time(gateway.server.id())? - before;
        Ok(LoadResult { rate, cost: spent * 1e3 / requests })
    }

    fn h2load(&self, at: SocketAddr, version: Http) -> Command {
        let mut command = limited("h2load");
        command.args(["-n", &self.amounts.requests.to_string(), "-c", &CONNECTIONS.to_string()]);
        match version {
            Http::One => command.arg("--h1"),
            _ => command.args(["-m", &STREAMS.to_string()]),
        };
        command.arg(format!("--connect-to={at}"));
        command.arg(format!("https://{}:{}/", HEALTHY.host, at.port()));
        command
    }

    /// Returns the load over HTTP/3, which Debian's h2load does not support.
    fn eyas_load(&self, at: SocketAddr) -> Command {
        let mut command = limited(&self.programs.eyas(&[]).get_program().to_string_lossy());
        command.args(["load", "--json", "--http3-only", "--no-memory", "--arrivals", "constant"]);
        command.args(["--rate", &OFFERED.to_string()]);
        command.args(["--duration", &format!("{}s", self.amounts.seconds)]);
        command.args([
            "--connections",
            &CONNECTIONS.to_string(),
            "--streams",
            &STREAMS.to_string(),
        ]);
        command.args(["--max-in-flight", &(CONNECTIONS * STREAMS).to_string()]);
        command.arg("--cacert").arg(&self.authority);
        let port = at.port();
        command.arg("--resolve").arg(format!("{}:{port}:{}", HEALTHY.host, at.ip()));
        command.arg(format!("https://{}:{port}/", HEALTHY.host));
        command
    }
}

fn limited(program: &str) -> Command {
    command("timeout", &["--signal=KILL", LIMIT, program])
}

/// Parses the number of successful requests, and their rate per second, from the output of h2load.
fn succeeded(output: &str) -> Result<(f64, f64), String> {
    let line = |start: &str| {
        let line = output.lines().find(|line| line.starts_with(start));
        line.ok_or_else(|| format!("h2load does not report `{start}`: {output}"))
    };
    let before = |line: &str, word: &str| {
        let (before, _) = line.split_once(word)?;
        before.trim_end().rsplit([' ', ',']).next()?.parse::<f64>().ok()
    };
    let (requests, finished) = (line("requests:")?, line("finished in")?);
    let figures =
        (before(requests, " succeeded"), before(requests, " total"), before(finished, " req/s"));
    match figures {
        (Some(done), Some(total), Some(rate)) if done == total => Ok((done, rate)),
        _ => Err(format!("not all requests succeeded: {requests}; {finished}")),
    }
}

/// Parses the same from the output of `eyas load`.
fn answered(output: &str) -> Result<(f64, f64), String> {
    let report: Value = serde_json::from_str(output).map_err(|error| error.to_string())?;
    let outcome = &report["outcome"];
    let (answered, rate) = (outcome["answered"].as_f64(), outcome["answered_per_second"].as_f64());
    match (answered, rate) {
        (Some(done), Some(rate)) if outcome["statuses"]["200"].as_f64() == answered => {
            Ok((done, rate))
        }
        _ => Err(format!("not all requests succeeded: {}", outcome["statuses"])),
    }
}

impl Measured {
    /// Returns a table of medians of each gateway.
    pub(super) fn table(&self) -> String {
        let columns = VERSIONS.map(|(_, requests, cost)| {
            [Column { name: requests, digits: 0 }, Column { name: cost, digits: 1 }]
        });
        self.figures.table("in front of an upstream", &self.names, columns.as_flattened())
    }

    /// Returns the targets for the gateway.
    pub(super) fn expectations(&self) -> Vec<Expectation> {
        let of = |name, column| self.figures.median(name, column);
        let mut expectations = Vec::new();
        for (_, requests, cost) in VERSIONS {
            let rate = ratio(of(EYAS, requests), of(CADDY, requests));
            let target = format!("gateway, {requests}: at least Caddy's");
            expectations.push(expectation(&target, rate, Bound::AtLeast(1.0), ""));
            let cost_of = ratio(of(EYAS, cost), of(CADDY, cost));
            let target = format!("gateway, {cost} per request: at most Caddy's");
            expectations.push(expectation(&target, cost_of, Bound::AtMost(1.0), ""));
        }
        expectations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_h2load_is_parsed() {
        let output = "progress: 100% done\n\nfinished in 84.86ms, 5892.06 req/s, 644.44KB/s\n\
            requests: 500 total, 500 started, 500 done, 500 succeeded, 0 failed, 0 errored\n";
        assert_eq!(succeeded(output), Ok((500.0, 5892.06)));
        let lost = output.replace("500 succeeded", "499 succeeded");
        assert!(succeeded(&lost).unwrap_err().contains("not all"));
        assert!(succeeded("").unwrap_err().contains("requests:"));
    }

    #[test]
    fn the_output_of_eyas_load_is_parsed() {
        let output = |successful: u32| {
            let outcome = json!({
                "answered": 10, "answered_per_second": 5.0, "statuses": { "200": successful },
            });
            json!({ "outcome": outcome }).to_string()
        };
        assert_eq!(answered(&output(10)), Ok((10.0, 5.0)));
        assert!(answered(&output(9)).is_err());
        assert!(answered("").is_err());
    }

    #[test]
    fn expectations_are_about_caddy() {
        let mut figures = Figures::default();
        for (name, column, figure) in [
            (EYAS, "h2, requests/s", 5.0),
            (CADDY, "h2, requests/s", 10.0),
            (EYAS, "h2, CPU µs", 5.0),
            (CADDY, "h2, CPU µs", 10.0),
        ] {
            figures.add(name, column, Ok(figure));
        }
        let measured = Measured { figures, names: vec![EYAS, CADDY] };
        let rows: String = measured.expectations().iter().map(Expectation::row).collect();
        assert!(rows.contains("h2, requests/s: at least Caddy's | 0.50 | **no** |"), "{rows}");
        assert!(rows.contains("h2, CPU µs per request: at most Caddy's | 0.50 | yes |"), "{rows}");
        assert!(measured.table().contains("| Caddy | – | – | 10 | 10.0 | – | – |"));
    }
}
