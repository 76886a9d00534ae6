//! Tests of the page's format.

use super::*;

fn stats() -> Stats {
    Stats { tcp_open: 3, mptcp_open: 4, sctp_associations: 2, ..Stats::default() }
}

#[test]
fn every_sample_follows_its_type() {
    let process = Process::read();
    let text = render(&stats(), Some(1), process.as_ref(), None);
    let mut announced = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("name and kind");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            assert!(!announced.contains(&name), "{name}");
            announced.push(name);
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next();
            assert_eq!(name, announced.last().copied(), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(text.ends_with('\n') && announced.len() >= 14, "{text}");
}

#[test]
fn transports_and_versions_are_counted_separately() {
    let text = render(&stats(), None, None, None);
    for line in [
        "eyas_connections{transport=\"tcp\"} 3\n",
        "eyas_connections{transport=\"mptcp\"} 4\n",
        "eyas_connections{transport=\"quic\"} 0\n",
        "eyas_requests_total{version=\"1.0\"} 0\n",
        "eyas_connections_accepted_total{transport=\"sctp\"} 2\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains("eyas_sctp_associations") && !text.contains("process_"));
}
