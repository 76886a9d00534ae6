//! Tests of `eyas netem`: commands behind emulated networks. Where this user cannot create
//! namespaces, they are skipped.
#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::stage::{Eyas, validate};

/// The limit for conditions, far longer than they take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns whether namespaces can be created here; reports if not.
pub(crate) fn is_possible() -> bool {
    let tried = Command::new("unshare").args(["--map-root-user", "--net", "true"]).output();
    let tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let possible = tried.is_ok_and(|output| output.status.success()) && tun.is_ok();
    if !possible {
        eprintln!("SKIPPED: no network namespaces, or no TUN devices, for this user");
    }
    possible
}

/// Starts a run with this shell command, and returns its first line.
fn started(options: &str, line: &str) -> (Child, String) {
    let eyas = Eyas::new(&format!("netem run --quiet {options} --")).arg("sh").arg("-c").arg(line);
    let mut child = eyas.command().stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut first_line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut first_line).expect("it prints a line");
    (child, first_line.trim().to_owned())
}

pub(crate) fn signal(name: &str, id: u32) {
    let sent = Command::new("kill").args([name, &id.to_string()]).status().expect("kill is there");
    assert!(sent.success());
}

pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_unavailable_requirement_is_named() {
    if !is_possible() {
        return;
    }
    let message = Eyas::new("netem run --core 5000 -- true").run().exits(2).err;
    assert!(message.contains("there is no core 5000"), "{message}");
    let message = Eyas::new("netem run --pcapng /no/such/file -- true").run().exits(23).err;
    assert!(message.contains("cannot write /no/such/file"), "{message}");
}

#[test]
fn the_status_and_the_packet_counts_of_the_command_are_reported() {
    if !is_possible() {
        return;
    }
    let eyas =
        Eyas::new("netem run --json --delay 5ms --path wifi --path lte:forward.loss=100% --");
    // Both families, over the first path; then out by the second one's address, which loses all.
    let line = "ping -c 1 -W 5 $EYAS_SERVER && ping -c 1 -W 5 $EYAS_SERVER6 || exit 9; exit 7";
    let finished = eyas.arg("sh").arg("-c").arg(line).run();
    if finished.err.contains("ping: not found") {
        return eprintln!("SKIPPED: there is no ping");
    }
    let object = finished.exits(7).json();
    validate("netem", &object);
    assert_eq!(object["command"]["exit_code"], 7);
    let paths = object["paths"].as_array().expect("paths");
    assert_eq!(paths.len(), 2);
    let wifi = paths.iter().find(|path| path["name"] == "wifi").expect("wifi");
    assert_eq!(wifi["forward"]["delivered"]["packets"], 2);
    assert_eq!(wifi["backward"]["delivered"]["packets"], 2);
    assert_eq!(
        paths.iter().find(|path| path["name"] == "lte").expect("lte")["forward"]["offered"]["packets"],
        0
    );
}

#[test]
fn each_middlebox_reports_what_it_dropped() {
    if !is_possible() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("walled.toml");
    let text = "[path.wifi]\n[[path.wifi.middlebox]]\nkind = 'nat'\n
                [[path.wifi.middlebox]]\nkind = 'firewall'\ndrops = ['udp']\n";
    std::fs::write(&file, text).expect("it is written");
    let line = format!("netem run --json --topology {} --", file.display());
    let eyas = env!("CARGO_BIN_EXE_eyas");
    // Nothing answers: the race ends at its timeout.
    let command = format!("{eyas} race quic://198.18.1.2:443 --connect-timeout 1; exit 0");
    let finished = Eyas::new(&line).arg("sh").arg("-c").arg(command).run();
    let object = finished.exits(0).json();
    validate("netem", &object);
    let boxes = &object["paths"][0]["middleboxes"];
    assert_eq!((&boxes[0]["kind"], &boxes[1]["kind"]), (&"nat".into(), &"firewall".into()));
    assert_eq!(boxes[1]["rule"], "drops udp");
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or_default();
    assert!(number(&boxes[0]["passed"]) > 0, "{object:#}");
    assert!(number(&boxes[1]["dropped_by_protocol"]["udp"]) > 0, "{object:#}");
    assert_eq!(boxes[1]["dropped_by_protocol"]["udp"], boxes[1]["dropped"]);
}

/// The device passes one packet of a ClientHello. Each transport finds out, gets through with a shorter one, and begins with
/// that in another process.
#[test]
fn a_client_hello_of_two_packets_that_does_not_get_through_is_named_and_remembered() {
    if !is_possible() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).display().to_string();
    let text = "[path.wifi]\ndelay = '5 ms'\n[[path.wifi.middlebox]]\nkind = 'long-hello'\n";
    std::fs::write(at("narrow.toml"), text).expect("it is written");
    let eyas = env!("CARGO_BIN_EXE_eyas");
    let memory = at("memory.sqlite");
    let mut commands = Vec::new();
    for transport in ["tcp", "quic"] {
        for turn in ["first", "second"] {
            let race = format!("{eyas} race -k --json --memory {memory} --alpn h2,h3");
            let out = at(&format!("{transport}-{turn}"));
            commands.push(format!("{race} {transport}://198.18.1.2:443 > {out}"));
        }
    }
    let run = Eyas::new("netem run --json --topology").arg(at("narrow.toml"));
    let run = run.arg("--server").arg(format!("{eyas} serve --listen [::]:443")).arg("--");
    let object = run.arg("sh").arg("-c").arg(commands.join(" && ")).run().exits(0).json();
    let dropped = &object["paths"][0]["middleboxes"][0]["dropped_by_protocol"];
    assert!(dropped["tcp"].as_u64() > Some(0) && dropped["udp"].as_u64() > Some(0), "{object:#}");
    for transport in ["tcp", "quic"] {
        let result = |turn: &str| -> serde_json::Value {
            let text = std::fs::read_to_string(at(&format!("{transport}-{turn}"))).expect("it ran");
            let object = serde_json::from_str(&text).expect("an object");
            validate("race", &object);
            object
        };
        let (first, second) = (result("first"), result("second"));
        let attempts =
            |race: &serde_json::Value| race["attempts"].as_array().cloned().unwrap_or_default();
        // Over QUIC several attempts at the same candidate may be under way.
        let won =
            attempts(&first).into_iter().find(|one| one["outcome"] == "won").expect("a winner");
        let reason = won["reason"].as_str().unwrap_or_default();
        assert!(reason.starts_with("long-client-hello"), "{first:#}");
        assert_eq!((&won["transport"], &won["short_hello"]), (&transport.into(), &true.into()));
        for race in [&first, &second] {
            assert_eq!(race["connection"]["key_exchange"], "X25519", "{race:#}");
        }
        let attempts = attempts(&second);
        assert_eq!(attempts.len(), 1, "{second:#}");
        assert_eq!(attempts[0]["short_hello"], true);
        let reason = attempts[0]["reason"].as_str().unwrap_or_default();
        assert!(
            !reason.contains("long-client-hello") && reason.contains("two packets"),
            "{reason}"
        );
    }
}

#[test]
fn a_command_that_cannot_be_run_fails_as_in_a_shell() {
    if !is_possible() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").expect("it is written");
    let script = script.display().to_string();
    let run =
        |command: &str| Eyas::new("netem run --json --").arg(command).arg("of the command").run();
    for (command, code, kind, word) in [
        ("nosuchcommand", 127, "not-found", "cannot run nosuchcommand: command not found in PATH"),
        ("/no/such/command", 127, "not-found", "there is no such file"),
        ("/", 126, "not-executable", "it is not executable"),
        (&*script, 126, "not-executable", "it is not executable"),
    ] {
        let error = run(command).exits(code).json()["error"].clone();
        assert_eq!(
            (&error["kind"], &error["exit_code"]),
            (&kind.into(), &code.into()),
            "{command}"
        );
        assert!(
            error["message"].as_str().is_some_and(|first_line| first_line.contains(word)),
            "{error}"
        );
    }
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, executable).expect("it is ours");
    let error = run(&script).exits(126).json()["error"]["message"].clone();
    assert!(error.as_str().is_some_and(|first_line| first_line.contains("interpreter")), "{error}");
}

#[test]
fn a_run_is_changed_while_it_lasts() {
    if !is_possible() {
        return;
    }
    let (mut child, first_line) = started("--delay 1ms", "echo $EYAS_NETEM; sleep 1000");
    assert_eq!(first_line, child.id().to_string(), "the command knows its run");
    let run_netem = |line: &str| Eyas::new(&format!("netem {line} --run {first_line}")).run();
    run_netem("change --loss 100% --backward delay=2ms --state down").exits(0);
    let shown = run_netem("show --json").exits(0).json();
    assert_eq!(shown["paths"][0]["forward"]["up"], false);
    let refused = run_netem("change --path lte --loss 1%").exits(2);
    assert!(refused.err.contains("there is no path \"lte\"; there are path"), "{}", refused.err);
    run_netem("change").exits(2);
    signal("-TERM", child.id());
    assert_eq!(child.wait().expect("a child").code(), Some(128 + 15), "the command got it");
}

#[test]
fn nothing_remains_of_a_run_that_is_killed() {
    if !is_possible() {
        return;
    }
    for (name, server) in [("-KILL", ""), ("-KILL", "--server"), ("-TERM", "--server")] {
        let mut eyas = Eyas::new("netem run --quiet");
        if !server.is_empty() {
            eyas = eyas.arg("--server").arg("sleep 1000 & sleep 1000");
        }
        // A child that ignores signals, and one in a separate session.
        let line = "trap '' INT HUP; setsid sleep 1000 & echo $! $$; wait";
        let eyas = eyas.arg("--").arg("sh").arg("-c").arg(line);
        let mut child = eyas.command().stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut first_line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        out.read_line(&mut first_line).expect("it prints the ids of its children");
        let inside = std::fs::read_link(format!(
            "/proc/{}/ns/net",
            first_line.split(' ').next().expect("one")
        ));
        let inside = inside.expect("it lives in a namespace");
        signal(name, child.id());
        child.wait().expect("a child");
        until("no process is left inside", || {
            let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
            !processes
                .filter_map(|process| std::fs::read_link(process.path().join("ns/net")).ok())
                .any(|namespace| namespace == inside)
        });
    }
}

#[test]
fn a_command_that_ignores_sigterm_is_ended() {
    if !is_possible() {
        return;
    }
    let (mut run, _) = started("", "trap '' TERM; echo ready; while :; do sleep 1; done");
    signal("-TERM", run.id());
    until("the run ends", || run.try_wait().expect("it can be waited for").is_some());
    let status = run.wait().expect("it has ended");
    assert_eq!(status.code(), Some(128 + 9), "killed");
}

#[test]
fn mistakes_are_reported_before_anything_is_created() {
    for (line, word) in [
        ("netem run --delay soon -- true", "--delay: \"soon\" is not a time"),
        ("netem run --topology /nowhere.toml -- true", "cannot read /nowhere.toml"),
        ("netem change --loss 1% --run 1", "cannot reach the run 1"),
    ] {
        let finished = Eyas::new(line).run();
        assert!(finished.code.is_some_and(|code| code > 1), "{line}");
        assert!(finished.err.contains(word), "{}", finished.err);
    }
}
