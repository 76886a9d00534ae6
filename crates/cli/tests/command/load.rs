//! Tests of `eyas load`: its report, its files, and invalid loads.

use std::fs;

use crate::ports::own_port;
use crate::stage::{DnsStub, Eyas, Faulty, Peer, Served, validate};
use eyas_testserver::{Personality, Side};

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
        (Personality::WrongCertificate(Side::Both), 60),
        (Personality::ExpiredCertificate(Side::Both), 60),
        (Personality::WrongName(Side::Both), 60),
        (Personality::NoCommonAlpn(Side::Both), 35),
        (Personality::AllSwallowed, 28),
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
