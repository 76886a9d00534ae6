//! `eyas get` and curl fetch the same large body in turn.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::calls::{limited, run_into_pipe};
use super::programs::Programs;
use crate::arena::Arena;
use crate::run::{command, output};
use crate::server::Server;
use crate::tables::{Column, Figures, expectation, ratio};
use crate::verdict::{Bound, Expectation};

/// Where a server of `/bytes/N` listens over TLS.
pub(super) const FILE_SERVER: SocketAddr = loopback(7443);

pub(super) const EYAS: &str = "eyas get";
pub(super) const CURL: &str = "curl";
/// The heading of the columns: the ratio follows the speed of each program.
const SPEED: [&str; 3] = ["`/dev/null`, MB/s", "file, MB/s", "pipe, MB/s"];

/// A version of HTTP: its name, and how curl and eyas are asked for it.
#[derive(Clone, Copy)]
pub(super) struct Version {
    pub(super) name: &'static str,
    pub(super) eyas: &'static str,
    pub(super) curl: &'static str,
    /// The least speed of eyas relative to curl.
    least: f64,
}

pub(super) const VERSIONS: [Version; 3] = [
    Version { name: "HTTP/1.1", eyas: "--http1.1", curl: "--http1.1", least: 1.0 },
    Version { name: "HTTP/2", eyas: "--http2", curl: "--http2", least: 1.0 },
    Version { name: "HTTP/3", eyas: "--http3-only", curl: "--http3-only", least: 0.5 },
];

/// Where the body goes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Output {
    Null,
    File,
    Pipe,
}

pub(super) const OUTPUTS: [Output; 3] = [Output::Null, Output::File, Output::Pipe];

impl Output {
    /// Returns its name in the tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Null => "`/dev/null`",
            Self::File => "a file",
            Self::Pipe => "a pipe",
        }
    }

    const fn column(self) -> &'static str {
        SPEED[self as usize]
    }

    /// Adds the option of both eyas and curl.
    fn add_to(self, client: &mut Command, directory: &Path) {
        match self {
            Self::Null => client.args(["-o", "/dev/null"]),
            Self::File => client.arg("-o").arg(directory.join("body")),
            Self::Pipe => client.args(["-o", "-"]),
        };
    }
}

/// Returns `eyas get` of a number of bytes.
pub(super) fn eyas(
    programs: &Programs,
    version: Version,
    output: Output,
    directory: &Path,
    url: &str,
) -> Command {
    let mut client = programs.eyas(&["get", "-k", "-s", "--memory", "none", version.eyas, url]);
    output.add_to(&mut client, directory);
    client
}

pub(super) const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// Starts `eyas serve` with more options.
pub(super) fn serve(
    programs: &Programs,
    directory: &Path,
    at: SocketAddr,
    more: &[&str],
) -> Result<Server, String> {
    let mut eyas = programs.eyas(&["serve", "--no-sctp", "--listen", &at.to_string()]);
    if !more.contains(&"--upstream") {
        eyas.arg("--no-files");
    }
    Server::start("serve", eyas.args(more), at, directory)
}

/// The measurements.
pub(super) struct Measured {
    figures: Figures,
    curl_has_http3: bool,
}

/// Measures both clients in turn.
pub(super) fn measure(
    programs: &Programs,
    arena: &Arena,
    rounds: usize,
    bytes: u64,
) -> Result<Measured, String> {
    let directory = arena.directory();
    let _server = serve(programs, directory, FILE_SERVER, &[])?;
    let url = format!("https://{FILE_SERVER}/bytes/{bytes}");
    let curl_has_http3 = programs.curl_has_http3;
    let mut figures = Figures::default();
    for round in 0..rounds {
        println!("speed: round {} of {rounds}", round + 1);
        for version in VERSIONS {
            for to in OUTPUTS {
                let eyas = eyas(programs, version, to, directory, &url);
                let mut clients = vec![(EYAS, eyas)];
                if is_of_curl(version, curl_has_http3) {
                    let mut curl = command("curl", &["-k", "-s", "-f", version.curl, &url]);
                    to.add_to(&mut curl, directory);
                    clients.push((CURL, curl));
                }
                if round % 2 == 1 {
                    clients.reverse();
                }
                for (name, client) in clients {
                    let speed = speed(&client, to, bytes);
                    figures.add(&row(version, name), to.column(), speed);
                }
            }
        }
    }
    Ok(Measured { figures, curl_has_http3 })
}

/// Returns the version of curl that one of eyas is compared with: where curl has no HTTP/3, HTTP/2.
pub(super) fn curl_version(version: Version, curl_has_http3: bool) -> Version {
    if is_of_curl(version, curl_has_http3) { version } else { VERSIONS[1] }
}

/// Returns whether curl has this version.
pub(super) fn is_of_curl(version: Version, curl_has_http3: bool) -> bool {
    version.curl != "--http3-only" || curl_has_http3
}

/// Returns a table with a row for each version and client.
pub(super) fn table_of_clients(figures: &Figures, title: &str, columns: &[Column]) -> String {
    let rows: Vec<String> = VERSIONS
        .iter()
        .flat_map(|version| [EYAS, CURL].map(|client| row(*version, client)))
        .collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    figures.table(title, &rows, columns)
}

/// Returns the name of a row of a table.
pub(super) fn row(version: Version, client: &str) -> String {
    format!("{}, {client}", version.name)
}

/// Returns the MB per second of a transfer, from the start of the program to its end.
fn speed(client: &Command, to: Output, bytes: u64) -> Result<f64, String> {
    let start = Instant::now();
    match to {
        Output::Pipe => run_into_pipe(client)?,
        Output::Null | Output::File => drop(output(&mut limited(client))?),
    }
    Ok(bytes as f64 / 1e6 / start.elapsed().as_secs_f64())
}

impl Measured {
    /// Returns a table with a row for each version and client.
    pub(super) fn table(&self) -> String {
        let columns = SPEED.map(|name| Column { name, digits: 0 });
        table_of_clients(&self.figures, "1 GB over loopback", &columns)
    }

    /// Returns the targets. Where curl has no HTTP/3, HTTP/3 is compared with its HTTP/2.
    pub(super) fn expectations(&self) -> Vec<Expectation> {
        let mut expectations = Vec::new();
        for version in VERSIONS {
            let theirs = curl_version(version, self.curl_has_http3);
            for to in OUTPUTS {
                let median =
                    |version, client: &str| self.figures.median(&row(version, client), to.column());
                let measured = ratio(median(version, EYAS), median(theirs, CURL));
                let target = format!(
                    "{} to {}: at least {} × curl over {}",
                    version.name,
                    to.name(),
                    version.least,
                    theirs.name
                );
                let bound = Bound::AtLeast(version.least);
                expectations.push(expectation(&target, measured, bound, ""));
            }
        }
        expectations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http3_is_compared_with_http2_of_a_curl_without_it() {
        let mut figures = Figures::default();
        for (version, client, speed) in
            [(0, EYAS, 900.0), (0, CURL, 1000.0), (1, CURL, 800.0), (2, EYAS, 500.0)]
        {
            figures.add(&row(VERSIONS[version], client), SPEED[0], Ok(speed));
        }
        let measured = Measured { figures, curl_has_http3: false };
        let rows: String = measured.expectations().iter().map(Expectation::row).collect();
        for row in [
            "| HTTP/1.1 to `/dev/null`: at least 1 × curl over HTTP/1.1 | 0.90 | **no** |",
            "| HTTP/3 to `/dev/null`: at least 0.5 × curl over HTTP/2 | 0.62 | yes |",
            "| HTTP/2 to `/dev/null`: at least 1 × curl over HTTP/2 | – | not measured |",
        ] {
            assert!(rows.contains(row), "{row} in {rows}");
        }
        assert!(measured.table().contains("| HTTP/3, curl | – | – | – |"));
    }
}
