//! Tests with real programs and sockets behind an emulated network. They require root, or a user
//! namespace in which the user is root, in which a test then executes itself again; where neither
//! is allowed, they are skipped with a message.
#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eyas_emulator::{
    Emulator, HostRole, LinkChange, LinkConfig, LinkDirection, LossConfig, MiddleboxConfig,
    Scenario, Topology,
};

/// Far longer than any operation here takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// Set in a test that runs as root of a user namespace.
const INSIDE: &str = "EYAS_TEST_INSIDE_NAMESPACE";

/// Returns whether the test may continue in this process. If not, it has been run in a user
/// namespace, or is skipped.
fn can_run_here(test: &str) -> bool {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user"]);
        command
    };
    let makes_networks = |mut command: Command| {
        command.output().is_ok_and(|output| output.status.success())
            && OpenOptions::new().read(true).write(true).open("/dev/net/tun").is_ok()
    };
    let mut as_current_user = Command::new("unshare");
    as_current_user.args(["--net", "true"]);
    if makes_networks(as_current_user) {
        return true;
    }
    let mut as_root = unshare();
    as_root.args(["--net", "true"]);
    if std::env::var_os(INSIDE).is_some() || !makes_networks(as_root) {
        eprintln!("SKIPPED {test}: no network namespaces, or no TUN devices, for this user");
        return false;
    }
    let program = std::env::current_exe().unwrap();
    let rerun =
        unshare().arg(program).args(["--exact", test, "--nocapture"]).env(INSIDE, "1").output();
    let output = rerun.unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    // With a name that no test has, nothing would have run, which is a success to the harness.
    assert!(
        output.status.success() && stdout.contains("running 1 test"),
        "{test}: {stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn udp(emulator: &Emulator, host: HostRole, address: SocketAddr) -> UdpSocket {
    let socket = emulator.namespace(host).run_in(|| UdpSocket::bind(address)).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Returns sockets of both hosts, and the address of the server's.
fn sockets(emulator: &Emulator, path: &str, v6: bool) -> (UdpSocket, UdpSocket, SocketAddr) {
    let path = emulator.topology().path(path).unwrap();
    let address_of = |host| SocketAddr::new(path.addresses(host)[usize::from(v6)], 5000);
    let client = udp(emulator, HostRole::Client, address_of(HostRole::Client));
    let server = udp(emulator, HostRole::Server, address_of(HostRole::Server));
    (client, server, address_of(HostRole::Server))
}

#[test]
fn packets_of_both_families_are_delayed() {
    if !can_run_here("packets_of_both_families_are_delayed") {
        return;
    }
    let link = LinkConfig { delay: milliseconds(20), ..LinkConfig::default() };
    let emulator = Emulator::start(&Topology::single(&link)).unwrap();
    for v6 in [false, true] {
        let (client, server, to) = sockets(&emulator, "path", v6);
        let sent = Instant::now();
        client.send_to(b"there", to).unwrap();
        let mut buffer = [0; 16];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"there");
        server.send_to(b"and back", from).unwrap();
        assert_eq!(client.recv(&mut buffer).unwrap(), 8);
        assert!(sent.elapsed() >= milliseconds(40), "not before the delay has passed");
    }
    let counters = emulator.counters().unwrap();
    for direction in [LinkDirection::Forward, LinkDirection::Backward] {
        let link = counters.paths[0].direction(direction).link;
        assert_eq!(link.delivered.packets, 2, "and there are no other packets: {link:?}");
    }
}

#[test]
fn losses_are_counted_and_links_change() {
    if !can_run_here("losses_are_counted_and_links_change") {
        return;
    }
    let lossy = LinkConfig { loss: LossConfig::List(vec![1, 2]), ..LinkConfig::default() };
    let topology = Topology::default().with_path("wifi", lossy, LinkConfig::default());
    let emulator = Emulator::start(&topology).unwrap();
    let (client, server, to) = sockets(&emulator, "wifi", false);
    let mut buffer = [0; 16];
    let mut next = || {
        let length = server.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    };
    for number in [0_u8, 1, 2, 3] {
        client.send_to(&[number], to).unwrap();
    }
    assert_eq!([next(), next()], [[0], [3]]);
    emulator.change_link("wifi", LinkDirection::Forward, LinkChange::Down).unwrap();
    client.send_to(&[4], to).unwrap();
    // The cut is in effect when the call returns, and the packet is on the device before the repair
    // is requested; the engine reads devices before requests.
    while emulator.counters().unwrap().paths[0].forward.link.offered.packets < 5 {
        std::thread::sleep(milliseconds(5));
    }
    emulator.change("wifi", LinkDirection::Forward, LinkConfig::default()).unwrap();
    emulator.change_link("wifi", LinkDirection::Forward, LinkChange::Up).unwrap();
    client.send_to(&[5], to).unwrap();
    assert_eq!(next(), [5]);
    let forward = emulator.counters().unwrap().paths[0].forward.clone();
    assert_eq!(forward.link.total_dropped().packets, 3);
    let known = emulator.change_link("lte", LinkDirection::Forward, LinkChange::Up).unwrap_err();
    assert_eq!(known.to_string(), "there is no path \"lte\"; there are wifi");
}

#[test]
fn a_quota_ends_a_flow_and_a_trace_delivers_one_packet_at_a_time() {
    if !can_run_here("a_quota_ends_a_flow_and_a_trace_delivers_one_packet_at_a_time") {
        return;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "10\n").unwrap();
    let text = format!(
        "[path.line]
        forward.trace = '{}'
        [[path.line.middlebox]]
        kind = 'quota'
        drops = ['udp']
        packets = 5",
        file.path().display()
    );
    let emulator = Emulator::start(&Scenario::parse(&text).unwrap().topology).unwrap();
    let (client, server, to) = sockets(&emulator, "line", false);
    let sent = Instant::now();
    for number in 0..20 {
        client.send_to(&[number; 1400], to).unwrap();
    }
    let mut buffer = [0; 1500];
    let arrived = [(); 5].map(|()| {
        server.recv(&mut buffer).unwrap();
        buffer[0]
    });
    assert_eq!(arrived, [0, 1, 2, 3, 4]);
    assert!(sent.elapsed() >= milliseconds(40), "five opportunities");
    let counters = emulator.counters().unwrap();
    let line = &counters.paths[0];
    assert_eq!(line.middleboxes[0].packets.dropped.udp, 15);
    assert_eq!(line.middleboxes[0].rule, "drops udp after 5 packets");
    assert_eq!(line.forward.link.delivered.packets, 5);
}

#[test]
fn tcp_passes_a_nat_and_its_packets_are_captured() {
    if !can_run_here("tcp_passes_a_nat_and_its_packets_are_captured") {
        return;
    }
    let topology = Topology::single(&LinkConfig::new(100_000_000, milliseconds(1)))
        .with_middlebox(MiddleboxConfig::nat());
    let emulator = Emulator::start(&topology).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("capture.pcapng");
    emulator.capture(None, &file).unwrap();
    let address = emulator.address("path", HostRole::Server).unwrap();
    let outside = topology.paths[0].nat_address().unwrap();
    let server = emulator.namespace(HostRole::Server);
    let listener = server.run_in(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let address_of = listener.local_addr().unwrap();
    let client = emulator.namespace(HostRole::Client);
    let mut ours =
        client.run_in(|| TcpStream::connect_timeout(&address_of, PATIENCE)).unwrap().unwrap();
    let (mut theirs, from) = listener.accept().unwrap();
    assert_eq!(from.ip(), outside);
    ours.write_all(&[7; 100_000]).unwrap();
    drop(ours);
    let mut whole = Vec::new();
    theirs.set_read_timeout(Some(PATIENCE)).unwrap();
    theirs.read_to_end(&mut whole).unwrap();
    assert_eq!(whole, [7; 100_000]);
    emulator.end_capture().unwrap();
    assert_eq!(emulator.counters().unwrap().uncaptured, 0);
    assert!(std::fs::metadata(&file).unwrap().len() > 200_000, "both ends");
}

#[test]
fn a_path_may_be_named_like_a_keyword_of_ip() {
    if !can_run_here("a_path_may_be_named_like_a_keyword_of_ip") {
        return;
    }
    let names =
        ["a", "b", "up", "mtu", "name", "dev", "lo", "all", "longer-than-any-interface.may-be"];
    let topology = names.iter().fold(Topology::default(), |topology, name| {
        topology.with_path(name, LinkConfig::default(), LinkConfig::default())
    });
    let emulator = Emulator::start(&topology).unwrap();
    for (name, v6) in names.iter().zip([false, true].into_iter().cycle()) {
        let (client, server, to) = sockets(&emulator, name, v6);
        client.send_to(name.as_bytes(), to).unwrap();
        let mut buffer = [0; 64];
        let length = server.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], name.as_bytes());
        let counters = emulator.counters().unwrap();
        assert_eq!(counters.path(name).unwrap().forward.link.delivered.packets, 1, "{name}");
    }
}

#[test]
fn no_process_inside_survives() {
    if !can_run_here("no_process_inside_survives") {
        return;
    }
    let emulator = Emulator::start(&Topology::single(&LinkConfig::default())).unwrap();
    let mut command = emulator.namespace(HostRole::Server).command("sh");
    // A grandchild in its own session, which ignores all signals that it can.
    command.args(["-c", "trap '' HUP TERM INT; setsid sleep 1000 & echo $!; wait"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut byte = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    drop(emulator);
    assert!(!child.wait().unwrap().success(), "it was killed");
    // The grandchild held the other end of the pipe.
    let mut rest = String::new();
    child.stdout.unwrap().read_to_string(&mut rest).unwrap();
}
