//! `eyas serve`, and `eyas get` against it.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};

use crate::ports::own_port;
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
fn each_request_is_a_line_of_the_log() {
    for format in ["common", "json"] {
        let place = tempfile::tempdir().expect("a directory");
        let line = format!("serve --no-files --log access.log --log-format {format}");
        let mut served = Served::start(Eyas::new(&line).within(place.path()));
        for (flags, path) in [
            ("--http1.1", "/bytes/1000"),
            ("--http2", "/nowhere?a=b"),
            ("--http3-only", "/bytes/5"),
        ] {
            Eyas::new(&format!("get -k {flags} {}", served.url(path))).run().exits(0);
        }
        // Not only at the end: somebody may follow it.
        let read = || fs::read_to_string(place.path().join("access.log")).expect("a log");
        let began = std::time::Instant::now();
        while read().lines().count() < 3 {
            assert!(began.elapsed().as_secs() < 60, "{}", read());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(served.interrupt(), Some(0));
        let text = read();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        if format == "common" {
            let ends = [
                "\"GET /bytes/1000 HTTP/1.1\" 200 1000",
                "\"GET /nowhere?a=b HTTP/2.0\" 404 ",
                "\"GET /bytes/5 HTTP/3.0\" 200 5",
            ];
            for (line, end) in lines.iter().zip(ends) {
                assert!(line.starts_with("127.0.0.1 - - [") && line.contains(end), "{line}");
            }
        } else {
            let objects = lines.iter().map(|line| serde_json::from_str(line).expect("an object"));
            let objects: Vec<serde_json::Value> = objects.collect();
            let transports: Vec<_> = objects.iter().map(|object| &object["transport"]).collect();
            assert!(["tcp", "mptcp"].contains(&transports[0].as_str().expect("a name")));
            assert_eq!(transports[2], "quic");
            assert_eq!((&objects[0]["status"], &objects[0]["bytes"]), (&200.into(), &1000.into()));
            assert_eq!(objects[1]["target"], "/nowhere?a=b");
        }
    }
}

#[test]
fn a_log_that_cannot_be_written_is_told_at_once() {
    let refused = Eyas::new("serve --no-files --listen 127.0.0.1:0 --log /no/such/place").run();
    assert!(refused.exits(23).err.contains("cannot write /no/such/place"));
    Eyas::new("serve --no-files --log-format json").run().exits(2);
}

#[cfg(unix)]
#[test]
fn it_stops_when_asked() {
    let mut served = Served::start(Eyas::new("serve --no-files"));
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn descriptors_that_run_out_are_told_of_and_waited_for() {
    let port = own_port();
    let line = format!("serve --plain --no-sctp --no-files --listen 127.0.0.1:{port}");
    let served = Eyas::new(&line).descriptors(32).start();
    let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    served.until("listens", || connect().is_ok());
    let greedy: Vec<_> = (0..60).map(|_| connect().expect("it listens")).collect();
    served.hears("no descriptors are left");
    drop(greedy);
    let got = Eyas::new(&format!("get http://127.0.0.1:{port}/bytes/5")).run().exits(0);
    assert_eq!(got.length, 5);
    served.signal("TERM");
    served.end().exits(0);
}
