//! Tests of error messages: short, in the user's terms, with a next step that can be typed.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};

use serde_json::Value;

use crate::ports::own_port;
use crate::stage::{DnsStub, Eyas, validate};

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

/// Words that only mean something to those who write Rust.
const RUST: [&str; 12] = [
    "Some(",
    "None",
    "Os {",
    "0ns",
    "OtherError",
    "BadEncoding",
    "unknown variant",
    "unknown field",
    "struct ",
    "docs.rs",
    "usize",
    "General(",
];

#[test]
fn nothing_is_named_as_in_rust() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("writes");
    };
    write("cut.pem", "-----BEGIN CERTIFICATE-----\naGVsbG8=\n");
    write("bad.pem", "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n");
    write("key.pem", "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n");
    write("kind.toml", "kind = 'else'\n");
    write("field.toml", "speed = 1\n[sweep]\n");
    write("type.toml", "sweep = 3\n");
    write("old.jsonl", "{\"version\":1}\n");
    write("text.jsonl", "hello\n");
    write("head.jsonl", "{\"version\":2,\"setup\":3}\n");
    for (line, code, expected) in [
        ("get --cacert cut.pem https://a/", 58, "its line -----END is missing"),
        ("get --cacert bad.pem https://a/", 58, "certificate 1 of 1 is damaged"),
        ("get --cert bad.pem --key key.pem https://a/", 58, "is damaged"),
        ("serve --cert bad.pem --key key.pem --listen 0", 58, "is damaged"),
        ("get --connect-timeout 3000d https://a/", 2, "--connect-timeout must be at most"),
        ("race --attempt-delay 0 a", 2, "--attempt-delay must be at least 10 ms"),
        ("race --head-start 1h a", 2, "--head-start must be at most"),
        ("load -d 0 http://a/", 2, "the load lasts no time"),
        ("lab run kind.toml", 2, "unknown value `else`"),
        ("lab run field.toml", 2, "unknown key `speed`"),
        ("lab run type.toml", 2, "expected a table"),
        ("lab run cmt-delay --set application.message=x", 2, "expected a whole number"),
        ("lab run cmt-delay --set path.B=3", 2, "expected a table"),
        ("replay old.jsonl", 111, "its format is version 1, and this eyas reads version 2"),
        ("replay text.jsonl", 111, "line 1: no JSON at column 1"),
        ("replay head.jsonl", 111, "line 1: it has no head that this eyas knows"),
        ("get --connect-to a:443:no.invalid:1 https://a/", 6, "DNS has no address for no.invalid"),
    ] {
        let text = Eyas::new(line).within(directory.path()).run().exits(code).err;
        assert!(text.contains(expected), "{line}: {text}");
        let rust = RUST.iter().find(|word| text.contains(**word));
        assert_eq!(rust, None, "{line}: {text}");
    }
}

#[test]
fn an_international_name_is_in_a_certificate() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = "serve --no-files --names bücher.example --save-cert a.pem";
    let served = crate::stage::Served::start(Eyas::new(line).within(directory.path()));
    assert!(directory.path().join("a.pem").exists());
    drop(served);
}

#[test]
fn a_long_url_is_not_repeated_whole() {
    let long = "x".repeat(65_536);
    for command in ["get", "race", "plan", "pipe", "load", "tunnel"] {
        for url in [format!("https://{long}/"), format!("ftp://a/{long}"), format!("a:{long}")] {
            let run = Eyas::new(command).arg(&url).run();
            assert!(run.err.len() < 2_000, "{command}: {} bytes", run.err.len());
        }
    }
    let url = format!("https://127.0.0.1:{}/{long}", own_port());
    let text = Eyas::new("get --json").arg(&url).run().exits(3).json()["error"].to_string();
    assert!(text.len() < 2_000, "{} bytes", text.len());
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
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.read(&mut [0; 1024]);
            // The alert unexpected_message (RFC 8446 §6.2), as most servers say.
            let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 10]);
        }
    });
    let text = Eyas::new(&format!("get http://{address}/")).run().exits(56).err;
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

#[test]
fn a_server_without_encryption_is_asked_nothing_if_that_is_required() {
    let dns = DnsStub::start(&[("known.example.net", Ipv4Addr::LOCALHOST)]);
    let line = |command: &str, policy| {
        format!("{command} known.example.net --dns-server {} --encrypted-dns {policy}", dns.address)
    };
    let why = "it designates no encrypted resolver";
    let text = Eyas::new(&line("get --connect-timeout 20s", "require")).run().exits(6).err;
    assert!(text.contains("encrypted DNS is required") && text.contains(why), "{text}");
    let text = Eyas::new(&line("plan", "require")).run().exits(6).err;
    assert!(text.contains(why), "{text}");
    let object = Eyas::new(&line("plan --json", "auto")).run().exits(0).json();
    validate("plan", &object);
    let encryption = &object["names"]["encryption"][0];
    assert_eq!((&encryption["state"], &encryption["verified"]), (&"absent".into(), &Value::Null));
    let text = Eyas::new(&line("plan", "sometimes")).run().exits(2).err;
    assert!(text.contains("expected system, auto, require or off"), "{text}");
}

#[test]
fn the_version_says_what_it_was_built_from_if_that_is_requested() {
    let version = format!("eyas {}\n", env!("CARGO_PKG_VERSION"));
    for line in ["--version", "-V"] {
        assert_eq!(Eyas::new(line).run().exits(0).out, version, "{line}");
    }
    let object = Eyas::new("--version --json").run().exits(0).json();
    validate("version", &object);
    for line in ["--version --verbose", "--version -v", "-Vv"] {
        let text = Eyas::new(line).run().exits(0).out;
        assert!(text.starts_with(&version), "{line}: {text}");
        for name in ["commit", "target"] {
            let value = object[name].as_str().expect("a text");
            assert!(text.contains(&format!("\n{name}: {value}\n")), "{line}: {text}");
        }
    }
}
