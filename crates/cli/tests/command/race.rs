//! Tests of `eyas race`, `plan` and `replay`.

use eyas_testserver::{ServerPersonality, TransportSide};

use crate::stage::{Eyas, Peer, validate};

#[test]
fn a_race_has_a_winner_and_a_verdict() {
    let peer = Peer::start(ServerPersonality::Healthy);
    // On a busy machine, the default of 30 ms is too short.
    let line = format!("race --head-start 2s {}", peer.url("/"));
    let object = peer.eyas(&line).arg("--json").run().exits(0).json();
    validate("race", &object);
    assert_eq!(object["winner"]["transport"], "quic");
    assert_eq!(object["winner"]["security"], "tls");
    assert_eq!(object["winner"]["address"], format!("127.0.0.1:{}", peer.port()));
    assert_eq!(object["attempts"][0]["outcome"], "won");
    let drawn = peer.eyas(&line).run().exits(0).out;
    assert!(drawn.contains("won after") && drawn.contains("HTTP/3 works"), "{drawn}");
    let host_and_port = format!("race --head-start 2s --json peer.test:{}", peer.port());
    assert_eq!(peer.eyas(&host_and_port).run().exits(0).json()["winner"]["transport"], "quic");
}

#[test]
fn a_race_tells_how_the_key_was_exchanged_and_what_became_of_ech() {
    let peer = Peer::start(ServerPersonality::Healthy);
    for transport in ["tcp", "quic"] {
        let target = format!("--alpn h2,h3 {transport}://peer.test:{}", peer.port());
        let object = peer.eyas(&format!("race --json {target}")).run().exits(0).json();
        validate("race", &object);
        let connection = &object["connection"];
        assert_eq!(connection["key_exchange"], "X25519MLKEM768", "{object:#}");
        // Over streams the extension that looks like ECH needs a ClientHello of TLS 1.3 alone.
        let ech = if transport == "quic" { "grease".into() } else { serde_json::Value::Null };
        assert_eq!(connection["ech"], ech, "{object:#}");
        for flag in ["", "--explain"] {
            let page = peer.eyas(&format!("race {flag} {target}")).run().exits(0).out;
            assert!(page.contains("X25519MLKEM768"), "{page}");
        }
    }
    let page = peer.eyas(&format!("get --explain -o /dev/null {}", peer.url("/"))).run().exits(0);
    assert!(page.err.contains("X25519MLKEM768"), "{}", page.err);
}

#[test]
fn a_series_counts_losses_and_times_for_each_transport() {
    let peer = Peer::start(ServerPersonality::UdpSwallowed);
    let line = format!("race --count 3 --interval 1ms --connect-timeout 500ms {}", peer.url("/"));
    let object = peer.eyas(&line).arg("--json").run().exits(0).json();
    validate("race-series", &object);
    assert_eq!((&object["races"], &object["connected"]), (&3.into(), &3.into()));
    let rows = object["rows"].as_array().expect("rows");
    let row = |name: &str| {
        let found = rows.iter().find(|row| row["transport"] == name && row["security"] == "tls");
        found.unwrap_or_else(|| panic!("{name}: {object:#}")).clone()
    };
    let (tcp, quic) = (row("tcp"), row("quic"));
    assert_eq!((&tcp["ready"], &tcp["lost"]), (&3.into(), &0.into()));
    assert!(tcp["times_ms"]["p50"].as_f64() > Some(0.0), "{tcp}");
    assert_eq!((&quic["tried"], &quic["lost"]), (&3.into(), &3.into()));
    assert!(quic["times_ms"].is_null() && quic["failures"] != serde_json::json!({}), "{quic}");
    let page = peer.eyas(&line).run().exits(0).out;
    for word in ["3 races to ", "median", "tcp tls IPv4", "3 (100 %)"] {
        assert!(page.contains(word), "{word}: {page}");
    }
    // How long the server was silent before the race ended decides what a failure is called.
    let causes = page.lines().find_map(|line| line.trim().strip_prefix("quic tls IPv4: "));
    let counts = causes.into_iter().flat_map(|causes| causes.split(", "));
    let counts = counts.filter_map(|cause| cause.split(" × ").next()?.parse::<u32>().ok());
    assert_eq!(counts.sum::<u32>(), 3, "{page}");
}

#[test]
fn a_series_without_any_connection_fails_as_a_race_does() {
    let at = format!("127.0.0.1:{}", crate::ports::own_port());
    let line = format!("race --count 2 --interval 1ms --connect-timeout 1s tcp://{at}");
    let failed = Eyas::new(&line).arg("--json").run().exits(7).json();
    validate("error", &failed);
    let page = Eyas::new(&line).run().exits(7);
    assert!(page.out.contains("without any connection: 2 races"), "{}", page.out);
    for line in ["race --interval 1s a", "race --count 0 a", "race --count 2 --trace x a"] {
        Eyas::new(line).run().exits(2);
    }
}

#[test]
fn all_reports_what_works_and_why_the_rest_does_not() {
    let cases = [
        (ServerPersonality::Healthy, "quic", "HTTP/3 works"),
        (ServerPersonality::UdpSwallowed, "tcp", "nothing comes back over UDP"),
        (
            ServerPersonality::WrongCertificate(TransportSide::Quic),
            "tcp",
            "certificate shown over QUIC",
        ),
        (ServerPersonality::Http3Only, "quic", "HTTP/3 works"),
    ];
    for (personality, winner, verdict) in cases {
        let peer = Peer::start(personality);
        let line = format!("race --all --connect-timeout 6s {}", peer.url("/"));
        let object = peer.eyas(&line).arg("--json").run().exits(0).json();
        validate("race", &object);
        assert_eq!(object["winner"]["transport"], winner, "{personality:?}");
        let attempts = object["attempts"].as_array().expect("attempts");
        let tried = |name: &str| attempts.iter().filter(|one| one["transport"] == name).count();
        // SCTP over UDP can be protected by TLS on its streams or by DTLS below it.
        for (transport, times) in [("quic", 1), ("sctp-udp", 2)] {
            assert_eq!(tried(transport), times, "{personality:?}: {transport}");
        }
        // The servers have no MPTCP, so it falls back to TCP, unless this host has none either.
        assert!(tried("tcp") >= 1, "{personality:?}");
        assert_eq!(tried("tcp") + tried("mptcp"), 2, "{personality:?}");
        let fell_back: Vec<_> = attempts.iter().filter(|one| one["fell_back"] == true).collect();
        assert!(fell_back.iter().all(|one| one["transport"] == "tcp"), "{personality:?}");
        let text = object["verdict"].as_str().expect("a verdict");
        assert!(text.contains(verdict), "{personality:?}: {text}");
        let table = peer.eyas(&line).run().exits(0).out;
        assert!(table.contains("works") && table.contains("quic tls"), "{table}");
        // Nothing is won where every candidate finishes.
        assert!(table.contains("ready after") && !table.contains("won after"), "{table}");
        let row = table.lines().find(|line| line.contains("mptcp tls")).unwrap_or_default();
        assert!(!row.contains(" yes "), "a fallback is no MPTCP: {row}");
        if fell_back.iter().any(|one| one["outcome"] == "lost") {
            assert!(row.contains("as tcp") && row.contains("no MPTCP"), "{table}");
        }
    }
}

#[test]
fn the_late_switch_is_reported() {
    // Enough for TCP to be ready first, but within the time of the late switch.
    let delay = std::time::Duration::from_millis(600);
    let peer = Peer::start(ServerPersonality::QuicSlow { by: delay });
    let line = format!("race --json {}", peer.url("/"));
    let object = peer.eyas(&line).run().exits(0).json();
    validate("race", &object);
    assert_eq!(object["winner"]["transport"], "tcp");
    assert_eq!(object["upgraded_to"], "quic");
}

#[test]
fn a_recorded_race_replays_as_it_ran() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let line = format!("race --json --trace race.jsonl {}", peer.url("/"));
    let raced = peer.eyas(&line).run().exits(0).json();
    let replay = || Eyas::new("replay race.jsonl").within(&peer.directory());
    let replayed = replay().arg("--json").run().exits(0).json();
    validate("replay", &replayed);
    assert_eq!(replayed["identical"], true);
    assert_eq!(replayed["winner"], raced["winner"]);
    assert_eq!(replayed["attempts"], raced["attempts"]);
    assert!(replay().arg("--explain").run().exits(0).out.contains("all as recorded"));
    replay().arg("--svg").arg("race.svg").run().exits(0);
    let picture = std::fs::read_to_string(peer.directory().join("race.svg")).expect("it is there");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    assert_eq!(replay().arg("--svg").arg("/no/such/folder/race.svg").run().exits(23).out, "",);

    let path = peer.directory().join("race.jsonl");
    let text = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(&path, text.replacen("\"security\":\"tls\"", "\"security\":\"none\"", 1))
        .expect("writes");
    let changed = replay().arg("--json").run().exits(111).json();
    validate("error", &changed);
    let known = format!("\"version\":{}", eyas::race::trace::SCHEMA_VERSION);
    std::fs::write(&path, text.replacen(&known, "\"version\":99", 1)).expect("writes");
    let unknown = replay().run().exits(111);
    assert!(unknown.err.contains("version 99"), "{}", unknown.err);
}

#[test]
fn a_failed_exchange_can_be_replayed_too() {
    let peer = Peer::start(ServerPersonality::WrongName(TransportSide::Both));
    peer.eyas(&format!("get --trace race.jsonl {}", peer.url("/"))).run().exits(60);
    Eyas::new("replay race.jsonl").within(&peer.directory()).run().exits(0);
}

#[test]
fn a_plan_gives_reasons_and_connects_to_nothing() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let line = format!("plan --json {}", peer.url("/"));
    let object = peer.eyas(&line).run().exits(0).json();
    validate("plan", &object);
    let entries = object["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|entry| !entry["reasons"].as_array().expect("reasons").is_empty()));
    let ipv6 = peer.eyas(&format!("plan -6 --json {}", peer.url("/"))).run().exits(6).json();
    assert_eq!(ipv6["entries"].as_array().map(Vec::len), Some(0), "{ipv6}");
    let text = peer.eyas(&format!("plan {}", peer.url("/"))).run().exits(0).out;
    assert!(text.contains("at once") && text.contains("quic 127.0.0.1"), "{text}");
}

#[test]
fn explanations_are_printed_with_the_race() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let line = format!("race --explain --json {}", peer.url("/"));
    let object = peer.eyas(&line).run().exits(0).json();
    validate("race", &object);
    assert!(object["plan"]["entries"].as_array().is_some_and(|entries| !entries.is_empty()));
}

/// Who answers for the name is a part of the explanation.
#[test]
fn explanations_say_who_answers_for_the_name() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let url = peer.url("/");
    for command in ["race", "get"] {
        let run = |line: &str| peer.eyas(&format!("{command} {line} {url}")).run().exits(0);
        let object = run("--explain --json").json();
        validate(command, &object);
        assert_eq!(object["names"]["source"], "override", "{object}");
        let explained = run("--explain");
        let text = format!("{}{}", explained.out, explained.err);
        assert!(text.contains("addresses from the given addresses"), "{text}");
        assert!(run("--json").json()["names"].is_null(), "only with --explain");
    }
}
