//! Tests of error messages: short, in the user's terms, with a next step that can be typed.

use std::net::Ipv4Addr;

use crate::ports::own_port;
use crate::stage::{DnsStub, Eyas, Peer};
use eyas_testserver::Personality;

/// Runs a command line that fails with this code, and returns its standard error.
fn stderr_of(line: &str, code: i32) -> String {
    Eyas::new(line).run().exits(code).err
}

#[test]
fn an_error_shared_by_all_candidates_is_reported_once() {
    let port = own_port();
    let text = stderr_of(&format!("get https://localhost:{port}/ --connect-timeout 5s"), 7);
    assert_eq!((text.lines().count(), text.matches("refused").count()), (2, 1), "{text}");
    assert!(
        text.contains(&format!("quic 127.0.0.1:{port}")) && !text.contains("os error"),
        "{text}"
    );
}

#[test]
fn the_next_step_refers_to_the_request() {
    let at = format!("127.0.0.1:{}", own_port());
    for (line, expected) in [
        (format!("get http://{at}/"), format!("eyas race --all http://{at}/ shows")),
        (format!("get https://{at}/"), format!("eyas race --all {at} shows")),
        (format!("pipe --plain {at}"), format!("eyas race --all --plain tcp://{at} shows")),
        (format!("load -n 1 http://{at}/"), format!("eyas race --all http://{at}/ shows")),
    ] {
        let text = stderr_of(&line, 7);
        assert!(text.contains(&expected), "{line}: {text}");
    }
    let text = stderr_of(&format!("race --all --connect-timeout 2s {at}"), 7);
    assert!(!text.contains("race --all"), "already done: {text}");
    let text = stderr_of(&format!("load -n 3 -r 1000 http://{at}/"), 7);
    assert!(text.starts_with("eyas: none of 3 requests was answered: cannot connect"), "{text}");
}

#[test]
fn values_are_described_in_the_users_terms() {
    for (line, expected) in [
        ("get -m soon https://a/", "expected a time such as 2s"),
        ("get --doh-url dns https://a/", "expected a URL such as https://"),
        ("get --second-tries 9 https://a/", "9 is not in 0..=8"),
        ("get -x socks4://a:1 https://a/", "only http, https and socks5 proxies are supported"),
        ("get -x a#b:secret@c:1 https://a/", "%23"),
        ("get --http3-only http://a/", "HTTP/3 requires TLS"),
        ("serve --names a,,b", "expected a host or an address"),
    ] {
        let text = stderr_of(line, 2);
        assert!(text.contains(expected), "{line}: {text}");
    }
}

#[test]
fn files_are_named_as_the_user_entered_them() {
    let text = stderr_of("get -o /no/such/directory/file https://a/", 23);
    let expected = "eyas: cannot write /no/such/directory/file: No such file or directory (os error 2)\n      \
                  does the directory exist?\n";
    assert_eq!(text, expected);
    let text = stderr_of("serve --listen 127.0.0.1:0 --save-cert /proc/here", 23);
    assert!(
        text.starts_with("eyas: cannot write /proc/here: ") && !text.contains(".part"),
        "{text}"
    );
    let text = stderr_of("get --cacert /dev/null https://a/", 58);
    assert!(text.starts_with("eyas: cannot use /dev/null: the PEM text holds no"), "{text}");
}

#[test]
fn an_encrypted_key_asks_for_its_passphrase() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../eyas/src");
    let cert = format!("{sources}/security/verifier/version-1.pem");
    let key = format!("{sources}/private_key/encrypted.pem");
    let line = format!("get --cert {cert} --key {key}");
    let text = stderr_of(&format!("{line} https://a/"), 58);
    assert!(text.contains("is encrypted") && text.contains("--pass-file"), "{text}");
    for wrong in ["--pass wrong", "--pass-file /dev/null"] {
        let text = stderr_of(&format!("{line} {wrong} https://a/"), 58);
        assert!(text.contains("passphrase does not fit"), "{text}");
    }
}

#[test]
fn an_unreachable_proxy_is_called_a_proxy() {
    let at = format!("127.0.0.1:{}", own_port());
    let text = stderr_of(&format!("get -x http://{at} http://a.test/"), 7);
    assert!(text.contains("the proxy: cannot connect") && text.contains("-x URL"), "{text}");
}

#[test]
fn http_at_a_tls_port_suggests_https() {
    let peer = Peer::start(Personality::Healthy);
    let line = format!("get {}", peer.url("/").replace("https://", "http://"));
    let text = peer.eyas(&line).run().exits(56).err;
    assert!(text.contains("use https://"), "{text}");
}

#[test]
fn an_empty_plan_and_an_empty_memory_have_a_reason() {
    let dns = DnsStub::start(&[("other.test", Ipv4Addr::LOCALHOST)]);
    let line = format!("plan unknown.test --dns-server {}", dns.address);
    let text = Eyas::new(&line).run().exits(6).err;
    let expected = format!("no address for unknown.test:443 from queries to {}", dns.address);
    assert!(text.contains(&expected), "{text}");
    let state = tempfile::tempdir().expect("a directory");
    let page = Eyas::new("memory forget a.test").state(state.path()).run().exits(0).out;
    assert_eq!(page, "Nothing was remembered.\n");
}
