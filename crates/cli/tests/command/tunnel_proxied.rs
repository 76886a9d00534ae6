//! `eyas tunnel` through a proxy.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};

use eyas::ServerIdentity;

use crate::ports::own_port;
use crate::stage::{Faulty, Running, validate};
use crate::tunnel::{Ends, echo};

/// Starts a proxy for ada at this port, which prints a line for each connection.
fn proxy(ends: &Ends, port: u16, flags: &str) -> Running {
    fs::write(ends.path("users"), "ada:secret\n").expect("writes");
    let line = format!("proxy --explain -l 127.0.0.1:{port} --users users {flags}");
    let running = ends.within(&line).start();
    running.wait_for_stdout("proxy on");
    running
}

fn stop(running: Running) -> String {
    running.signal("TERM");
    running.end().exits(0).out
}

/// The client asks a destination through the tunnel, and the proxy says whether it was asked.
#[test]
fn the_flags_and_the_environment_decide_whether_a_proxy_is_used() {
    let ends = Ends::new();
    let (server, to) = (ends.serve(), format!("--stdio 127.0.0.1:{}", echo()));
    let identity = ServerIdentity::self_signed(["127.0.0.1"]).expect("an identity");
    let pem = identity.certificate_pem().expect("PEM");
    fs::write(ends.path("proxy.pem"), pem).expect("writes");
    fs::write(ends.path("proxy.key"), identity.key_pem().expect("PEM")).expect("writes");
    let http = format!("http://ada:secret@127.0.0.1:{}", own_port());
    let https = format!("https://ada:secret@127.0.0.1:{}", own_port());
    let port = |url: &str| url.rsplit(':').next().expect("a port").parse().expect("a number");
    let none = [("", ""); 2];
    for (flags, variables, is_proxied) in [
        (format!("--proxy {http}"), none, true),
        (format!("-x {https} --proxy-cacert proxy.pem"), none, true),
        (String::new(), [("HTTPS_PROXY", http.as_str()), ("", "")], true),
        (String::new(), [("all_proxy", http.as_str()), ("NO_PROXY", "elsewhere.test")], true),
        (String::new(), [("https_proxy", http.as_str()), ("no_proxy", "127.0.0.0/8")], false),
        ("--noproxy *".to_owned(), [("https_proxy", http.as_str()), ("", "")], false),
        (format!("--proxy {http} --noproxy 127.0.0.1"), none, false),
        ("--proxy=".to_owned(), [("https_proxy", http.as_str()), ("", "")], false),
        (String::new(), [("http_proxy", http.as_str()), ("", "")], false),
    ] {
        let running = match flags.contains("https://") {
            true => proxy(&ends, port(&https), "--tls-cert proxy.pem --tls-key proxy.key"),
            false => proxy(&ends, port(&http), ""),
        };
        let mut client = ends.client(&format!("{to} {flags}")).stdin("there and back\n");
        for (name, value) in variables.into_iter().filter(|(name, _)| !name.is_empty()) {
            client = client.env(name, value);
        }
        let finished = client.start().end().exits(0);
        assert_eq!(finished.out, "there and back\n", "{flags} {variables:?}");
        let asked = stop(running).contains(&format!("127.0.0.1:{}", ends.port));
        assert_eq!(asked, is_proxied, "{flags} {variables:?}");
    }
    stop(server);
}

#[test]
fn a_proxy_that_does_not_lead_to_the_server_is_reported_with_the_next_step() {
    let ends = Ends::new();
    let server = ends.serve();
    let (at, strict) = (own_port(), own_port());
    let (running, forbidding) = (proxy(&ends, at, ""), proxy(&ends, strict, "--deny *"));
    let fails = |flags: &str, code: i32, words: &[&str]| {
        let refused = ends.client(&format!("-D 0 {flags}")).run().exits(code);
        for word in words {
            assert!(refused.err.contains(word), "{flags}: {word}: {}", refused.err);
        }
        assert!(!refused.err.contains("secret"), "{}", refused.err);
    };
    let named = format!("the proxy http://127.0.0.1:{at} answered");
    fails(&format!("-x http://127.0.0.1:{at}"), 7, &[&named, "407", "NAME:PASSWORD@"]);
    fails(
        &format!("-x http://ada:secret1@127.0.0.1:{at}"),
        7,
        &[&named, "407", "does not accept this NAME:PASSWORD"],
    );
    fails(
        &format!("-x http://ada:secret@127.0.0.1:{strict}"),
        7,
        &["403 Forbidden", &format!("allow CONNECT to port {}", ends.port), "443"],
    );
    fails(&format!("-x http://127.0.0.1:{}", own_port()), 7, &["cannot reach the proxy"]);
    fails(&format!("-x http://{}", Faulty::Gibberish.start()), 56, &["does not answer"]);
    let silent = format!("-x http://{} --connect-timeout 300ms", Faulty::Silent.start());
    fails(&silent, 28, &["did not", "300ms", "--noproxy '*'"]);
    let own =
        format!("--connect-to ::127.0.0.1:{} -x http://ada:secret@127.0.0.1:{at}", own_port());
    fails(&own, 7, &["502"]);
    let (http, plain) = ("-x http://ada:secret@127.0.0.1:1", "http://127.0.0.1:1");
    fails(&format!("{http} --multipath"), 2, &["--multipath requires SCTP", plain]);
    fails("-x socks5://ada:secret@127.0.0.1:1", 2, &["socks5", "--noproxy"]);
    fails("-x ftp://ada:secret@127.0.0.1:1", 2, &["ftp"]);
    let client = ends.client_over("quic+sctp://", &format!("-D 0 {http}"));
    let refused = client.run().exits(2).err;
    assert!(refused.contains("quic") && refused.contains("only tcp does"), "{refused}");
    for running in [running, forbidding, server] {
        stop(running);
    }
    assert!(!ends.path("known").exists(), "no server was reached");
}

#[test]
fn the_session_comes_back_with_the_proxy_and_its_status_names_it() {
    let ends = Ends::new();
    let server = ends.serve();
    let (at, here, there) = (own_port(), own_port(), echo());
    let running = proxy(&ends, at, "");
    let url = format!("http://ada:secret@127.0.0.1:{at}");
    let client = ends.client(&format!("-L {here}:127.0.0.1:{there}"));
    let client = client.env("HTTPS_PROXY", &url).start();
    client.wait_for_stderr(&format!("connected over tcp through the proxy http://127.0.0.1:{at}"));
    client.wait_for_stderr("leads to");
    let converse = || {
        let mut program = TcpStream::connect((Ipv4Addr::LOCALHOST, here)).expect("it listens");
        program.write_all(b"there and back").expect("writes");
        program.shutdown(Shutdown::Write).expect("ends");
        let mut received = String::new();
        program.read_to_string(&mut received).expect("reads");
        assert_eq!(received, "there and back");
    };
    converse();
    let status = ends.within("tunnel status --json").run().exits(0).json();
    validate("tunnel-status", &status);
    let all = status["tunnels"].as_array().expect("a list");
    let proxy_of = |role: &str| {
        let one = all.iter().find(|one| one["role"] == role).expect("it runs");
        one["sessions"][0]["proxy"].clone()
    };
    assert_eq!(proxy_of("client"), format!("the proxy http://127.0.0.1:{at}"));
    assert_eq!(proxy_of("server"), serde_json::Value::Null);
    let page = ends.within("tunnel status").run().exits(0).out;
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("through the proxy http://127.0.0.1:{at} over tcp")), "{page}");

    // As a kill ends it.
    running.signal("KILL");
    running.end();
    client.wait_for_stderr("cannot reach the proxy");
    let running = proxy(&ends, at, "");
    converse();
    client.wait_for_stderr("reconnected over tcp through the proxy");
    for running in [client, running, server] {
        stop(running);
    }
}
