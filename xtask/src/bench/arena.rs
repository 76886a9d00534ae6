//! A network namespace with Caddy in it, and packet filters that swallow what a scenario says.
//!
//! Everything is on the namespace's own loopback interface; a cable that leads nowhere has the
//! default routes, so that clients find themselves on a network. The host's own network is
//! neither used nor changed. The namespaces have no names: they are gone with the last process in
//! them, however it ends.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::server::Server;
use crate::run::{check, command, output, workspace};

const IPV4: &str = "127.0.0.1";
const IPV6: &str = "::1";

/// A host name, the port it is served on, and what is swallowed there.
pub(super) struct Place {
    /// In the certificate of the arena.
    pub(super) host: &'static str,
    /// TCP and UDP alike.
    pub(super) port: u16,
    /// An nft match; packets that it takes vanish.
    swallowed: Option<&'static str>,
}

/// Both transports on both families.
pub(super) const WELL: Place = Place { host: "well.bench.test", port: 443, swallowed: None };
/// UDP vanishes.
pub(super) const WITHOUT_UDP: Place =
    Place { host: "tcp.bench.test", port: 444, swallowed: Some("udp dport 444") };
/// Everything vanishes that goes over IPv6.
pub(super) const WITHOUT_IPV6: Place = Place {
    host: "ipv4.bench.test",
    port: 445,
    swallowed: Some("meta nfproto ipv6 meta l4proto { tcp, udp } th dport 445"),
};
const PLACES: [&Place; 3] = [&WELL, &WITHOUT_UDP, &WITHOUT_IPV6];

impl Place {
    /// The page that every round fetches.
    pub(super) fn url(&self) -> String {
        match self.port {
            443 => format!("https://{}/", self.host),
            port => format!("https://{}:{port}/", self.host),
        }
    }

    /// The same page for connections that are all to different hosts; `*` is a number. These
    /// hosts have their IPv4 address alone.
    pub(super) fn many_urls(&self) -> String {
        format!("https://c*.bench.test:{}/", self.port)
    }

    /// The addresses, for clients that are told instead of asking: `HOST:PORT:ADDR,ADDR`.
    pub(super) fn resolve(&self) -> String {
        format!("{}:{}:{IPV6},{IPV4}", self.host, self.port)
    }
}

/// Runs this program again in namespaces of its own for network and mounts.
pub(super) fn enter(words: &[&str]) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut unshare = command("unshare", &["--net", "--mount"]);
    if output(&mut command("id", &["-u"]))?.trim() != "0" {
        unshare.arg("--map-root-user");
    }
    check(unshare.arg(program).args(words))
}

/// What is laid into the namespaces that [`enter`] made.
pub(super) struct Arena {
    directory: PathBuf,
    caddy: Option<Server>,
}

impl Arena {
    /// Lays the network, makes the certificates with `certificate.py`, and starts Caddy.
    pub(super) fn new(caddy: &Path, python: &Path) -> Result<Self, String> {
        let mut arena = Self::lay()?;
        arena.filter()?;
        arena.certify(python)?;
        arena.start_caddy(caddy)?;
        Ok(arena)
    }

    /// Lays the network and names the hosts.
    pub(super) fn lay() -> Result<Self, String> {
        let directory = workspace().join(format!("bench/.cache/arena-{}", std::process::id()));
        fs::create_dir_all(&directory).map_err(|error| format!("{directory:?}: {error}"))?;
        let arena = Self { directory, caddy: None };
        arena.lay_network()?;
        arena.name_hosts()?;
        Ok(arena)
    }

    /// Where what belongs to the run is written; gone with it.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes an authority, and a certificate for every place.
    pub(super) fn certify(&self, python: &Path) -> Result<(), String> {
        let script = workspace().join("bench/rivals/certificate.py");
        output(Command::new(python).arg(script).arg(&self.directory)).map(|_| ())
    }

    /// The authority that the clients trust.
    pub(super) fn authority(&self) -> PathBuf {
        self.directory.join("authority.pem")
    }

    fn lay_network(&self) -> Result<(), String> {
        for words in [
            &["link", "set", "lo", "up"][..],
            &["link", "add", "wire", "type", "veth", "peer", "name", "nowhere"],
            &["link", "set", "wire", "up"],
            &["link", "set", "nowhere", "up"],
            &["address", "add", "192.0.2.10/24", "dev", "wire"],
            &["-6", "address", "add", "2001:db8:10::10/64", "dev", "wire", "nodad"],
            &["route", "add", "default", "dev", "wire"],
            &["-6", "route", "add", "default", "dev", "wire"],
        ] {
            output(&mut command("ip", words))?;
        }
        Ok(())
    }

    /// Lays a hosts file over the host's own, in this mount namespace alone.
    fn name_hosts(&self) -> Result<(), String> {
        let hosts: String = PLACES
            .iter()
            .map(|place| format!("{IPV6} {host}\n{IPV4} {host}\n", host = place.host))
            .collect();
        let file = self.write("hosts", &hosts)?;
        let mut mount = command("mount", &["--bind"]);
        output(mount.arg(file).arg("/etc/hosts")).map(|_| ())
    }

    /// Names one more host, with its addresses, where [`name_hosts`](Self::name_hosts) has laid the file.
    pub(super) fn name_one_more(&self, host: &str, addresses: &[&str]) -> Result<(), String> {
        let mut hosts =
            fs::OpenOptions::new().append(true).open("/etc/hosts").map_err(|it| it.to_string())?;
        let lines: String = addresses.iter().map(|it| format!("{it} {host}\n")).collect();
        hosts.write_all(lines.as_bytes()).map_err(|error| error.to_string())
    }

    fn filter(&self) -> Result<(), String> {
        let rules = filter_of(PLACES.iter().filter_map(|place| place.swallowed));
        let file = self.write("filter.nft", &rules)?;
        check(command("nft", &["-f"]).arg(file))
    }

    fn start_caddy(&mut self, caddy: &Path) -> Result<(), String> {
        let of = |place: &&Place| [IPV4, IPV6].map(|address| authority(address, place.port));
        let listen: Vec<String> = PLACES.iter().flat_map(of).collect();
        let page = json!({ "handler": "static_response", "body": "well\n" });
        let listens = SocketAddr::from(([127, 0, 0, 1], WELL.port));
        self.caddy = Some(self::caddy(caddy, &self.directory, listens, (&listen, &page))?);
        Ok(())
    }

    /// Writes a file that belongs to the run.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let file = self.directory.join(name);
        fs::write(&file, text).map_err(|error| format!("{file:?}: {error}"))?;
        Ok(file)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // It writes there.
        drop(self.caddy.take());
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("{:?} is still there: {error}", self.directory);
        }
    }
}

/// Caddy with one answer for everything that it is asked, once it listens there and elsewhere. What it
/// needs is in that directory.
pub(super) fn caddy(
    program: &Path,
    directory: &Path,
    listens: SocketAddr,
    (listen, handler): (&[String], &Value),
) -> Result<Server, String> {
    let file = directory.join("caddy.json");
    let configuration = configuration(directory, listen, handler).to_string();
    fs::write(&file, configuration).map_err(|error| format!("{file:?}: {error}"))?;
    let mut caddy = command(&program.to_string_lossy(), &["run", "--config"]);
    caddy.arg(file).env("XDG_DATA_HOME", directory).env("XDG_CONFIG_HOME", directory);
    Server::start("Caddy", &caddy, listens, directory)
}

/// Rules of nft that let what these match vanish.
pub(super) fn filter_of<'a>(swallowed: impl IntoIterator<Item = &'a str>) -> String {
    let mut rules = String::from("table inet arena {\nchain incoming {\n");
    rules.push_str("type filter hook prerouting priority -300;\n");
    for swallowed in swallowed {
        rules.push_str(&format!("{swallowed} drop;\n"));
    }
    rules.push_str("}\n}\n");
    rules
}

fn authority(address: &str, port: u16) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

/// All versions of HTTP, with a certificate of the arena's own.
fn configuration(directory: &Path, listen: &[String], handler: &Value) -> Value {
    json!({
        "admin": { "disabled": true },
        "logging": { "logs": { "default": { "level": "ERROR" } } },
        "apps": {
            "http": { "servers": { "main": {
                "listen": listen,
                "routes": [{ "handle": [handler] }],
                "tls_connection_policies": [{}],
                "automatic_https": { "disable": true },
            }}},
            "tls": { "certificates": { "load_files": [{
                "certificate": directory.join("server.pem"),
                "key": directory.join("server.key"),
            }]}},
            "pki": { "certificate_authorities": { "local": { "install_trust": false } } },
        },
    })
}
