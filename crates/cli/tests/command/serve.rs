//! `eyas serve`, and `eyas get` against it.

use std::fs;

use crate::stage::{Eyas, Served};

#[test]
fn it_serves_files_and_test_bodies_in_every_version() {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("page"), "hello").expect("writes");
    let served = Served::start(Eyas::new("serve --save-cert ca.pem .").within(place.path()));
    for flags in ["--http1.1", "--http2", "--http3-only"] {
        let line = format!("get --cacert ca.pem {flags} {}", served.url("/page"));
        let got = Eyas::new(&line).within(place.path()).run().exits(0);
        assert_eq!(got.out, "hello", "{flags}");
    }
    let line = format!("get --cacert ca.pem {}", served.url("/bytes/1000"));
    assert_eq!(Eyas::new(&line).within(place.path()).run().exits(0).length, 1000);
}

/// What eyas made may be made again; anything else in its place is somebody's.
#[test]
fn a_certificate_overwrites_nothing_but_its_like() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("ca.pem");
    let line = "serve --no-files --no-sctp --save-cert ca.pem";
    drop(Served::start(Eyas::new(line).within(place.path())));
    let first = fs::read_to_string(&path).expect("it is there");
    drop(Served::start(Eyas::new(line).within(place.path())));
    let second = fs::read_to_string(&path).expect("it is there");
    assert!(first != second && second.starts_with("-----BEGIN CERTIFICATE-----"), "{second}");
    for text in ["a letter", &format!("{first}{second}"), "-----BEGIN PRIVATE KEY-----\n"] {
        fs::write(&path, text).expect("writes");
        for command in [line, "pipe --listen 0 --save-cert ca.pem"] {
            let refused = Eyas::new(command).within(place.path()).run().exits(23);
            assert!(refused.err.contains("no certificate that eyas made"), "{}", refused.err);
        }
        assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
    }
}

#[test]
fn without_tls_it_speaks_plain_http() {
    let served = Served::start(Eyas::new("serve --plain --no-files"));
    let line = format!("get --json http://{}/bytes/5", served.address);
    let object = Eyas::new(&line).run().exits(0).json();
    assert_eq!(object["version"], "HTTP/1.1");
    assert_eq!(object["winner"]["security"], "none");
    let line = format!("race --plain --json {}", served.address);
    assert_eq!(Eyas::new(&line).run().exits(0).json()["winner"]["transport"], "tcp");
}

#[test]
fn without_http3_clients_use_tcp() {
    let served = Served::start(Eyas::new("serve --no-h3 --no-files"));
    let line = format!("get -k --json {}", served.url("/bytes/5"));
    let object = Eyas::new(&line).run().exits(0).json();
    assert_eq!(object["version"], "HTTP/2");
}

#[test]
fn a_file_is_no_directory() {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("page"), "hello").expect("writes");
    let refused = Eyas::new("serve --listen 127.0.0.1:0 page").within(place.path()).run().exits(2);
    assert!(refused.err.contains("page is a file, and a directory is served"), "{}", refused.err);
    Eyas::new("serve --listen 127.0.0.1:0 nowhere").within(place.path()).run().exits(26);
}

#[cfg(unix)]
#[test]
fn it_stops_when_asked() {
    let mut served = Served::start(Eyas::new("serve --no-files"));
    assert_eq!(served.interrupt(), Some(0));
}
