//! Tests of `eyas load`: its report, its files, and invalid loads.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use crate::ports::own_port;
use crate::stage::{DnsStub, Eyas, Faulty, Peer, Served, validate};
use eyas_testserver::{ServerPersonality, TransportSide};

fn plain() -> Served {
    Served::start(Eyas::new("serve --plain --no-files --no-sctp"))
}

#[test]
fn a_load_is_reported_as_an_object_and_as_a_page() {
    let served = plain();
    let url = format!("http://{}/", served.address);
    let line = format!("load --json -n 40 -r 400 --size 1KiB,35KiB -c 4 {url}");
    let object = Eyas::new(&line).run().exits(0).json();
    validate("load", &object);
    let outcome = &object["outcome"];
    assert_eq!((&outcome["intended"], &outcome["answered"]), (&40.into(), &40.into()));
    assert_eq!(outcome["winners"][0]["transport"], "tcp");
    assert_eq!(object["load"]["connections"]["kept"], 4);
    let page = Eyas::new(&format!("load -n 20 -r 400 {url}")).run().exits(0).out;
    for word in
        ["Poisson arrivals, 400/s, one connection per request", "median", "whole response", "tcp"]
    {
        assert!(page.contains(word), "{word}: {page}");
    }
}

/// Answers one request on a free port, and returns the port and what was received.
fn one_request(length: usize) -> (u16, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut received = Vec::new();
        let is_whole = |received: &[u8]| {
            let head = received.windows(4).position(|window| window == b"\r\n\r\n");
            head.is_some_and(|head| received.len() >= head + 4 + length)
        };
        while !is_whole(&received) {
            let mut piece = [0; 4096];
            match stream.read(&mut piece).expect("reads") {
                0 => break,
                read => received.extend_from_slice(&piece[..read]),
            }
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("writes");
        String::from_utf8_lossy(&received).into_owned()
    });
    (port, thread)
}

#[test]
fn requests_have_a_method_a_body_and_a_user() {
    let (port, received) = one_request(5);
    let line = format!("load -n 1 -X PUT --data hello -u ada:secret http://127.0.0.1:{port}/x");
    let page = Eyas::new(&line).run().exits(0).out;
    let request = received.join().expect("it was received").to_ascii_lowercase();
    assert!(request.starts_with("put /x http/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: basic ywrhonnly3jlda=="), "{request}");
    assert!(request.ends_with("\r\n\r\nhello"), "{request}");
    assert!(!page.contains("secret"), "{page}");

    let (port, received) = one_request(0);
    let line = format!("load --json -n 1 -X HEAD http://ada:secret@127.0.0.1:{port}/");
    let object = Eyas::new(&line).run().exits(0).json();
    validate("load", &object);
    assert_eq!(object["load"]["method"], "HEAD");
    let request = received.join().expect("it was received");
    assert!(request.contains("Basic YWRhOnNlY3JldA==") && !object.to_string().contains("secret"));
}

#[test]
fn clients_wait_for_their_responses_in_a_closed_loop() {
    let served = plain();
    let line = format!("load --json --clients 3 -c 3 --threads 2 -n 30 http://{}/", served.address);
    let object = Eyas::new(&line).run().exits(0).json();
    validate("load", &object);
    assert_eq!(
        (&object["load"]["clients"], object["load"]["arrivals"].is_null()),
        (&3.into(), true)
    );
    let outcome = &object["outcome"];
    assert_eq!((&outcome["answered"], &outcome["dropped"]), (&30.into(), &0.into()));
    assert!(outcome["most_in_flight"].as_u64() <= Some(3), "{outcome:#}");
    assert_eq!(outcome["fell_behind"], false);
    let page =
        Eyas::new(&format!("load --clients 2 -n 4 http://{}/", served.address)).run().exits(0).out;
    assert!(page.contains("2 clients that wait for their responses"), "{page}");
}

/// A request may take a minute here; the load ends after its second all the same.
#[test]
fn the_duration_bounds_requests_that_are_stuck() {
    let silent = Faulty::Silent.start();
    // At this rate a second without an arrival is no matter of chance.
    for how in ["-r 30", "--clients 2"] {
        let line = format!("load --json -d 1s {how} --max-time 60s http://{silent}/");
        let failed = Eyas::new(&line).run().exits(28).json();
        validate("error", &failed);
        let message = failed["error"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("the load ended before any of"), "{how}: {message}");
        assert!(failed["outcome"]["unfinished"].as_u64() > Some(0), "{failed:#}");
    }
}

#[test]
fn a_seed_is_one_by_chance_and_told() {
    let served = plain();
    let line = format!("load --json -n 1 http://{}/", served.address);
    let seed = || Eyas::new(&line).run().exits(0).json()["load"]["seed"].as_u64();
    let seeds = [seed(), seed(), seed()];
    assert!(seeds.iter().any(|seed| *seed != seeds[0]), "{seeds:?}");
    let page =
        Eyas::new(&format!("load -n 1 --seed 77 http://{}/", served.address)).run().exits(0).out;
    assert!(page.contains("seed 77"), "{page}");
}

#[test]
fn a_rate_that_this_machine_cannot_generate_is_reported() {
    let served = plain();
    let line = format!("load -d 1s -r 1000000000 --max-in-flight 1 http://{}/", served.address);
    let page = Eyas::new(&line).run().exits(0).out;
    assert!(page.contains("This machine cannot generate that rate"), "{page}");
}

#[test]
fn the_series_of_a_load_is_written_when_it_is_complete() {
    let served = plain();
    let directory = tempfile::tempdir().expect("a directory");
    let line =
        format!("load -n 20 -r 200 --csv a.csv --histogram a.hlog http://{}/", served.address);
    Eyas::new(&line).within(directory.path()).run().exits(0);
    let csv = fs::read_to_string(directory.path().join("a.csv")).expect("a file");
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("names");
    let at = names.iter().position(|name| *name == "answered").expect("a column");
    let answered: u64 = lines.map(|line| line[at].parse::<u64>().expect("a number")).sum();
    assert_eq!(answered, 20);
    let log = fs::read_to_string(directory.path().join("a.hlog")).expect("a file");
    assert!(log.contains("Tag=total,0.000,") && log.contains("format version 1.3"), "{log}");
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 2);
}

#[cfg(unix)]
#[test]
fn an_interrupt_prints_the_results_so_far() {
    let served = plain();
    let directory = tempfile::tempdir().expect("a directory");
    let line = format!("load --json -d 1h -r 50 --csv a.csv http://{}/", served.address);
    let running = Eyas::new(&line).within(directory.path()).start();
    // The file is created once Ctrl-C is handled.
    while fs::read_dir(directory.path()).expect("a directory").next().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.signal("INT");
    let object = running.end().exits(0).json();
    validate("load", &object);
    assert_eq!(object["outcome"]["interrupted"], true);
    assert!(directory.path().join("a.csv").exists());
}

#[test]
fn without_any_answer_it_fails_with_a_reason() {
    let port = own_port();
    let line = format!("load --json -n 3 -r 100 http://127.0.0.1:{port}/");
    let failed = Eyas::new(&line).run().exits(7).json();
    let message = failed["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("none of 3 requests was answered"), "{failed:#}");
    assert_eq!(failed["outcome"]["failed"], 3);
}

/// The codes of `eyas get`, for the same reasons.
#[test]
fn without_any_answer_the_exit_code_is_specific() {
    let of = |eyas: Eyas, code: i32| {
        let object = eyas.run().exits(code).json();
        validate("error", &object);
        object["error"]["message"].as_str().expect("a message").to_owned()
    };
    let load = "load --json -n 2 -r 100";
    for (personality, code) in [
        (ServerPersonality::WrongCertificate(TransportSide::Both), 60),
        (ServerPersonality::ExpiredCertificate(TransportSide::Both), 60),
        (ServerPersonality::WrongName(TransportSide::Both), 60),
        (ServerPersonality::NoCommonAlpn(TransportSide::Both), 35),
        (ServerPersonality::AllSwallowed, 28),
    ] {
        let peer = Peer::start(personality);
        let line = format!("{load} --connect-timeout 2s {}", peer.url("/"));
        let text = of(peer.eyas(&line), code);
        assert!(code != 60 || text.matches("the certificate").count() == 1, "{text}");
    }
    for (faulty, code) in [(Faulty::Truncated, 18), (Faulty::Gibberish, 56), (Faulty::Silent, 28)] {
        of(Eyas::new(&format!("{load} --max-time 1s http://{}/", faulty.start())), code);
    }
    let dns = DnsStub::start(&[]);
    of(Eyas::new(&format!("{load} http://unknown.test/ --dns-server {}", dns.address)), 6);
    of(Eyas::new(&format!("{load} --cacert /no/such/file https://a/")), 58);
}

/// As after Ctrl-C, the results are reported, and the run succeeds.
#[cfg(unix)]
#[test]
fn sigterm_prints_the_results_so_far() {
    let served = plain();
    let directory = tempfile::tempdir().expect("a directory");
    let line = format!("load --json -d 1h -r 50 --csv a.csv http://{}/", served.address);
    let running = Eyas::new(&line).within(directory.path()).start();
    running.until("listens", || fs::read_dir(directory.path()).expect("reads").next().is_some());
    running.signal("TERM");
    assert_eq!(running.end().exits(0).json()["outcome"]["interrupted"], true);
}

#[test]
fn an_impossible_load_is_refused_with_a_suggestion() {
    for (line, word) in [
        ("load -r 0 http://127.0.0.1/", "100"),
        ("load --hit-rate 120% http://127.0.0.1/", "80%"),
        ("load --source 127.0.0.5-127.0.0.1 http://127.0.0.1/", "127.0.0.50"),
        ("load --warm-up 20s http://127.0.0.1/", "warm-up"),
        ("load --transport tcp,tcp http://127.0.0.1/", "twice"),
        ("load --size 1parsec http://127.0.0.1/", "35KiB"),
    ] {
        let stderr = Eyas::new(line).run().exits(2).err;
        assert!(stderr.contains(word), "{line}: {stderr}");
    }
    let stderr = Eyas::new("load ftp://127.0.0.1/").run().exits(3).err;
    assert!(stderr.contains("ftp"), "{stderr}");
}

#[test]
fn a_server_serves_its_metrics_at_the_given_address() {
    let served = Served::start(Eyas::new("serve --plain --no-files --no-sctp --metrics 0"));
    let load = format!("load -n 5 -r 100 http://{}/bytes/10", served.address);
    Eyas::new(&load).run().exits(0);
    let metrics = served.object["metrics"].as_str().expect("a URL").to_owned();
    let page = Eyas::new(&format!("get {metrics}")).run().exits(0).out;
    assert!(page.contains("eyas_requests_total{version=\"1.1\"} 5\n"), "{page}");
    assert!(page.contains("process_resident_memory_bytes "), "{page}");
    // And nowhere else.
    let line = format!("get -f http://{}/metrics", served.address);
    Eyas::new(&line).run().exits(22);
}
