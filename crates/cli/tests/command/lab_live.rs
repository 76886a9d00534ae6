//! Tests of `eyas lab` on real sockets, with small experiments.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::stage::{Eyas, validate};

/// The limit for the processes of a run to end; they hang if they take longer.
const HANGS: Duration = Duration::from_secs(120);

/// One small load on a server, live: TCP and SCTP, raced as in 2016, plain and under TLS.
const LIVE: &str = "kind = 'live'\nname = 'small'\ntitle = 'Small'\nabout = 'A load.'\nruns = 1
figure = [{ title = 'CPU', measure = 'p50.cpu', drawing = 'medians' }]
live = { experiment = 'cost', size = '1 KiB', rate = 20, trying = 'naive', warm_up = '200 ms', \
duration = '1 s', sample = '500 ms' }
sweep = { parameter = 'live.rate', values = [20] }
curve = [{ id = 'plain' }, { id = 'tls', set.live = { tls = true, outcome = 'sctp' } }]
";

fn lab(directory: &Path, line: &str) -> Eyas {
    Eyas::new(&format!("lab {line}")).arg("--out").arg(directory.join("out").display().to_string())
}

fn plan(directory: &Path, text: &str) -> String {
    let file = directory.join("small.toml");
    fs::write(&file, text).expect("a plan");
    format!("run {}", file.display())
}

/// Returns whether a server's host can be measured here; reports if not.
fn can_measure_hosts() -> bool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let can = rustix::process::geteuid().is_root()
        && cores >= 2
        && Path::new("/dev/net/tun").exists()
        && Path::new("/proc/slabinfo").exists();
    if !can {
        eprintln!("SKIPPED: a server's host is measured by root, with TUN devices and two cores");
    }
    can
}

/// Returns a measure of the point of this curve.
fn measured(object: &serde_json::Value, curve: &str, measure: &str) -> f64 {
    let mut points = object["points"].as_array().into_iter().flatten();
    let point = points.find(|point| point["curve"] == curve);
    point.and_then(|point| point["measures"][measure]["value"].as_f64()).unwrap_or(f64::NAN)
}

#[test]
fn what_a_race_costs_a_server_is_measured() {
    if !can_measure_hosts() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let line = plan(directory.path(), LIVE);
    let object = lab(directory.path(), &line).arg("--json").run().exits(0).json();
    validate("lab", &object);
    for curve in ["plain", "tls"] {
        let measured = |measure| measured(&object, curve, measure);
        assert_eq!(measured("mean.answered"), 100.0, "{curve}: {object:#}");
        assert!(measured("mean.cpu") > 0.0 && measured("mean.cpu-receiving") > 0.0, "{curve}");
        assert!(measured("mean.own-memory") > 1.0 && measured("mean.kernel-memory") > 1.0);
        assert!(measured("mean.request-packets") > 10.0, "both handshakes: {curve}");
        assert!(measured("mean.request-completed") > 0.5, "the loser's, too: {curve}: {object:#}");
    }
    let page = fs::read_to_string(directory.path().join("out/report.html")).expect("a page");
    assert!(page.contains("<rect"), "bars");
}

/// A few requests over TCP and QUIC, live.
const REQUESTS: &str = "kind = 'live'\nname = 'small'\ntitle = 'Small'\nabout = 'Requests.'\nruns = 1
figure = [{ title = 'Time', measure = 'mean.time' }]
live = { experiment = 'connect', trials = 2, pace = '5 ms', second_after = ['0 s'], give_up = '10 s', \
 way = 'race' }
sweep = { parameter = 'live.link.delay', values = ['2 ms'] }
curve = [{ id = 'race' }]
";

#[test]
fn an_ordinary_user_runs_an_experiment() {
    let program = env!("CARGO_BIN_EXE_eyas");
    let as_ordinary_user = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command
    };
    let can = |arguments: &[&str]| {
        as_ordinary_user().args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let namespaces =
        ["unshare", "--user", "--map-root-user", "--net", "test", "-w", "/dev/net/tun"];
    if !can(&namespaces) || !can(&[program, "--version"]) {
        return eprintln!("SKIPPED: no ordinary user who may make namespaces and run this");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(directory.path(), open).expect("it is ours");
    let words = plan(directory.path(), REQUESTS);
    let output = as_ordinary_user()
        .arg(program)
        .arg("lab")
        .args(words.split(' '))
        .arg("--json")
        .arg("--out")
        .arg(directory.path().join("out"))
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let object = serde_json::from_slice(&output.stdout).expect("an object");
    assert!(measured(&object, "race", "mean.time") > 0.0, "{object:#}");
}

#[test]
fn without_namespaces_the_hint_is_given_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let words = plan(directory.path(), REQUESTS);
    let program = env!("CARGO_BIN_EXE_eyas");
    // Root without CAP_SYS_ADMIN, where user namespaces are disabled, too.
    let line = "echo 0 >/proc/sys/user/max_user_namespaces && cd \"$0\" && \
                exec setpriv --bounding-set -sys_admin \"$@\"";
    let start = |arguments: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", line]).arg(directory.path());
        command.arg(program).args(arguments.split(' ')).output().expect("unshare is there")
    };
    if !start("--version").status.success() {
        return eprintln!("SKIPPED: no user namespaces here");
    }
    for arguments in [&*format!("lab {words}"), "netem run -- true"] {
        let output = start(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(113), "{stderr}");
        assert!(stderr.contains("'sysctl -w user.max_user_namespaces=10000'"), "{stderr}");
        assert_eq!(stderr.matches("user namespace:").count(), 1, "{stderr}");
        assert!(!stderr.contains("unshare"), "{stderr}");
    }
}

/// Returns the server processes of a program.
fn servers_of(parent: u32) -> Vec<PathBuf> {
    let is_server = |process: &PathBuf| {
        let read = |file: &str| fs::read_to_string(process.join(file)).unwrap_or_default();
        let status = read("status");
        let parent_line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent_line.is_some_and(|id| id.trim() == parent.to_string())
            && read("cmdline").contains("serve")
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.map(|entry| entry.path()).filter(is_server).collect()
}

#[test]
fn a_live_run_that_is_ended_leaves_no_server() {
    if !can_measure_hosts() {
        return;
    }
    for signal in ["INT", "KILL"] {
        let directory = tempfile::tempdir().expect("a directory");
        let line = plan(directory.path(), &LIVE.replace("'1 s'", "'60 s'"));
        let running = lab(directory.path(), &line).start();
        let id = running.id();
        running.until("starts a server", || !servers_of(id).is_empty());
        let servers = servers_of(id);
        running.signal(signal);
        running.end();
        let ended = Instant::now();
        while servers.iter().any(|server| server.join("status").exists()) {
            assert!(ended.elapsed() < HANGS, "{signal}: {servers:?} still runs");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!directory.path().join("out/result.json").exists(), "nothing half-written");
    }
}
