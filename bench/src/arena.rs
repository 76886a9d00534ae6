//! A network namespace with Caddy in it, and packet filters that drop what a scenario requires.
//!
//! Everything is on the namespace's own loopback interface; a veth pair that leads nowhere has the
//! default routes, so that clients detect a network. The host's own network is neither used nor
//! changed. The namespaces have no names: they disappear with the last process in them, however it
//! ends.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::run::{check, command, output, workspace};
use crate::server::Server;

const IPV4: &str = "127.0.0.1";
const IPV6: &str = "::1";

/// A host name, the port on which it is served, and the packets that are dropped there.
pub(crate) struct Site {
    /// It is in the certificate of the arena.
    pub(crate) host: &'static str,
    /// The same for TCP and UDP.
    pub(crate) port: u16,
    /// An nft match; matching packets are dropped.
    swallowed: Option<&'static str>,
}

/// Both transports work over both address families.
pub(crate) const HEALTHY: Site = Site { host: "well.bench.test", port: 443, swallowed: None };
/// UDP is dropped.
pub(crate) const WITHOUT_UDP: Site =
    Site { host: "tcp.bench.test", port: 444, swallowed: Some("udp dport 444") };
/// Everything over IPv6 is dropped.
pub(crate) const WITHOUT_IPV6: Site = Site {
    host: "ipv4.bench.test",
    port: 445,
    swallowed: Some("meta nfproto ipv6 meta l4proto { tcp, udp } th dport 445"),
};
const SITES: [&Site; 3] = [&HEALTHY, &WITHOUT_UDP, &WITHOUT_IPV6];

impl Site {
    /// Returns the URL of the page that every round fetches.
    pub(crate) fn url(&self) -> String {
        match self.port {
            443 => format!("https://{}/", self.host),
            port => format!("https://{}:{port}/", self.host),
        }
    }

    /// Returns the same for connections that are all to different hosts; `*` is a number. These
    /// hosts only have an IPv4 address.
    pub(crate) fn many_urls(&self) -> String {
        format!("https://c*.bench.test:{}/", self.port)
    }

    /// Returns the addresses for clients that do not use DNS: `HOST:PORT:ADDR,ADDR`.
    pub(crate) fn resolve(&self) -> String {
        format!("{}:{}:{IPV6},{IPV4}", self.host, self.port)
    }
}

/// Runs this program again in new network and mount namespaces.
pub(crate) fn enter(args: &[&str]) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut unshare = command("unshare", &["--net", "--mount"]);
    if output(&mut command("id", &["-u"]))?.trim() != "0" {
        unshare.arg("--map-root-user");
    }
    check(unshare.arg(program).args(args))
}

/// The network and the server in the namespaces that [`enter`] created.
pub(crate) struct Arena {
    directory: PathBuf,
    is_in_memory: bool,
    caddy: Option<Server>,
}

impl Arena {
    /// Sets up the network, creates the certificates with `certificate.py`, and starts Caddy.
    pub(crate) fn new(caddy: &Path, python: &Path) -> Result<Self, String> {
        let mut arena = Self::set_up()?;
        arena.filter()?;
        arena.create_certificates(python)?;
        arena.start_caddy(caddy)?;
        Ok(arena)
    }

    /// Sets up the network and the hosts file.
    pub(crate) fn set_up() -> Result<Self, String> {
        let directory = workspace().join(format!("bench/.cache/arena-{}", std::process::id()));
        fs::create_dir_all(&directory).map_err(|error| format!("{directory:?}: {error}"))?;
        let arena = Self { directory, is_in_memory: false, caddy: None };
        arena.set_up_network()?;
        arena.mount_hosts_file()?;
        Ok(arena)
    }

    /// Keeps the files that are written from now on in memory, not on a disk.
    pub(crate) fn keep_files_in_memory(&mut self) -> Result<(), String> {
        check(command("mount", &["-t", "tmpfs", "files"]).arg(&self.directory))?;
        self.is_in_memory = true;
        Ok(())
    }

    /// Returns the directory for the files of the run, which is removed afterwards.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates an authority, and a certificate for every site.
    pub(crate) fn create_certificates(&self, python: &Path) -> Result<(), String> {
        let script = workspace().join("bench/rivals/certificate.py");
        output(Command::new(python).arg(script).arg(&self.directory)).map(|_| ())
    }

    /// Returns the certificate of the authority that the clients trust.
    pub(crate) fn authority(&self) -> PathBuf {
        self.directory.join("authority.pem")
    }

    fn set_up_network(&self) -> Result<(), String> {
        for args in [
            &["link", "set", "lo", "up"][..],
            &["link", "add", "wire", "type", "veth", "peer", "name", "nowhere"],
            &["link", "set", "wire", "up"],
            &["link", "set", "nowhere", "up"],
            &["address", "add", "192.0.2.10/24", "dev", "wire"],
            &["-6", "address", "add", "2001:db8:10::10/64", "dev", "wire", "nodad"],
            &["route", "add", "default", "dev", "wire"],
            &["-6", "route", "add", "default", "dev", "wire"],
        ] {
            output(&mut command("ip", args))?;
        }
        Ok(())
    }

    /// Mounts a hosts file over the host's own, only in this mount namespace.
    fn mount_hosts_file(&self) -> Result<(), String> {
        let hosts: String = SITES
            .iter()
            .map(|site| format!("{IPV6} {host}\n{IPV4} {host}\n", host = site.host))
            .collect();
        let file = self.write("hosts", &hosts)?;
        let mut mount = command("mount", &["--bind"]);
        output(mount.arg(file).arg("/etc/hosts")).map(|_| ())
    }

    /// Adds a host with its addresses to the file that [`mount_hosts_file`](Self::mount_hosts_file) has mounted.
    pub(crate) fn add_host(&self, host: &str, addresses: &[&str]) -> Result<(), String> {
        let mut hosts =
            fs::OpenOptions::new().append(true).open("/etc/hosts").map_err(|it| it.to_string())?;
        let lines: String = addresses.iter().map(|it| format!("{it} {host}\n")).collect();
        hosts.write_all(lines.as_bytes()).map_err(|error| error.to_string())
    }

    fn filter(&self) -> Result<(), String> {
        let rules = filter_of(SITES.iter().filter_map(|site| site.swallowed));
        let file = self.write("filter.nft", &rules)?;
        check(command("nft", &["-f"]).arg(file))
    }

    fn start_caddy(&mut self, caddy: &Path) -> Result<(), String> {
        let of = |site: &&Site| [IPV4, IPV6].map(|address| authority(address, site.port));
        let listen: Vec<String> = SITES.iter().flat_map(of).collect();
        let page = json!({ "handler": "static_response", "body": "well\n" });
        let listens = SocketAddr::from(([127, 0, 0, 1], HEALTHY.port));
        self.caddy = Some(self::caddy(caddy, &self.directory, listens, &listen, &page)?);
        Ok(())
    }

    /// Writes a file into the directory of the run.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let file = self.directory.join(name);
        fs::write(&file, text).map_err(|error| format!("{file:?}: {error}"))?;
        Ok(file)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // It writes to the directory.
        drop(self.caddy.take());
        if self.is_in_memory
            && let Err(error) = output(command("umount", &["--lazy"]).arg(&self.directory))
        {
            eprintln!("{error}");
        }
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("cannot remove {:?}: {error}", self.directory);
        }
    }
}

/// Starts Caddy with one handler for all requests, and waits until it listens at this address and the
/// others. Its files are in this directory.
pub(crate) fn caddy(
    program: &Path,
    directory: &Path,
    listens: SocketAddr,
    listen: &[String],
    handler: &Value,
) -> Result<Server, String> {
    let file = directory.join("caddy.json");
    let configuration = configuration(directory, listen, handler).to_string();
    fs::write(&file, configuration).map_err(|error| format!("{file:?}: {error}"))?;
    let mut caddy = command(&program.to_string_lossy(), &["run", "--config"]);
    caddy.arg(file).env("XDG_DATA_HOME", directory).env("XDG_CONFIG_HOME", directory);
    Server::start("Caddy", &caddy, listens, directory)
}

/// Returns nft rules that drop all packets matching one of these.
pub(crate) fn filter_of<'a>(swallowed: impl IntoIterator<Item = &'a str>) -> String {
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

/// Returns the configuration of Caddy: all versions of HTTP, with the certificate of the arena.
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
