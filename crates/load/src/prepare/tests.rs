//! Tests of the values derived from a load.

use super::*;

fn load() -> Load {
    Load::new("https://127.0.0.1:8443/bytes/1".parse().expect("a URL"))
}

#[test]
fn the_chosen_outcome_wins_if_it_can() {
    let mut load = load();
    load.race.transports = vec![Transport::Tcp, Transport::Sctp];
    load.outcomes = vec![Transport::Sctp, Transport::Tcp];
    let prepared = PreparedLoad::new(&load).expect("usable");
    let [sctp, tcp] = &prepared.choices[..] else { panic!("two outcomes") };
    assert_eq!(sctp.race.transports, [Transport::Sctp, Transport::Tcp]);
    assert_eq!(tcp.race.transports, [Transport::Tcp, Transport::Sctp]);
    assert!(sctp.race.clone().validated().is_ok() && !sctp.race.grace.is_zero());
    let direct = sctp.direct.as_ref().expect("known");
    assert_eq!(direct.transports, [Transport::Sctp]);
}

#[test]
fn a_race_below_tls_has_the_handshakes_of_the_others_beside_it() {
    let mut load = load();
    load.race.transports = vec![Transport::Tcp, Transport::Sctp];
    load.races_below_tls = true;
    assert!(matches!(PreparedLoad::new(&load), Err(LoadError::NoOutcome)));
    load.outcomes = vec![Transport::Sctp];
    let prepared = PreparedLoad::new(&load).expect("usable");
    let background = prepared.choices[0].background.as_ref().expect("the others");
    assert_eq!(background.transports, [Transport::Tcp]);
    assert!(background.clone().validated().is_ok());
}

#[test]
fn objects_are_of_the_same_origin() {
    let mut load = load();
    load.objects = vec!["/bytes/1024".into(), "/bytes/35840".into()];
    let prepared = PreparedLoad::new(&load).expect("usable");
    assert_eq!(prepared.objects[1].to_string(), "https://127.0.0.1:8443/bytes/35840");
    load.objects = vec!["https://elsewhere.example/".into()];
    assert!(matches!(PreparedLoad::new(&load), Err(LoadError::Object(_))));
}

#[test]
fn an_invalid_setup_is_refused() {
    let refused = |change: fn(&mut Load)| {
        let mut load = load();
        change(&mut load);
        PreparedLoad::new(&load).expect_err("refused").to_string()
    };
    assert!(refused(|load| load.arrivals.rate = crate::ArrivalRate::Fixed(0.0)).contains("rate"));
    assert!(refused(|load| load.hit_rate = 1.5).contains("1.5"));
    assert!(refused(|load| load.extent.duration = None).contains("no end"));
    assert!(refused(|load| load.warm_up = std::time::Duration::from_secs(60)).contains("warm-up"));
    assert!(refused(|load| load.race.transports.clear()).contains("transport"));
}

#[test]
fn threads_share_connections_and_the_limit_in_flight() {
    let mut load = load();
    load.threads = 4;
    load.max_in_flight = 10;
    load.connections = ConnectionUse::Persistent { max_connections: 6, streams: 100 };
    let prepared = PreparedLoad::new(&load).expect("usable");
    assert_eq!(prepared.most_in_flight(), 3);
    assert!(prepared.pool(3).is_some());
}
