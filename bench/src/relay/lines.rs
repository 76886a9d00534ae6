//! The two sides of two emulated lines, over which tunnels are measured.
//!
//! The far side is the server's command of `eyas netem run`, the near side the client's: both are this
//! program. The near side prints its measurements on standard output, where [`tables`](crate::tables) parses them.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::programs::Programs;
use super::proxy::loopback;
use super::traffic::{self, Route, connect, milliseconds, request};
use crate::run::{check, command, output};
use crate::server::Server;
use crate::sides::{print_figure, signal_ready, wait_for_far};

/// The programs, as the tables name them.
pub(super) const EYAS: &str = "eyas tunnel";
pub(super) const MPTCP: &str = "MPTCP, microsocks";
pub(super) const SSH: &str = "ssh -D";
pub(super) const WIREGUARD: &str = "WireGuard, first line";
/// The headings of the columns.
pub(super) const BULK: &str = "bulk, Mbit/s";
pub(super) const KEYSTROKE: &str = "keystroke, 99th percentile, ms";
pub(super) const FIRST_FAILS: &str = "first line fails, ms";
pub(super) const SECOND_FAILS: &str = "second line fails, ms";
/// The port of the server behind the tunnel.
pub(super) const PORT: u16 = 7003;
/// The ports of the far ends.
const FAR_SOCKS: u16 = 7111;
const FAR_SSH: u16 = 7112;
const WIREGUARD_PORT: u16 = 7113;
/// The addresses of the near ends.
pub(super) const TUNNEL_AT: SocketAddr = loopback(7100);
const MPTCP_AT: SocketAddr = loopback(7101);
const SSH_AT: SocketAddr = loopback(7102);
/// The number of transfers of each program over a pair of lines.
const BULKS: usize = 3;
/// The addresses of the lines on both sides (`docs/guide/netem.md`).
const NEAR: [&str; 2] = ["198.18.1.1", "198.18.2.1"];
const FAR: [&str; 2] = ["198.18.1.2", "198.18.2.2"];
/// The names of the lines.
pub(super) const LINES: [&str; 2] = ["first", "second"];
/// Addresses and keys of the WireGuard tunnel. The keys are public, so they protect nothing.
const WIREGUARD_NEAR: &str = "192.0.2.1";
const WIREGUARD_FAR: &str = "192.0.2.2";
const KEY_NEAR: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const KEY_FAR: &str = "2222222222222222222222222222222222222222222222222222222222222222";
const PUBLIC_NEAR: &str = "7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13";
const PUBLIC_FAR: &str = "0faa684ed28867b97f4a6a2dee5df8ce974e76b7018e3f22a1c4cf2678570f20";
/// How long a line is down, and how long data flows before that.
const DOWN: Duration = Duration::from_secs(2);
const FLOW: Duration = Duration::from_secs(1);
/// The time between two keystrokes.
const KEYSTROKE_INTERVAL: Duration = Duration::from_millis(20);

/// How much is transferred over the lines.
pub(super) struct Amounts {
    /// Bytes of a timed transfer.
    pub(super) bytes: u64,
    pub(super) keystrokes: usize,
}

/// Runs the far ends of all tunnels until it is killed.
pub(super) fn far(programs: &Programs, directory: &Path) -> Result<(), String> {
    traffic::serve(PORT)?;
    let mut servers = vec![serve_tunnel(programs, directory, &FAR)?];
    if let Some((wrap, microsocks)) = programs.mptcp() {
        let mut program = Command::new(wrap);
        program.arg("run").arg(microsocks).args(["-i", "0.0.0.0", "-p", &FAR_SOCKS.to_string()]);
        allow_subflows()?;
        // Replies leave on the line of their source address, so this address is announced to the client.
        let endpoint = ["mptcp", "endpoint", "add", FAR[1], "dev", "path2", "signal"];
        check(&mut command("ip", &endpoint))?;
        servers.push(Server::start("far-microsocks", &program, loopback(FAR_SOCKS), directory)?);
    }
    if let Some(program) = &programs.sshd {
        let file = ssh_configuration(directory)?;
        let mut sshd = Command::new(program);
        sshd.args(["-D", "-e", "-f"]).arg(file);
        servers.push(Server::start("sshd", &sshd, loopback(FAR_SSH), directory)?);
    }
    let _wireguard = match &programs.wireguard {
        Some(program) => {
            let peer = Peer { key: PUBLIC_NEAR, address: WIREGUARD_NEAR, line: None };
            Some(wireguard(program, "wg-far", KEY_FAR, WIREGUARD_FAR, &peer)?)
        }
        None => None,
    };
    signal_ready(directory)?;
    loop {
        thread::park();
    }
}

/// Measures over the lines and prints the results.
pub(super) fn near(programs: &Programs, directory: &Path, amounts: &Amounts) -> Result<(), String> {
    wait_for_far(directory)?;
    let eyas = programs.eyas(&[]).get_program().to_owned();
    for (name, start) in TUNNELS {
        let started = match start(programs, directory) {
            Ok(Some(started)) => started,
            Ok(None) => continue,
            Err(error) => {
                print_figure(name, BULK, Err(error));
                continue;
            }
        };
        let route = started.route;
        for _ in 0..BULKS {
            print_figure(name, BULK, bulk(route, amounts.bytes));
        }
        print_figure(name, KEYSTROKE, keystrokes(route, amounts.keystrokes));
        for (line, column) in LINES.into_iter().zip([FIRST_FAILS, SECOND_FAILS]) {
            let change = |state: &str| {
                check(
                    command(&eyas.to_string_lossy(), &["netem", "change", "--path", line])
                        .args(["--state", state])
                        .stdout(std::process::Stdio::null()),
                )
            };
            print_figure(name, column, silence(route, &change));
        }
    }
    Ok(())
}

/// An established tunnel, and its process on this side.
struct Started {
    route: Route,
    _server: Server,
}

type Start = fn(&Programs, &Path) -> Result<Option<Started>, String>;

const TUNNELS: [(&str, Start); 4] =
    [(EYAS, start_tunnel), (MPTCP, start_mptcp), (SSH, start_ssh), (WIREGUARD, start_wireguard)];

/// Starts the server of `eyas tunnel`, and creates the key of the client.
pub(super) fn serve_tunnel(
    programs: &Programs,
    directory: &Path,
    addresses: &[&str],
) -> Result<Server, String> {
    let (key, authorized) = (directory.join("tunnel.pem"), directory.join("authorized_keys"));
    let mut keygen = programs.eyas(&["tunnel", "keygen", "--key"]);
    let line = output(keygen.arg(&key))?;
    fs::write(&authorized, line).map_err(|error| format!("{authorized:?}: {error}"))?;
    let mut serve = programs.eyas(&["tunnel", "serve", "--multipath", "--listen", "0.0.0.0:4433"]);
    serve.arg("--key").arg(directory.join("host.pem")).arg("--authorized-keys").arg(authorized);
    serve.args(["--local-address", &addresses.join(",")]).env("XDG_RUNTIME_DIR", directory);
    Server::start("tunnel-server", &serve, loopback(4433), directory)
}

/// Starts its client.
pub(super) fn join_tunnel(
    programs: &Programs,
    directory: &Path,
    server: &str,
    addresses: &[&str],
) -> Result<Server, String> {
    let mut client = programs.eyas(&["tunnel", server, "--multipath", "--memory", "none"]);
    client.arg("-L").arg(format!("{}:127.0.0.1:{PORT}", TUNNEL_AT.port()));
    client.arg("--key").arg(directory.join("tunnel.pem"));
    client.arg("--known-hosts").arg(directory.join("known_hosts"));
    client.args(["--local-address", &addresses.join(",")]).env("XDG_RUNTIME_DIR", directory);
    Server::start("tunnel", &client, TUNNEL_AT, directory)
}

fn start_tunnel(programs: &Programs, directory: &Path) -> Result<Option<Started>, String> {
    let server = join_tunnel(programs, directory, &format!("{}:4433", FAR[0]), &NEAR)?;
    Ok(Some(Started { route: Route::At(TUNNEL_AT), _server: server }))
}

/// Starts a program that opens an MPTCP connection to the far SOCKS proxy for each local connection.
fn start_mptcp(programs: &Programs, directory: &Path) -> Result<Option<Started>, String> {
    let (Some((wrap, _)), Some(socat)) = (programs.mptcp(), &programs.socat) else {
        return Ok(None);
    };
    allow_subflows()?;
    let mut program = Command::new(wrap);
    program.arg("run").arg(socat);
    program.arg(format!("TCP-LISTEN:{},bind=127.0.0.1,fork,reuseaddr", MPTCP_AT.port()));
    program.arg(format!("TCP:{}:{FAR_SOCKS}", FAR[0]));
    let server = Server::start("socat", &program, MPTCP_AT, directory)?;
    Ok(Some(Started { route: Route::Socks(MPTCP_AT), _server: server }))
}

fn allow_subflows() -> Result<(), String> {
    let limits = ["mptcp", "limits", "set", "subflow", "2", "add_addr_accepted", "2"];
    output(&mut command("ip", &limits)).map(|_| ())
}

fn start_ssh(programs: &Programs, directory: &Path) -> Result<Option<Started>, String> {
    if programs.sshd.is_none() {
        return Ok(None);
    }
    let mut ssh = Command::new("ssh");
    ssh.args(["-N", "-D", &SSH_AT.to_string(), "-p", &FAR_SSH.to_string(), "-F", "none"]);
    ssh.arg("-i").arg(directory.join("ssh-key"));
    for option in ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes"] {
        ssh.args(["-o", option]);
    }
    ssh.arg(format!("root@{}", FAR[0]));
    let server = Server::start("ssh", &ssh, SSH_AT, directory)?;
    Ok(Some(Started { route: Route::Socks(SSH_AT), _server: server }))
}

/// Writes the configuration of an SSH server that accepts only a key created for it.
fn ssh_configuration(directory: &Path) -> Result<PathBuf, String> {
    for name in ["ssh-host-key", "ssh-key"] {
        let mut keygen = command("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f"]);
        output(keygen.arg(directory.join(name)))?;
    }
    // The directory for its privilege separation.
    fs::create_dir_all("/run/sshd").map_err(|error| format!("/run/sshd: {error}"))?;
    let file = directory.join("sshd_config");
    let text = format!(
        "Port {FAR_SSH}\nHostKey {0}/ssh-host-key\nAuthorizedKeysFile {0}/ssh-key.pub\n\
         StrictModes no\nPasswordAuthentication no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n",
        directory.display()
    );
    fs::write(&file, text).map_err(|error| format!("{file:?}: {error}"))?;
    Ok(file)
}

fn start_wireguard(programs: &Programs, _: &Path) -> Result<Option<Started>, String> {
    let Some(program) = &programs.wireguard else { return Ok(None) };
    let peer = Peer { key: PUBLIC_FAR, address: WIREGUARD_FAR, line: Some(FAR[0]) };
    let server = wireguard(program, "wg-near", KEY_NEAR, WIREGUARD_NEAR, &peer)?;
    let at = SocketAddr::new(WIREGUARD_FAR.parse().map_err(|_| "an address")?, PORT);
    Ok(Some(Started { route: Route::At(at), _server: server }))
}

/// The other end of a WireGuard tunnel.
struct Peer {
    /// Its public key.
    key: &'static str,
    /// Its address inside the tunnel.
    address: &'static str,
    /// Its address on the line, if this end initiates.
    line: Option<&'static str>,
}

/// Creates a WireGuard interface with this key and address in this namespace, with one peer.
fn wireguard(
    program: &Path,
    name: &str,
    key: &str,
    address: &str,
    peer: &Peer,
) -> Result<Server, String> {
    use std::io::{Read as _, Write as _};
    let mut start = Command::new(program);
    start.args(["-f", name]);
    let socket = format!("/run/wireguard/{name}.sock");
    let is_ready = || UnixStream::connect(&socket).is_ok();
    let server = Server::start_until(name, &start, Path::new("/run"), is_ready)?;
    let mut configuration = format!(
        "set=1\nprivate_key={key}\nlisten_port={WIREGUARD_PORT}\npublic_key={}\n\
         allowed_ip={}/32\n",
        peer.key, peer.address
    );
    if let Some(line) = peer.line {
        configuration.push_str(&format!("endpoint={line}:{WIREGUARD_PORT}\n"));
    }
    configuration.push('\n');
    let sender = UnixStream::connect(&socket).and_then(|mut socket| {
        socket.write_all(configuration.as_bytes())?;
        let mut reply = [0; 64];
        let length = socket.read(&mut reply)?;
        Ok(String::from_utf8_lossy(&reply[..length]).into_owned())
    });
    match sender {
        Ok(reply) if reply.trim() == "errno=0" => {}
        other => return Err(format!("WireGuard rejects its configuration: {other:?}")),
    }
    output(&mut command("ip", &["address", "add", address, "peer", peer.address, "dev", name]))?;
    output(&mut command("ip", &["link", "set", name, "mtu", "1420", "up"]))?;
    Ok(server)
}

/// Returns the rate of a transfer in Mbit/s.
pub(super) fn bulk(route: Route, bytes: u64) -> Result<f64, String> {
    let transfer = connect(route, PORT).and_then(|mut stream| request(&mut stream, bytes));
    let seconds = transfer.map_err(|error| error.to_string())?.whole.as_secs_f64();
    Ok(bytes as f64 * 8e-6 / seconds)
}

/// Returns the 99th percentile of the time until a single byte arrives during a bulk transfer, in
/// milliseconds.
fn keystrokes(route: Route, count: usize) -> Result<f64, String> {
    let mut connection = connect(route, PORT).map_err(|error| error.to_string())?;
    let flow = Flow::start(route)?;
    thread::sleep(FLOW);
    let mut rounds = crate::statistics::Rounds::default();
    for _ in 0..count {
        thread::sleep(KEYSTROKE_INTERVAL);
        let transfer = request(&mut connection, 1).map_err(|error| error.to_string())?;
        rounds.add(Ok(milliseconds(transfer.whole)));
    }
    flow.stop()?;
    rounds.p99().ok_or_else(|| "there were no keystrokes".into())
}

/// Returns the longest time without data, in milliseconds, of a bulk transfer during which a line is
/// down for a while.
fn silence(route: Route, change: &dyn Fn(&str) -> Result<(), String>) -> Result<f64, String> {
    let flow = Flow::start(route)?;
    thread::sleep(FLOW);
    change("down")?;
    thread::sleep(DOWN);
    change("up")?;
    thread::sleep(FLOW);
    flow.stop()
}

/// A transfer that runs until it is stopped.
struct Flow {
    stop: Arc<AtomicBool>,
    longest: mpsc::Receiver<Result<Duration, String>>,
}

impl Flow {
    fn start(route: Route) -> Result<Self, String> {
        let mut stream = connect(route, PORT).map_err(|error| error.to_string())?;
        let (sender, longest) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        thread::spawn(move || {
            let transfer =
                traffic::request_until(&mut stream, u64::MAX, || stopped.load(Ordering::Relaxed));
            // The result is not read if something else has failed.
            let _ = sender
                .send(transfer.map(|transfer| transfer.longest).map_err(|error| error.to_string()));
        });
        Ok(Self { stop, longest })
    }

    /// Ends it and returns the longest time without data, in milliseconds.
    fn stop(self) -> Result<f64, String> {
        self.stop.store(true, Ordering::Relaxed);
        let longest = self.longest.recv().map_err(|error| error.to_string())??;
        Ok(milliseconds(longest))
    }
}
