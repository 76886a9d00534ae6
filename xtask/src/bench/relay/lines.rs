//! What runs on either side of two emulated lines, while a tunnel is measured over them.
//!
//! The far side is the server's command of `eyas netem run`, the near side its client's: both are this
//! program. The near side tells what it saw on standard output, as `tables` reads it.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::super::server::Server;
use super::programs::Programs;
use super::proxy::loopback;
use super::traffic::{self, Way, ask, connect, milliseconds};
use super::tunnel::{BULK, EYAS, FIRST_FAILS, KEYSTROKE, MPTCP, SECOND_FAILS, SSH, WIREGUARD};
use crate::run::{check, command, output};

/// Where the server behind the tunnel is.
pub(super) const PORT: u16 = 7003;
/// Where the ends over there listen.
const FAR_SOCKS: u16 = 7111;
const FAR_SSH: u16 = 7112;
const WIREGUARD_PORT: u16 = 7113;
/// What the near side connects to.
pub(super) const TUNNEL_AT: SocketAddr = loopback(7100);
const MPTCP_AT: SocketAddr = loopback(7101);
const SSH_AT: SocketAddr = loopback(7102);
/// Transfers of each program over a pair of lines.
const BULKS: usize = 3;
/// The lines' addresses at both sides (`docs/netem.md`).
const HERE: [&str; 2] = ["198.18.1.1", "198.18.2.1"];
const THERE: [&str; 2] = ["198.18.1.2", "198.18.2.2"];
/// What the lines are called.
pub(super) const LINES: [&str; 2] = ["first", "second"];
/// Addresses and keys of WireGuard's tunnel. Nothing is hidden by keys that stand here.
const WIREGUARD_HERE: &str = "192.0.2.1";
const WIREGUARD_THERE: &str = "192.0.2.2";
const KEY_HERE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const KEY_THERE: &str = "2222222222222222222222222222222222222222222222222222222222222222";
const PUBLIC_HERE: &str = "7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13";
const PUBLIC_THERE: &str = "0faa684ed28867b97f4a6a2dee5df8ce974e76b7018e3f22a1c4cf2678570f20";
/// The file that says that the far side is there.
pub(super) const READY: &str = "far-is-ready";
/// How long it may take.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How long a line is down, and how long bytes flow before.
const DOWN: Duration = Duration::from_secs(2);
const FLOWS: Duration = Duration::from_secs(1);
/// Between two keystrokes.
const TYPING: Duration = Duration::from_millis(20);

/// How much is carried over the lines.
pub(super) struct Amounts {
    /// Bytes of a transfer that is timed.
    pub(super) bytes: u64,
    pub(super) keystrokes: usize,
}

/// Everything that a tunnel ends at, until it is killed.
pub(super) fn far(programs: &Programs, directory: &Path) -> Result<(), String> {
    traffic::serve(PORT)?;
    let mut servers = vec![serve_tunnel(programs, directory, &THERE)?];
    if let Some((wrap, microsocks)) = programs.mptcp() {
        let mut program = Command::new(wrap);
        program.arg("run").arg(microsocks).args(["-i", "0.0.0.0", "-p", &FAR_SOCKS.to_string()]);
        allow_subflows()?;
        // What comes back leaves by the line of its source, so the client has to be told of this one.
        let endpoint = ["mptcp", "endpoint", "add", THERE[1], "dev", "path2", "signal"];
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
            let peer = (PUBLIC_HERE, WIREGUARD_HERE, None);
            Some(wireguard(program, "wg-far", (KEY_THERE, WIREGUARD_THERE), peer)?)
        }
        None => None,
    };
    be_ready(directory)?;
    loop {
        thread::park();
    }
}

/// Measures over the lines and tells of it.
pub(super) fn near(programs: &Programs, directory: &Path, amounts: &Amounts) -> Result<(), String> {
    wait_for_far(directory)?;
    let eyas = programs.eyas(&[]).get_program().to_owned();
    for (name, start) in WAYS {
        let started = match start(programs, directory) {
            Ok(Some(started)) => started,
            Ok(None) => continue,
            Err(error) => {
                tell(name, BULK, Err(error));
                continue;
            }
        };
        let way = started.way;
        for _ in 0..BULKS {
            tell(name, BULK, bulk(way, amounts.bytes));
        }
        tell(name, KEYSTROKE, keystrokes(way, amounts.keystrokes));
        for (line, column) in LINES.into_iter().zip([FIRST_FAILS, SECOND_FAILS]) {
            let change = |state: &str| {
                check(
                    command(&eyas.to_string_lossy(), &["netem", "change", "--path", line])
                        .args(["--state", state])
                        .stdout(std::process::Stdio::null()),
                )
            };
            tell(name, column, silence(way, &change));
        }
    }
    Ok(())
}

/// Tells the near side that everything is there.
pub(super) fn be_ready(directory: &Path) -> Result<(), String> {
    fs::write(directory.join(READY), "").map_err(|error| error.to_string())
}

/// Waits until the far side says so.
pub(super) fn wait_for_far(directory: &Path) -> Result<(), String> {
    let deadline = Instant::now() + READY_WITHIN;
    while !directory.join(READY).exists() {
        if Instant::now() > deadline {
            return Err("the far side is not there".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A figure, or why there is none, for [`Figures::take`](super::tables::Figures::take).
pub(super) fn tell(who: &str, column: &str, figure: Result<f64, String>) {
    match figure {
        Ok(figure) => println!("{who}\t{column}\t{figure}"),
        Err(error) => println!("{who}\t{column}\t{}", error.replace(['\n', '\t'], " ")),
    }
}

/// A tunnel that is up, and what it consists of on this side.
struct Started {
    way: Way,
    _server: Server,
}

type Start = fn(&Programs, &Path) -> Result<Option<Started>, String>;

const WAYS: [(&str, Start); 4] =
    [(EYAS, start_tunnel), (MPTCP, start_mptcp), (SSH, start_ssh), (WIREGUARD, start_wireguard)];

/// The server of `eyas tunnel`, and the key that it lets in.
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

/// Its client, which listens here.
pub(super) fn join_tunnel(
    programs: &Programs,
    directory: &Path,
    (server, addresses): (&str, &[&str]),
) -> Result<Server, String> {
    let mut client = programs.eyas(&["tunnel", server, "--multipath", "--memory", "none"]);
    client.arg("-L").arg(format!("{}:127.0.0.1:{PORT}", TUNNEL_AT.port()));
    client.arg("--key").arg(directory.join("tunnel.pem"));
    client.arg("--known-hosts").arg(directory.join("known_hosts"));
    client.args(["--local-address", &addresses.join(",")]).env("XDG_RUNTIME_DIR", directory);
    Server::start("tunnel", &client, TUNNEL_AT, directory)
}

fn start_tunnel(programs: &Programs, directory: &Path) -> Result<Option<Started>, String> {
    let server = join_tunnel(programs, directory, (&format!("{}:4433", THERE[0]), &HERE))?;
    Ok(Some(Started { way: Way::At(TUNNEL_AT), _server: server }))
}

/// A connection of MPTCP to the SOCKS proxy over there, for each connection here.
fn start_mptcp(programs: &Programs, directory: &Path) -> Result<Option<Started>, String> {
    let (Some((wrap, _)), Some(socat)) = (programs.mptcp(), &programs.socat) else {
        return Ok(None);
    };
    allow_subflows()?;
    let mut program = Command::new(wrap);
    program.arg("run").arg(socat);
    program.arg(format!("TCP-LISTEN:{},bind=127.0.0.1,fork,reuseaddr", MPTCP_AT.port()));
    program.arg(format!("TCP:{}:{FAR_SOCKS}", THERE[0]));
    let server = Server::start("socat", &program, MPTCP_AT, directory)?;
    Ok(Some(Started { way: Way::Socks(MPTCP_AT), _server: server }))
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
    ssh.arg(format!("root@{}", THERE[0]));
    let server = Server::start("ssh", &ssh, SSH_AT, directory)?;
    Ok(Some(Started { way: Way::Socks(SSH_AT), _server: server }))
}

/// A server of ssh that lets in the key that is made for it, and nothing else.
fn ssh_configuration(directory: &Path) -> Result<PathBuf, String> {
    for name in ["ssh-host-key", "ssh-key"] {
        let mut keygen = command("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f"]);
        output(keygen.arg(directory.join(name)))?;
    }
    // It changes to that while it does not trust its client yet.
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
    let peer = (PUBLIC_THERE, WIREGUARD_THERE, Some(THERE[0]));
    let server = wireguard(program, "wg-near", (KEY_HERE, WIREGUARD_HERE), peer)?;
    let at = SocketAddr::new(WIREGUARD_THERE.parse().map_err(|_| "an address")?, PORT);
    Ok(Some(Started { way: Way::At(at), _server: server }))
}

/// An interface of WireGuard's in this namespace, and the peer that it knows: its key, its address inside
/// and, if this end is to speak first, that of the line.
fn wireguard(
    program: &Path,
    name: &str,
    (key, address): (&str, &str),
    (public, peer, line): (&str, &str, Option<&str>),
) -> Result<Server, String> {
    use std::io::{Read as _, Write as _};
    let mut start = Command::new(program);
    start.args(["-f", name]);
    let socket = format!("/run/wireguard/{name}.sock");
    let is_ready = || UnixStream::connect(&socket).is_ok();
    let server = Server::start_until(name, &start, Path::new("/run"), is_ready)?;
    let mut configuration = format!(
        "set=1\nprivate_key={key}\nlisten_port={WIREGUARD_PORT}\npublic_key={public}\n\
         allowed_ip={peer}/32\n"
    );
    if let Some(line) = line {
        configuration.push_str(&format!("endpoint={line}:{WIREGUARD_PORT}\n"));
    }
    configuration.push('\n');
    let sender = UnixStream::connect(&socket).and_then(|mut socket| {
        socket.write_all(configuration.as_bytes())?;
        let mut said = [0; 64];
        let length = socket.read(&mut said)?;
        Ok(String::from_utf8_lossy(&said[..length]).into_owned())
    });
    match sender {
        Ok(said) if said.trim() == "errno=0" => {}
        other => return Err(format!("WireGuard does not take its configuration: {other:?}")),
    }
    output(&mut command("ip", &["address", "add", address, "peer", peer, "dev", name]))?;
    output(&mut command("ip", &["link", "set", name, "mtu", "1420", "up"]))?;
    Ok(server)
}

/// Mbit/s of bytes that are asked for.
pub(super) fn bulk(way: Way, bytes: u64) -> Result<f64, String> {
    let seen = connect(way, PORT).and_then(|mut stream| ask(&mut stream, bytes));
    let seconds = seen.map_err(|error| error.to_string())?.whole.as_secs_f64();
    Ok(bytes as f64 * 8e-6 / seconds)
}

/// The 99th percentile of the milliseconds until a byte is there that is asked for beside bulk.
fn keystrokes(way: Way, count: usize) -> Result<f64, String> {
    let mut typed = connect(way, PORT).map_err(|error| error.to_string())?;
    let flow = Flow::start(way)?;
    thread::sleep(FLOWS);
    let mut rounds = super::super::statistics::Rounds::default();
    for _ in 0..count {
        thread::sleep(TYPING);
        let seen = ask(&mut typed, 1).map_err(|error| error.to_string())?;
        rounds.add(Ok(milliseconds(seen.whole)));
    }
    flow.stop()?;
    rounds.p99().ok_or_else(|| "nothing was typed".into())
}

/// The longest time without a byte, in milliseconds, of bulk during which a line is down for a while.
fn silence(way: Way, change: &dyn Fn(&str) -> Result<(), String>) -> Result<f64, String> {
    let flow = Flow::start(way)?;
    thread::sleep(FLOWS);
    change("down")?;
    thread::sleep(DOWN);
    change("up")?;
    thread::sleep(FLOWS);
    flow.stop()
}

/// Bytes that flow until it is enough.
struct Flow {
    enough: Arc<AtomicBool>,
    longest: mpsc::Receiver<Result<Duration, String>>,
}

impl Flow {
    fn start(way: Way) -> Result<Self, String> {
        let mut stream = connect(way, PORT).map_err(|error| error.to_string())?;
        let (sender, longest) = mpsc::channel();
        let enough = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&enough);
        thread::spawn(move || {
            let seen = traffic::ask_until(&mut stream, u64::MAX, || stop.load(Ordering::Relaxed));
            // Nobody asks, where something else has failed.
            let _ = sender.send(seen.map(|seen| seen.longest).map_err(|error| error.to_string()));
        });
        Ok(Self { enough, longest })
    }

    /// Ends it; the longest time without a byte, in milliseconds.
    fn stop(self) -> Result<f64, String> {
        self.enough.store(true, Ordering::Relaxed);
        let longest = self.longest.recv().map_err(|error| error.to_string())??;
        Ok(milliseconds(longest))
    }
}
