//! Tests that every fault has its exit code, names the cause, and leaves no partial result.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::ports::own_port;
use crate::stage::{Breaking, DnsStub, Eyas, Faulty, Peer, TcpEnd, validate};
use eyas_testserver::{ServerPersonality, TransportSide};
use serde_json::Value;

/// Runs a command line with `--json` that fails with this code, and returns its object.
fn fails(eyas: Eyas, code: i32) -> Value {
    let object = eyas.arg("--json").run().exits(code).json();
    validate("error", &object);
    assert_eq!(object["error"]["exit_code"], code);
    let message = object["error"]["message"].as_str().expect("a message");
    assert!(!message.is_empty());
    object
}

fn message(object: &Value) -> &str {
    object["error"]["message"].as_str().expect("a message")
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).expect("a directory").next().is_none()
}

#[test]
fn an_invalid_command_line_is_refused() {
    for line in ["get", "get --no-such-flag x", "race --plain --alpn x y", "nonsense"] {
        let object = fails(Eyas::new(line), 2);
        assert_eq!(object["error"]["kind"], "usage", "{line}");
    }
}

#[test]
fn the_environment_does_not_appear_in_usage_errors() {
    let text = Eyas::new("get").run().exits(2).err;
    assert!(text.contains("Usage: eyas get <URL>"), "{text}");
}

#[test]
fn a_misspelling_gets_a_suggestion() {
    for (line, expected) in
        [("gte https://a/", "get"), ("racee a", "race"), ("get --jsno a", "--json")]
    {
        let text = Eyas::new(line).run().exits(2).err;
        assert!(text.contains(&format!("'{expected}'")), "{line}: {text}");
        let object = fails(Eyas::new(line), 2);
        let hint = object["error"]["hint"].as_str().expect("a hint");
        assert!(hint.starts_with("did you mean") && hint.contains(expected), "{line}: {hint}");
    }
}

#[test]
fn a_malformed_url_is_refused() {
    for url in ["https://", "https://exa mple/", "ftp://a/", "https://[::1", "http://a:99999/"] {
        let object = fails(Eyas::new("get").arg(url), 3);
        assert_eq!(object["error"]["kind"], "url", "{url}");
    }
    fails(Eyas::new("race example.org:0"), 3);
}

#[test]
fn an_unknown_host_is_named() {
    let dns = DnsStub::start(&[]);
    for command in ["get", "race", "plan"] {
        let line = format!("{command} unknown.test --dns-server {}", dns.address);
        let object = fails(Eyas::new(&line), 6);
        assert!(message(&object).contains("unknown.test"), "{object}");
    }
}

#[test]
fn a_silent_dns_server_is_a_failed_lookup_or_a_timeout() {
    let (dns, _socket) = DnsStub::silent();
    let line = format!("get https://peer.test/ --dns-server {} --connect-timeout 2s", dns.address);
    let object = Eyas::new(&line).arg("--json").run();
    assert!(matches!(object.code, Some(6 | 28)), "{object:?}");
}

#[test]
fn names_are_resolved_by_the_given_server() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let dns = DnsStub::start(&[("peer.test", Ipv4Addr::LOCALHOST)]);
    let line =
        format!("get --json --cacert ca.pem {} --dns-server {}", peer.url("/bytes/1"), dns.address);
    let object = Eyas::new(&line).within(&peer.directory()).run().exits(0).json();
    validate("get", &object);
    assert!(object["dns"].as_array().is_some_and(|dns| dns.len() == 3), "{object}");
}

#[test]
fn refused_connections_are_reported() {
    let address = format!("127.0.0.1:{}", own_port());
    for command in ["get", "race"] {
        let line = format!("{command} https://{address}/ --connect-timeout 5s");
        let object = fails(Eyas::new(&line), 7);
        assert!(message(&object).contains("refused"), "{object}");
        assert!(object["attempts"].as_array().is_some_and(|attempts| !attempts.is_empty()));
    }
}

#[test]
fn silent_servers_are_reported_as_timeouts() {
    let peer = Peer::start(ServerPersonality::AllSwallowed);
    for command in ["get", "race"] {
        let line = format!("{command} {} --connect-timeout 1s", peer.url("/"));
        let object = fails(peer.eyas(&line), 28);
        assert!(message(&object).contains("127.0.0.1"), "{object}");
    }
}

/// Servers with invalid certificates, and the messages of the command.
const BAD_CERTIFICATES: [(ServerPersonality, &str, &str); 3] = [
    (
        ServerPersonality::WrongCertificate(TransportSide::Both),
        "the certificate's issuer \"untrusted test authority\" is not trusted here \
         (subject \"eyas test server\")",
        "--cacert FILE",
    ),
    (
        ServerPersonality::ExpiredCertificate(TransportSide::Both),
        "the certificate expired on 2002-01-01, ",
        "this machine's clock",
    ),
    (
        ServerPersonality::WrongName(TransportSide::Both),
        "the certificate is for other.test, not for peer.test (",
        "use a name that it is for",
    ),
];

#[test]
fn rejected_certificates_are_explained() {
    for (personality, sentence, next) in BAD_CERTIFICATES {
        let peer = Peer::start(personality);
        for command in ["get", "race", "race --all --connect-timeout 5s"] {
            let line = format!("{command} {}", peer.url("/"));
            let object = fails(peer.eyas(&line), 60);
            assert_eq!(object["error"]["kind"], "certificate");
            let text = message(&object);
            assert_eq!(text.matches(sentence).count(), 1, "{personality:?}: {object}");
            let hint = object["error"]["hint"].as_str().expect("a hint");
            assert!(hint.contains(next) && hint.contains("-k"), "{personality:?}: {hint}");
            // No internal terms.
            for word in ["UnknownIssuer", "(UNIX)", "DnsName", "Context", "invalid peer"] {
                assert!(!object.to_string().contains(word), "{word}: {object}");
            }
        }
    }
}

/// One line and one hint, and with -v a table of the candidates.
#[test]
fn a_certificate_error_is_one_line_and_with_v_a_table() {
    for (personality, sentence, _) in BAD_CERTIFICATES {
        let peer = Peer::start(personality);
        let text = peer.eyas(&format!("get {}", peer.url("/"))).run().exits(60).err;
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.starts_with("eyas: cannot connect to ") && text.contains(sentence), "{text}");
        let more = peer.eyas(&format!("get -v {}", peer.url("/"))).run().exits(60).err;
        assert!(more.contains("why not") && more.contains("Race to"), "{more}");
        assert_eq!(more.matches(sentence).count(), 1, "{more}");
        let line = format!("race --all --connect-timeout 5s {}", peer.url("/"));
        let all = peer.eyas(&line).run().exits(60);
        assert_eq!((all.out.clone() + &all.err).matches(sentence).count(), 1, "{all:?}");
    }
}

/// If one transport works there is no failure that would report it.
#[test]
fn a_certificate_error_of_one_transport_is_below_the_table() {
    let peer = Peer::start(ServerPersonality::ExpiredCertificate(TransportSide::Quic));
    let line = format!("race --all --connect-timeout 5s {}", peer.url("/"));
    let page = peer.eyas(&line).run().exits(0).out;
    let row = |line: &&str| line.contains("quic tls") && line.ends_with("certificate expired");
    assert_eq!(page.lines().filter(row).count(), 1, "{page}");
    assert_eq!(page.matches("the certificate expired on 2002-01-01").count(), 1, "{page}");
}

#[test]
fn a_server_without_a_common_protocol_is_a_tls_failure() {
    let peer = Peer::start(ServerPersonality::NoCommonAlpn(TransportSide::Both));
    fails(peer.eyas(&format!("race {}", peer.url("/"))), 35);
}

#[test]
fn a_body_that_ends_early_leaves_no_file() {
    let cases = [
        (ServerPersonality::TruncatedBody { after: 1000 }, 18),
        (ServerPersonality::ResetInBody { after: 1000 }, 56),
    ];
    for (personality, code) in cases {
        let peer = Peer::start(personality);
        for version in ["--http1.1", "--http2", "--http3-only"] {
            let directory = tempfile::tempdir().expect("a directory");
            let line = format!("get {version} {}", peer.url("/bytes/100000"));
            let eyas = peer.eyas(&line).arg("-o").arg(directory.path().join("body"));
            let object = eyas.arg("--json").run().exits(code).json();
            validate("error", &object);
            assert!(is_empty(directory.path()), "{personality:?} {version}");
        }
    }
}

/// An end that only the length shows is 18, a connection or stream that was broken off is 56, and
/// silence is 28 once the caller's limit is reached. Over HTTP/2 and HTTP/3 streams have ends of their
/// own, so the end of the connection is a break.
#[test]
fn every_break_in_mid_response_has_its_code() {
    use Breaking::*;
    let cases = [
        (Http1(TcpEnd::Closed), 18),
        (Http1(TcpEnd::Cut), 18),
        (Http1(TcpEnd::Reset), 56),
        (Http1(TcpEnd::Silence), 28),
        (Http2(TcpEnd::Cut), 56),
        (Http2(TcpEnd::Reset), 56),
        (Http2(TcpEnd::Silence), 28),
        (Http2StreamReset(h2::Reason::INTERNAL_ERROR), 56),
        (Http2StreamReset(h2::Reason::CANCEL), 56),
        (Http2StreamReset(h2::Reason::NO_ERROR), 56),
        (Http2GoAway(h2::Reason::INTERNAL_ERROR), 56),
        (Http2GoAway(h2::Reason::NO_ERROR), 56),
        // H3_NO_ERROR, H3_INTERNAL_ERROR, H3_REQUEST_CANCELLED.
        (Http3StreamReset(0x100), 56),
        (Http3StreamReset(0x102), 56),
        (Http3StreamReset(0x10c), 56),
        (Http3Close(0x100), 56),
        (Http3Close(0x102), 56),
        (Http3Vanish, 56),
        (Http3Silence, 28),
    ];
    for (breaking, code) in cases {
        let (files, output) = (tempfile::tempdir(), tempfile::tempdir());
        let (files, output) = (files.expect("a directory"), output.expect("a directory"));
        let mut get = breaking.get(&files).arg("-o").arg(output.path().join("body"));
        if code == 28 {
            get = get.arg("--max-time").arg("2s");
        }
        println!("{breaking:?}");
        let object = get.arg("--json").run().exits(code).json();
        validate("error", &object);
        assert!(!message(&object).contains("docs.rs"), "{object}");
        assert!(is_empty(output.path()));
    }
}

#[test]
fn faults_of_plain_http_leave_no_file() {
    let cases = [(Faulty::Truncated, 18), (Faulty::Gibberish, 56), (Faulty::Reset, 56)];
    for (faulty, code) in cases {
        let directory = tempfile::tempdir().expect("a directory");
        let line = format!("get http://{}/", faulty.start());
        fails(Eyas::new(&line).arg("-o").arg(directory.path().join("body")), code);
        assert!(is_empty(directory.path()), "{code}");
    }
    for faulty in
        [Faulty::PartialContent, Faulty::Switches, Faulty::TransferCoded, Faulty::NotModified]
    {
        let directory = tempfile::tempdir().expect("a directory");
        let line = format!("get http://{}/", faulty.start());
        let object = fails(Eyas::new(&line).arg("-o").arg(directory.path().join("body")), 56);
        assert_eq!(object["error"]["kind"], "protocol");
        assert!(is_empty(directory.path()));
    }
    let object = fails(Eyas::new(&format!("get http://{}/", Faulty::Announces.start())), 56);
    assert!(message(&object).contains("16 informational"), "{object}");
    let line = format!("get http://{}/ --max-time 1s", Faulty::Silent.start());
    fails(Eyas::new(&line), 28);
    let line = format!("get -L --max-redirs 5 http://{}/", Faulty::Circular.start());
    fails(Eyas::new(&line), 47);
}

//= hostile client
//# text that controls a terminal, or reverses its order
//= bound: `printable`
#[test]
fn text_of_the_server_cannot_control_the_terminal() {
    let url = format!("http://{}/", Faulty::Deceives.start());
    let value = "\u{9b}31m \u{202e}gpj.exe\u{2066}\u{200b}";
    let hidden =
        |text: &str| text.contains(|letter: char| value.contains(letter) && !letter.is_ascii());
    let verbose = Eyas::new(&format!("get -v {url}")).run().exits(0);
    let shown = r"< x-name: \u{9b}31m \u{202e}gpj.exe\u{2066}\u{200b}";
    assert!(verbose.err.contains(shown) && !hidden(&verbose.err), "{}", verbose.err);
    let object = Eyas::new(&format!("get --json {url}")).run().exits(0);
    assert!(!hidden(&object.out), "{}", object.out);
    let headers = object.json()["headers"].clone();
    assert!(headers.as_array().expect("headers").iter().any(|header| header["value"] == value));
    // Not a terminal.
    let included = Eyas::new(&format!("get -i {url}")).run().exits(0);
    assert!(included.out.contains(value), "{}", included.out);
}

#[test]
fn an_error_status_is_a_failure_only_if_asked() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let url = peer.url("/status/404");
    peer.eyas(&format!("get {url}")).run().exits(0);
    let object = fails(peer.eyas(&format!("get --fail {url}")), 22);
    assert!(message(&object).contains("404"), "{object}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_write_error() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let line = format!("get -o /dev/full {}", peer.url("/bytes/100000"));
    let object = fails(peer.eyas(&line), 23);
    assert!(message(&object).contains("/dev/full"), "{object}");
}

#[test]
fn unreadable_files_have_their_own_exit_codes() {
    fails(Eyas::new("get --cacert /no/such/file https://a/"), 58);
    fails(Eyas::new("get -d @/no/such/file https://a/"), 26);
    fails(Eyas::new("replay /no/such/file"), 26);
    fails(Eyas::new("replay /dev/null"), 111);
    fails(Eyas::new("serve --listen 127.0.0.1:0 /no/such/directory"), 26);
    fails(Eyas::new("get -o /no/such/directory/file https://a/"), 23);
}

#[test]
fn serving_at_an_address_in_use_fails() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let line = format!("serve --listen {}", taken.local_addr().expect("an address"));
    fails(Eyas::new(&line), 45);
}
