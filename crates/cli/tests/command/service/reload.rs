//! Files that are loaded again while connections go on.

use std::fs;
use std::sync::Arc;

use eyas::SecurityParameters;
use eyas::rustls::pki_types::ServerName;
use eyas::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use eyas_http::Versions;

use super::*;

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Connects over TLS to `localhost`.
fn connect(port: u16, trusted: &ServerIdentity) -> Tls {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.certificate().clone()).expect("a root");
    let provider = Arc::new(eyas::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let tls = ClientConnection::new(Arc::new(config), name).expect("a configuration");
    let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    StreamOwned::new(tls, tcp)
}

/// Sends a request on an open connection, and reads the response.
fn ask_again(stream: &mut Tls) {
    let request = "GET /bytes/5 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("it is open");
    let mut response = Vec::new();
    while !response.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut piece = [0; 512];
        let length = stream.read(&mut piece).expect("it is open");
        assert!(length > 0, "it is open");
        response.extend(&piece[..length]);
    }
    assert!(response.starts_with(b"HTTP/1.1 200 "));
}

#[test]
fn certificates_are_loaded_after_sighup_while_connections_go_on() {
    let mut old = None;
    let server = Server::start("--cert a.pem --key a.key", |directory| {
        old = Some(certificate(directory, "a", &["localhost"]));
    });
    fs::copy(server.path("a.pem"), server.path("old.pem")).expect("copies");
    let mut connection = connect(server.port, &old.expect("prepared"));
    ask_again(&mut connection);
    certificate(server.directory.path(), "a", &["localhost"]);
    server.running.signal("HUP");
    server.running.wait_for_stderr("loaded a.pem");
    ask_again(&mut connection);
    for version in ["--http2", "--http3-only"] {
        server.get(&format!("{version} --cacert a.pem")).run().exits(0);
        server.get(&format!("{version} --cacert old.pem")).run().exits(60);
    }
    server.stop();
}

#[test]
fn changed_files_are_loaded_without_a_signal() {
    let server = Server::start("--cert a.pem --key a.key", |directory| {
        certificate(directory, "a", &["localhost"]);
    });
    // As certbot does: complete files that take the place of the old ones.
    certificate(server.directory.path(), "b", &["localhost"]);
    for kind in ["pem", "key"] {
        fs::rename(server.path(&format!("b.{kind}")), server.path(&format!("a.{kind}")))
            .expect("renames");
    }
    server.running.wait_for_stderr("loaded a.pem");
    server.get("--cacert a.pem").run().exits(0);
    server.stop();
}

#[test]
fn what_cannot_be_used_leaves_the_old_certificate() {
    let server = Server::start("--cert a.pem --key a.key", |directory| {
        certificate(directory, "a", &["localhost"]);
    });
    fs::copy(server.path("a.pem"), server.path("old.pem")).expect("copies");
    // A key of another certificate, no PEM, no file.
    certificate(server.directory.path(), "b", &["localhost"]);
    for (broken, expected) in [
        (Some("b.key"), "cannot use a.pem with the key a.key"),
        (Some("b.pem"), "cannot use a.key"),
        (None, "cannot read a.key"),
    ] {
        match broken {
            Some(file) => drop(fs::copy(server.path(file), server.path("a.key")).expect("copies")),
            None => fs::remove_file(server.path("a.key")).expect("removes"),
        }
        server.running.signal("HUP");
        server.running.wait_for_stderr(expected);
        server.running.wait_for_stderr(STAYS);
        server.get("--cacert old.pem").run().exits(0);
    }
    server.stop();
}

#[test]
fn a_certificate_is_chosen_by_name() {
    let flags = "--cert a.pem --key a.key --cert b.pem --key b.key";
    let server = Server::start(flags, |directory| {
        certificate(directory, "a", &["localhost", "a.test"]);
        certificate(directory, "b", &["*.b.test"]);
    });
    for (name, root, code) in [
        ("localhost", "a.pem", 0),
        ("a.test", "a.pem", 0),
        ("www.b.test", "b.pem", 0),
        ("www.b.test", "a.pem", 60),
        ("other.test", "a.pem", 60),
    ] {
        let port = server.port;
        let line = format!(
            "get --cacert {root} https://{name}:{port}/bytes/5 --resolve {name}:{port}:127.0.0.1"
        );
        for version in ["--http1.1", "--http3-only"] {
            let line = format!("{line} {version}");
            Eyas::new(&line).within(server.directory.path()).run().exits(code);
        }
    }
    server.stop();
    let refused = Eyas::new("serve --no-files --cert a --cert b --key a").run().exits(2);
    assert!(refused.err.contains("2 --cert and 1 --key"), "{}", refused.err);
}

#[test]
fn clients_need_a_certificate_of_the_named_authorities() {
    let server = Server::start("--cert a.pem --key a.key --client-ca clients.pem", |directory| {
        certificate(directory, "a", &["localhost"]);
        certificate(directory, "one", &["one.test"]);
        certificate(directory, "two", &["two.test"]);
        fs::copy(directory.join("one.pem"), directory.join("clients.pem")).expect("copies");
    });
    let get = |version: &str, name: &str| {
        let own = format!("--cert {name}.pem --key {name}.key");
        server.get(&format!("{version} --cacert a.pem {own}")).run()
    };
    for version in ["--http1.1", "--http2", "--http3-only"] {
        get(version, "one").exits(0);
        assert_ne!(get(version, "two").code, Some(0), "{version}");
        assert_ne!(server.get(&format!("{version} --cacert a.pem")).run().code, Some(0));
    }
    fs::copy(server.path("two.pem"), server.path("clients.pem")).expect("copies");
    server.running.signal("HUP");
    server.running.wait_for_stderr("loaded clients.pem");
    for version in ["--http1.1", "--http3-only"] {
        get(version, "two").exits(0);
        assert_ne!(get(version, "one").code, Some(0), "{version}");
    }
    fs::write(server.path("clients.pem"), "nothing").expect("writes");
    server.running.signal("HUP");
    server.running.wait_for_stderr(STAYS);
    get("--http2", "two").exits(0);
    server.stop();
}

/// A gateway to an upstream whose certificate is replaced by one of another issuer.
#[test]
fn a_gateway_loads_the_issuers_of_its_upstream_again() {
    let upstream = Server::start("--cert a.pem --key a.key", |directory| {
        certificate(directory, "a", &["localhost"]);
        certificate(directory, "b", &["localhost"]);
    });
    let (port, trusted) = (upstream.port, upstream.path("trusted.pem"));
    fs::copy(upstream.path("b.pem"), &trusted).expect("copies");
    let flags = format!(
        "--plain --upstream https://localhost:{port} --upstream-cacert {}",
        trusted.display()
    );
    let gateway = Server::start(&flags, |_| {});
    assert!(gateway.ask(GET).starts_with("HTTP/1.1 502 "), "it trusts another one");
    fs::copy(upstream.path("a.pem"), &trusted).expect("copies");
    gateway.running.signal("HUP");
    gateway.running.wait_for_stderr("loaded ");
    assert!(gateway.ask(GET).starts_with("HTTP/1.1 200 "));
    fs::write(&trusted, "nothing").expect("writes");
    gateway.running.signal("HUP");
    gateway.running.wait_for_stderr(STAYS);
    assert!(gateway.ask(GET).starts_with("HTTP/1.1 200 "));
    gateway.stop();
    upstream.stop();
}

/// A proxy's answer to a user, as far as it matters: whether it knows them.
fn knows(port: u16, user_and_password: &str) -> bool {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    let credentials = BASE64_STANDARD.encode(user_and_password);
    let request = format!(
        "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Basic {credentials}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("sends");
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).expect("an answer");
    &begin != b"HTTP/1.1 407"
}

#[test]
fn a_proxy_loads_its_users_again() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().expect("a directory");
    let users = directory.path().join("users");
    fs::write(&users, "ada:one\n").expect("writes");
    fs::set_permissions(&users, fs::Permissions::from_mode(0o600)).expect("own file");
    let port = own_port();
    let line = format!("proxy -l 127.0.0.1:{port} --users users");
    let running = Eyas::new(&line).within(directory.path()).start();
    running.wait_for_stdout("proxy on");
    assert!(knows(port, "ada:one") && !knows(port, "bob:two"));
    fs::write(&users, "bob:two\n").expect("writes");
    running.signal("HUP");
    running.wait_for_stderr("loaded users");
    assert!(!knows(port, "ada:one") && knows(port, "bob:two"));
    fs::write(&users, "nobody\n").expect("writes");
    running.signal("HUP");
    running.wait_for_stderr(STAYS);
    assert!(knows(port, "bob:two"));
    running.signal("TERM");
    running.end().exits(0);
}

/// The proxy's clients are other proxies of the same program, which choose the transport.
#[test]
fn a_proxy_asks_its_clients_for_certificates_of_the_named_authorities() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    certificate(path, "a", &["localhost"]);
    let identities = ["one", "two"].map(|name| certificate(path, name, &[&format!("{name}.test")]));
    fs::copy(path.join("one.pem"), path.join("clients.pem")).expect("copies");
    let port = own_port();
    let line = format!(
        "proxy -l 127.0.0.1:{port} --tls-cert a.pem --tls-key a.key --client-ca clients.pem --explain"
    );
    let running = Eyas::new(&line).within(path).start();
    running.wait_for_stdout("proxy on");
    let trusted = fs::read(path.join("a.pem")).expect("written");
    let trusted = eyas::certificates_from_pem(&trusted).expect("PEM");
    let connects = |identity: Option<&ServerIdentity>, versions: Versions| {
        let mut security = SecurityParameters::platform().with_roots(trusted.clone());
        if let Some(own) = identity {
            security = security.with_client_certificate(own.chain().to_vec(), own.private_key());
        }
        tunnel_opens(port, security, versions)
    };
    let all = [Versions::HTTP_1, Versions::HTTP_2, Versions::HTTP_3];
    for versions in all {
        assert!(connects(Some(&identities[0]), versions), "{versions:?}");
        assert!(!connects(Some(&identities[1]), versions), "{versions:?}");
        assert!(!connects(None, versions), "{versions:?}");
    }
    fs::copy(path.join("two.pem"), path.join("clients.pem")).expect("copies");
    running.signal("HUP");
    running.wait_for_stderr("loaded clients.pem");
    for versions in all {
        assert!(connects(Some(&identities[1]), versions), "{versions:?}");
        assert!(!connects(Some(&identities[0]), versions), "{versions:?}");
    }
    fs::write(path.join("clients.pem"), "nothing").expect("writes");
    running.signal("HUP");
    running.wait_for_stderr(STAYS);
    assert!(connects(Some(&identities[1]), Versions::HTTP_2));
    let mut plain = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    plain.write_all(b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("sends");
    let mut answer = String::new();
    plain.read_to_string(&mut answer).expect("an answer");
    let is_told = answer.contains("This port speaks TLS: use https:// instead of http://");
    assert!(answer.starts_with("HTTP/1.1 400 ") && is_told, "{answer}");
    running.signal("TERM");
    running.end().exits(0);
    // Without TLS nobody could show one.
    Eyas::new("proxy --client-ca clients.pem").within(path).run().exits(2);
}

/// Returns whether the proxy at this port lets a client with these credentials connect, over one version of HTTP. The
/// destination is the proxy itself, which waits for a handshake.
fn tunnel_opens(port: u16, security: SecurityParameters, versions: Versions) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let endpoint = eyas::Endpoint::builder().security(security).build().expect("an endpoint");
        let client = eyas_http::Client::builder()
            .endpoint(endpoint)
            .versions(versions)
            .proxy(eyas_http::Proxy::none())
            .tunnels(true)
            .build()
            .expect("a client");
        let request = http::Request::connect(format!("127.0.0.1:{port}")).body(()).expect("valid");
        let limit = std::time::Duration::from_secs(60);
        let proxy = format!("https://localhost:{port}/");
        let connected = client.connect(&proxy, request, limit).await;
        matches!(connected, Ok(eyas_http::Connected::Tunnel(_)))
    })
}

/// Without a terminal SIGHUP is a request to load files; with one, it ends when that is closed.
#[test]
fn a_server_ends_with_its_terminal() {
    use std::process::{Command, Stdio};
    let port = own_port();
    let directory = tempfile::tempdir().expect("a directory");
    let eyas = Eyas::new(&format!("serve --plain --no-files --no-sctp -l 127.0.0.1:{port}"));
    let of_server = eyas.command();
    let words = [of_server.get_program()].into_iter().chain(of_server.get_args());
    let line: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    // Whoever runs the tests under nohup has the signal ignored, and a server then outlives its terminal.
    let line = format!("echo $$ > pid; exec env --default-signal=HUP {}", line.join(" "));
    let mut terminal = Command::new("script");
    terminal.args(["-q", "-c", &line, "/dev/null"]).current_dir(directory.path());
    let terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let Ok(mut terminal) = terminal else {
        return eprintln!("SKIPPED: script, which makes a terminal, is not installed");
    };
    let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    let until = |expected: bool| {
        let started = std::time::Instant::now();
        while listens() != expected {
            assert!(started.elapsed().as_secs() < 120, "it never {expected}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    until(true);
    let pid = fs::read_to_string(directory.path().join("pid")).expect("written before");
    let hang_up = Command::new("kill").args(["-HUP", pid.trim()]).status().expect("kill is there");
    assert!(hang_up.success() && listens(), "the terminal is still there");
    terminal.kill().expect("a child");
    terminal.wait().expect("a child");
    until(false);
}
