//! A load balancer in front, and the other details of the ports.

use std::fs;

use super::*;

#[test]
fn the_log_has_the_client_behind_a_balancer() {
    let flags = "--plain --accept-proxy-protocol 127.0.0.0/8 --log access.log";
    let server = Server::start(flags, |_| {});
    let answer = server.ask(&format!("PROXY TCP4 192.0.2.7 198.51.100.1 5000 443\r\n{GET}"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let log = || fs::read_to_string(server.path("access.log")).unwrap_or_default();
    server.running.until("logs it", || log().starts_with("192.0.2.7 - - ["));
    server.stop();
    Eyas::new("serve --accept-proxy-protocol everybody").run().exits(2);
}

#[test]
fn an_upstream_is_told_of_the_client_behind_a_balancer() {
    let upstream = crate::stage::Served::start(Eyas::new("serve --plain --no-files --no-sctp"));
    let port = own_port();
    let line = format!(
        "serve --plain --no-sctp -l {port} --upstream http://{} --accept-proxy-protocol 127.0.0.1",
        upstream.address
    );
    let running = Eyas::new(&line).start();
    running.wait_for_stdout("listening");
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    let request = "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let header = "PROXY TCP4 192.0.2.7 198.51.100.1 5000 443\r\n";
    stream.write_all(format!("{header}{request}").as_bytes()).expect("sends");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("for=192.0.2.7"), "{answer}");
    running.signal("TERM");
    running.end().exits(0);
}

#[test]
fn http_without_tls_is_answered_on_the_port_of_tls() {
    let server = Server::start("", |_| {});
    let answer = server.ask(GET);
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("speaks TLS"), "{answer}");
    server.stop();
}

#[test]
fn a_name_to_listen_on_has_all_its_addresses() {
    let port = own_port();
    let line = format!("serve --plain --no-files --no-sctp --json -l localhost:{port}");
    let running = Eyas::new(&line).start();
    running.wait_for_stdout("}");
    running.signal("TERM");
    let object = running.end().exits(0).json();
    let addresses = object["addresses"].as_array().expect("a list");
    let has_ipv6 = std::net::UdpSocket::bind("[::1]:0").is_ok();
    assert!(addresses.contains(&format!("127.0.0.1:{port}").into()), "{object}");
    let hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
    if has_ipv6 && hosts.lines().any(|line| line.starts_with("::1") && line.contains("localhost")) {
        assert!(addresses.contains(&format!("[::1]:{port}").into()), "{object}");
    }
    let refused = Eyas::new("serve -l no-such-name.invalid:1").run().exits(2);
    assert!(refused.err.contains("no-such-name.invalid"), "{}", refused.err);
}

#[test]
fn further_names_are_in_the_generated_certificate() {
    let server = Server::start("--names bücher.example --save-cert ca.pem", |_| {});
    server.get("--cacert ca.pem").run().exits(0);
    let port = server.port;
    let ascii = "xn--bcher-kva.example";
    let line = format!(
        "get --cacert ca.pem https://bücher.example:{port}/bytes/5 --resolve {ascii}:{port}:127.0.0.1"
    );
    Eyas::new(&line).within(server.directory.path()).run().exits(0);
    server.stop();
}
