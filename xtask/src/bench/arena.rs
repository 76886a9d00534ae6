//! A network namespace with Caddy in it, and packet filters that swallow what a scenario says.
//!
//! Everything is on the namespace's own loopback interface; a cable that leads nowhere has the
//! default routes, so that clients find themselves on a network. The host's own network is
//! neither used nor changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::run::{check, command, output, workspace};

const IPV4: &str = "127.0.0.1";
const IPV6: &str = "::1";
/// How long Caddy may take to listen.
const READY_WITHIN: Duration = Duration::from_secs(20);

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

    /// The same for connections that are all to different hosts; `*` is a number.
    pub(super) fn many_urls(&self) -> String {
        format!("https://c*.bench.test:{}/", self.port)
    }

    /// The addresses, for clients that are told instead of asking: `HOST:PORT:ADDR,ADDR`.
    pub(super) fn resolve(&self) -> String {
        format!("{}:{}:{IPV6},{IPV4}", self.host, self.port)
    }
}

/// The namespace, taken down when dropped.
pub(super) struct Arena {
    name: String,
    directory: PathBuf,
    caddy: Option<Child>,
}

impl Arena {
    /// Makes the namespace, the certificates with `certificate.py`, and starts Caddy.
    pub(super) fn new(caddy: &Path, python: &Path) -> Result<Self, String> {
        let name = format!("eyas-bench-{}", std::process::id());
        let directory = workspace().join("bench/.cache").join(&name);
        fs::create_dir_all(&directory).map_err(|error| format!("{directory:?}: {error}"))?;
        let mut arena = Self { name, directory, caddy: None };
        arena.lay_network()?;
        arena.filter()?;
        let script = workspace().join("bench/rivals/certificate.py");
        let mut certificate = Command::new(python);
        output(certificate.arg(script).arg(&arena.directory))?;
        arena.start_caddy(caddy)?;
        Ok(arena)
    }

    /// The authority that the clients trust.
    pub(super) fn authority(&self) -> PathBuf {
        self.directory.join("authority.pem")
    }

    /// A command that will run in the namespace.
    pub(super) fn inside(&self, program: &Path) -> Command {
        let mut command = command("ip", &["netns", "exec", &self.name]);
        command.arg(program);
        command
    }

    fn lay_network(&self) -> Result<(), String> {
        ip(&["netns", "add", &self.name])?;
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
            ip(&[&["-n", &self.name], words].concat())?;
        }
        // `ip netns exec` lays this file over the host's own.
        let hosts: String = PLACES
            .iter()
            .map(|place| format!("{IPV6} {host}\n{IPV4} {host}\n", host = place.host))
            .collect();
        let directory = self.files();
        fs::create_dir_all(&directory).map_err(|error| format!("{directory:?}: {error}"))?;
        fs::write(directory.join("hosts"), hosts).map_err(|error| format!("hosts: {error}"))
    }

    /// Where `ip netns exec` looks for files that the namespace has for itself.
    fn files(&self) -> PathBuf {
        Path::new("/etc/netns").join(&self.name)
    }

    fn filter(&self) -> Result<(), String> {
        let mut rules = String::from("table inet arena {\nchain incoming {\n");
        rules.push_str("type filter hook prerouting priority -300;\n");
        for swallowed in PLACES.iter().filter_map(|place| place.swallowed) {
            rules.push_str(&format!("{swallowed} drop;\n"));
        }
        rules.push_str("}\n}\n");
        let file = self.directory.join("filter.nft");
        fs::write(&file, rules).map_err(|error| format!("{file:?}: {error}"))?;
        check(self.inside(Path::new("nft")).arg("-f").arg(file))
    }

    fn start_caddy(&mut self, caddy: &Path) -> Result<(), String> {
        let file = self.directory.join("caddy.json");
        let configuration = configuration(&self.directory).to_string();
        fs::write(&file, configuration).map_err(|error| format!("{file:?}: {error}"))?;
        let log = self.directory.join("caddy.log");
        let log = fs::File::create(&log).map_err(|error| format!("{log:?}: {error}"))?;
        let child = self
            .inside(caddy)
            .args(["run", "--config"])
            .arg(file)
            .env("XDG_DATA_HOME", &self.directory)
            .env("XDG_CONFIG_HOME", &self.directory)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.caddy = Some(child.map_err(|error| format!("cannot start Caddy: {error}"))?);
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline {
            let probe = format!("exec 3<>/dev/tcp/{IPV4}/{}", WELL.port);
            let mut bash = self.inside(Path::new("bash"));
            let probed = bash.args(["-c", &probe]).stderr(Stdio::null()).status();
            if probed.is_ok_and(|status| status.success()) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(format!("Caddy does not listen; see {:?}", self.directory.join("caddy.log")))
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Some(mut caddy) = self.caddy.take() {
            // What cannot be ended has ended already.
            let _ = caddy.kill();
            let _ = caddy.wait();
        }
        if let Err(error) = ip(&["netns", "delete", &self.name]) {
            eprintln!("the namespace is still there: {error}");
        }
        for directory in [self.files(), self.directory.clone()] {
            if !directory.exists() {
                continue;
            }
            if let Err(error) = fs::remove_dir_all(&directory) {
                eprintln!("{directory:?} is still there: {error}");
            }
        }
    }
}

/// One page on every place, over all versions of HTTP, with a certificate of the arena's own.
fn configuration(directory: &Path) -> serde_json::Value {
    let listen: Vec<String> = PLACES
        .iter()
        .flat_map(|place| [format!("{IPV4}:{}", place.port), format!("[{IPV6}]:{}", place.port)])
        .collect();
    json!({
        "admin": { "disabled": true },
        "logging": { "logs": { "default": { "level": "ERROR" } } },
        "apps": {
            "http": { "servers": { "main": {
                "listen": listen,
                "routes": [{ "handle": [{ "handler": "static_response", "body": "well\n" }] }],
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

fn ip(words: &[&str]) -> Result<(), String> {
    output(&mut command("ip", words)).map(|_| ())
}
