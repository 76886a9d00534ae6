//! Tests of `eyas get` over each transport, and of the flags known from curl.

use std::fs;
use std::net::Ipv4Addr;

use crate::stage::{DnsStub, Eyas, Peer, validate};
use eyas_testserver::ServerPersonality;

#[test]
fn every_version_uses_its_transport() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let cases = [
        // On a busy machine, the default of 30 ms is too short.
        ("--head-start 2s", "HTTP/3", "quic"),
        ("--http3-only", "HTTP/3", "quic"),
        ("--http2", "HTTP/2", "tcp"),
        ("--http1.1", "HTTP/1.1", "tcp"),
        ("--prefer tcp --head-start 2s", "HTTP/2", "tcp"),
    ];
    for (flags, version, transport) in cases {
        let line = format!("get --json {flags} {}", peer.url("/bytes/1000"));
        let object = peer.eyas(&line).run().exits(0).json();
        validate("get", &object);
        assert_eq!(object["version"], version, "{flags}");
        assert_eq!(object["winner"]["transport"], transport, "{flags}");
        assert_eq!(object["connection"]["transport"], transport, "{flags}");
        assert_eq!((&object["status"], &object["bytes"]), (&200.into(), &1000.into()), "{flags}");
        assert_eq!(object["from_memory"], false, "{flags}");
    }
}

#[test]
fn the_body_goes_to_standard_output_and_nothing_else_does() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let finished = peer.eyas(&format!("get {}", peer.url("/bytes/5000"))).run().exits(0);
    assert_eq!(finished.length, 5000);
    assert_eq!(finished.err, "");
}

#[test]
fn a_url_alone_is_fetched() {
    let peer = Peer::start(ServerPersonality::Healthy);
    assert_eq!(peer.eyas(&peer.url("/bytes/5000")).run().exits(0).length, 5000);
    let line = format!("--json {}", peer.url("/bytes/10"));
    assert_eq!(peer.eyas(&line).run().exits(0).json()["status"], 200);
}

#[test]
fn verbose_draws_the_race_on_standard_error() {
    let peer = Peer::start(ServerPersonality::UdpSwallowed);
    let finished = peer.eyas(&format!("get -v {}", peer.url("/bytes/10"))).run().exits(0);
    assert_eq!(finished.length, 10);
    for part in ["Race to peer.test", "quic 127.0.0.1", "won after", "> GET https", "< HTTP/2 200"]
    {
        assert!(finished.err.contains(part), "{part}: {}", finished.err);
    }
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let line = format!("get --json -o page {}", peer.url("/bytes/100000"));
    let object = peer.eyas(&line).run().exits(0).json();
    assert_eq!(object["output"], "page");
    assert_eq!(fs::read(peer.directory().join("page")).expect("it is there").len(), 100_000);
    let line = format!("get -O {}", peer.url("/bytes/77"));
    peer.eyas(&line).run().exits(0);
    assert_eq!(fs::read(peer.directory().join("77")).expect("it is there").len(), 77);
}

#[test]
fn a_large_body_arrives_completely_over_each_version() {
    let peer = Peer::start(ServerPersonality::Healthy);
    for flags in ["--http3-only", "--http2", "--http1.1"] {
        let line = format!("get {flags} --json -o big {}", peer.url("/bytes/20000000"));
        let object = peer.eyas(&line).run().exits(0).json();
        assert_eq!(object["bytes"], 20_000_000, "{flags}");
        let bytes = fs::read(peer.directory().join("big")).expect("it is there");
        assert!(bytes.len() == 20_000_000, "{flags}");
    }
}

#[test]
fn data_is_posted_and_headers_are_sent() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let line = format!("get -d a=1 -d b=2 {}", peer.url("/echo"));
    assert_eq!(peer.eyas(&line).run().exits(0).out, "a=1&b=2");
    let line = format!("get -A test-agent -u ada:secret {}", peer.url("/echo"));
    let out = peer.eyas(&line).arg("-H").arg("X-Mine: yes").run().exits(0).out;
    for part in ["test-agent", "Basic YWRhOnNlY3JldA==", "x-mine", "yes"] {
        assert!(out.to_lowercase().contains(&part.to_lowercase()), "{part}: {out}");
    }
}

#[test]
fn forms_and_files_are_sent_over_each_version() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let file = peer.directory().join("notes.txt");
    fs::write(&file, "kestrel ".repeat(20_000)).expect("writes");
    for version in ["--http1.1", "--http2", "--http3-only"] {
        let url = peer.url("/echo");
        let line =
            format!("get {version} -F title=bird -F notes=@notes.txt;type=text/x-bird {url}");
        let finished = peer.eyas(&line).run().exits(0);
        for part in ["name=\"title\"\r\n\r\nbird\r\n", "filename=\"notes.txt\"", "text/x-bird"] {
            assert!(finished.out.contains(part), "{version} {part}: {}", &finished.out[..500]);
        }
        assert!(finished.length > 160_000, "{version}: {}", finished.length);
        let line = format!("get {version} -v -T notes.txt {url}");
        let finished = peer.eyas(&line).run().exits(0);
        assert_eq!(finished.length, 160_000, "{version}");
        assert!(finished.err.contains("> PUT "), "{version}: {}", finished.err);
    }
    let line = format!("get -F a=1 -d b=2 {}", peer.url("/echo"));
    assert!(peer.eyas(&line).run().exits(2).err.contains("cannot be used with"));
}

#[test]
fn head_prints_only_headers() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let finished =
        peer.eyas(&format!("get -I --head-start 2s {}", peer.url("/bytes/1000"))).run().exits(0);
    assert!(finished.out.starts_with("HTTP/3 200"), "{}", finished.out);
    assert!(finished.out.contains("content-length: 1000"), "{}", finished.out);
}

#[test]
fn redirects_are_followed_on_request() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let url = peer.url("/redirect/3");
    let not_followed = peer.eyas(&format!("get --json {url}")).run().exits(0).json();
    assert!(not_followed["status"].as_u64().is_some_and(|status| (300..400).contains(&status)));
    let followed = peer.eyas(&format!("get --json -L {url}")).run().exits(0).json();
    assert_eq!(followed["status"], 200);
    assert_ne!(followed["final_url"], url);
    let reuse = &followed["connection"]["reuse"];
    assert_eq!(reuse["verdict"], "alive", "the redirects used the connection: {reuse}");
    assert!(not_followed["connection"]["reuse"].is_null());
    let explained = peer.eyas(&format!("get --explain -L {url}")).run().exits(0).err;
    assert!(explained.contains("* reused ") && explained.contains(": alive"), "{explained}");
    peer.eyas(&format!("get -L --max-redirs 1 {url}")).run().exits(47);
}

/// /redirect/2 redirects to /redirect/1, and that to /redirect/0.
#[test]
fn each_redirect_is_shown() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let [first, second] = ["/redirect/2", "/redirect/1"].map(|path| peer.url(path));
    let hops = |text: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("* 30"));
        lines.filter_map(|line| line.split_once(' ')).map(|(_, hop)| hop.to_owned()).collect()
    };
    let finished = peer.eyas(&format!("get -v -L {first}")).run().exits(0);
    let text: Vec<String> = hops(&finished.err);
    assert_eq!(text.len(), 2, "{}", finished.err);
    assert_eq!(text[0], format!("{first} -> {second}"));
    assert!(text[1].starts_with(&format!("{second} -> ")), "{}", finished.err);
    let aborted = peer.eyas(&format!("get -v -L --max-redirs 1 {first}")).run().exits(47);
    let text: Vec<String> = hops(&aborted.err);
    assert_eq!(text, [format!("{first} -> {second}")], "{}", aborted.err);
    for flags in ["-i -L", "-I -L"] {
        let out = peer.eyas(&format!("get {flags} --http1.1 {first}")).run().exits(0).out;
        let statuses: Vec<&str> =
            out.lines().filter(|line| line.starts_with("HTTP/1.1 ")).collect();
        assert_eq!(statuses.len(), 3, "{flags}: {out}");
        assert!(
            statuses[0].starts_with("HTTP/1.1 30") && statuses[2] == "HTTP/1.1 200 OK",
            "{out}"
        );
        assert_eq!(out.to_lowercase().matches("location: ").count(), 2, "{flags}: {out}");
    }
    // Without -L, the first redirect is printed.
    let out = peer.eyas(&format!("get -i --http1.1 {first}")).run().exits(0).out;
    assert_eq!(out.matches("HTTP/1.1 30").count(), 1, "{out}");
}

#[test]
fn insecure_accepts_any_certificate() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let line = format!("get -k --json https://127.0.0.1:{}/bytes/1", peer.port());
    let object = Eyas::new(&line).run().exits(0).json();
    assert_eq!(object["status"], 200);
}

#[test]
fn connect_to_keeps_the_name() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let line = format!(
        "get --json --cacert ca.pem --connect-to peer.test:443:127.0.0.1:{} https://peer.test/",
        peer.port()
    );
    let object = Eyas::new(&line).within(&peer.directory()).run().exits(0).json();
    assert_eq!(object["status"], 200);
    assert_eq!(object["connection"]["address"], format!("127.0.0.1:{}", peer.port()));
}

#[test]
fn the_host_to_connect_to_is_asked_of_the_chosen_name_server() {
    let (peer, dns) = (
        Peer::start(ServerPersonality::Healthy),
        DnsStub::start(&[("other.test", Ipv4Addr::LOCALHOST)]),
    );
    let get = |more: &str| {
        let line = format!(
            "get --json --cacert ca.pem --connect-to peer.test:443:other.test:{} --dns-server {} {more} https://peer.test/",
            peer.port(),
            dns.address
        );
        Eyas::new(&line).within(&peer.directory()).run()
    };
    assert_eq!(get("").exits(0).json()["status"], 200);
    let message = get("--encrypted-dns require").exits(6).json()["error"]["message"].to_string();
    assert!(message.contains("--connect-to") && message.contains("encrypted DNS"), "{message}");
}

#[test]
fn a_second_process_uses_what_works_at_once() {
    let peer = Peer::start(ServerPersonality::UdpSwallowed);
    let state = tempfile::tempdir().expect("a directory");
    let get = || {
        let line = format!("get --json {}", peer.url("/bytes/1"));
        peer.eyas(&line).state(state.path()).run().exits(0)
    };
    let first = get().json();
    assert_eq!(first["winner"]["transport"], "tcp");
    assert_eq!(first["from_memory"], false);
    let quic = &first["attempts"][0];
    assert_eq!(quic["transport"], "quic", "{first}");
    let ended = quic["ended_ms"].as_f64().unwrap_or(f64::INFINITY);
    let ready = first["winner"]["ready_ms"].as_f64().expect("a time");
    assert!(ready < ended, "the result does not wait for QUIC: {first}");
    let second = get().json();
    validate("get", &second);
    assert_eq!(second["winner"]["transport"], "tcp");
    assert_eq!(second["from_memory"], true);
    assert_eq!(second["attempts"][0]["transport"], "tcp");
}

#[test]
fn a_closed_reader_is_not_reported() {
    use std::io::Read;
    use std::process::Stdio;
    let peer = Peer::start(ServerPersonality::Healthy);
    let eyas = peer.eyas(&format!("get {}", peer.url("/bytes/50000000")));
    let mut command = eyas.command();
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut some = [0; 10];
    let mut out = child.stdout.take().expect("a pipe");
    out.read_exact(&mut some).expect("reads");
    drop(out);
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(141));
    assert!(ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
}
