//! The layers of a crate: each module depends only on modules of its own and lower layers.

use std::collections::BTreeMap;

use super::Finding;
use super::modules::{Module, Modules};

/// The layers of a crate, lowest first; modules of one layer may depend on each other.
struct Layered {
    source: &'static str,
    layers: &'static [&'static [&'static str]],
}

const LAYERED: [Layered; 8] = [
    Layered {
        source: "crates/lab/src/",
        layers: &[
            &["statistics", "printable"],
            &["situation"],
            &["run"],
            &["measure"],
            &["claim"],
            &["plan"],
            &["simulation"],
            &["live"],
            &["results"],
            &["runner"],
            &["report"],
        ],
    },
    Layered {
        source: "crates/relay/src/",
        layers: &[
            &["accept", "body", "copy", "device", "packet", "proxy_status", "pseudonym"],
            &["destination", "destination_stream"],
            &["connect_udp", "rules"],
            &["handshake", "permitted"],
            &["via"],
        ],
    },
    Layered {
        source: "crates/proxy/src/",
        layers: &[
            &["admission", "client_hello", "guesses", "limits", "requester", "unanswered", "users"],
            &["peers", "report"],
            &["client", "stats", "traffic"],
            &["metrics", "shared"],
            &["connect", "connect_udp"],
            &["associate"],
            &["connection"],
            &["interception", "streams"],
            &["server"],
        ],
    },
    Layered {
        source: "crates/gateway/src/",
        layers: &[
            &["expect", "limits", "peer", "received", "upstream"],
            &["fields", "forwarded"],
            &["multiplexed", "request_body", "settings", "upgrade", "validation", "websocket"],
            &["attempt", "failure", "interims", "notices", "stats", "websocket_stream"],
            &["connection", "http1_connection", "pool", "share"],
            &["response_body", "shared"],
            &["dial", "forward", "handshake", "head", "tunnel"],
            &["service"],
            &["builder"],
        ],
    },
    Layered {
        source: "crates/sctp-tokio/src/",
        layers: &[
            &["dtls", "error", "ports", "tap"],
            &["carrier", "json", "slot"],
            &["outbox", "own_addresses", "stack"],
            &["shared_endpoint", "wires"],
            &["own", "path_sessions", "task"],
            &["association", "messages", "stream"],
            &["kernel"],
            &["connector"],
            &["listener"],
        ],
    },
    Layered {
        source: "crates/sockets/src/stack/",
        layers: &[
            &["delivery", "seed", "turns", "unsupported"],
            &["ports"],
            &["association", "socket"],
            &["names", "socket_table"],
            &["association_table"],
            &["send_room"],
            &[
                "closing",
                "connecting",
                "driving",
                "events",
                "naming",
                "options",
                "plain_sends",
                "readiness",
                "receiving",
                "report",
                "sending",
            ],
        ],
    },
    Layered {
        source: "crates/tunnel/src/",
        layers: &[
            &["frame", "liveness", "notice", "packet_counts", "paths", "shares"],
            &["demand", "forward", "keys", "local", "session", "vigil"],
            &["dynamic", "error", "link"],
            &["doubt", "leases", "packets", "sessions", "sockets", "transport"],
            &["ports", "proxied"],
            &["server_tunnel", "server"],
            &["setup"],
            &["client_session", "probing"],
            &["client"],
        ],
    },
    Layered {
        source: "bench/src/",
        layers: &[
            &["options", "process", "report", "rival", "run", "sides", "statistics", "transfer"],
            &["environment", "page", "server", "verdict", "versions"],
            &["arena", "front", "tables"],
            &["programs", "scenario"],
            &["cost"],
            &[
                "bulk",
                "h3",
                "http",
                "instructions",
                "lab",
                "python",
                "relay",
                "sctp",
                "sim",
                "sockets",
                "tls",
            ],
        ],
    },
];

/// Checks the sources, which are given with their paths.
pub(super) fn check(sources: &BTreeMap<String, String>) -> Vec<Finding> {
    LAYERED.iter().flat_map(|layered| check_crate(layered, sources)).collect()
}

fn check_crate(layered: &Layered, sources: &BTreeMap<String, String>) -> Vec<Finding> {
    upward_dependencies(layered, &Modules::of(layered.source, sources.iter()))
}

fn upward_dependencies(layered: &Layered, modules: &Modules) -> Vec<Finding> {
    let layer = |module: &Module| {
        let top = module.first()?;
        layered.layers.iter().position(|names| names.contains(&top.as_str()))
    };
    let mut findings = Vec::new();
    for (module, names) in &modules.names {
        let file = &modules.files[module];
        let Some(own) = layer(module) else {
            if !module.is_empty() {
                findings.push(Finding::error(file, 0, "has no layer in tidy's list"));
            }
            continue;
        };
        for (other, line) in names {
            if layer(other).is_some_and(|other| other > own) {
                let message =
                    format!("depends on {}, which is in a higher layer", other.join("::"));
                findings.push(Finding::error(file, *line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Layered = Layered { source: "src/", layers: &[&["low"], &["high", "peer"]] };

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let text = |(file, text): &(&str, &str)| (format!("src/{file}"), (*text).to_owned());
        let sources = files.iter().map(text).collect();
        let format_finding = |finding: Finding| format!("{}: {}", finding.place, finding.message);
        check_crate(&SMALL, &sources).into_iter().map(format_finding).collect()
    }

    #[test]
    fn a_dependency_on_a_higher_layer_is_found() {
        let high = ("high.rs", "use crate::low::L;");
        assert_eq!(messages(&[("lib.rs", "mod low; mod high;"), ("low.rs", ""), high]), [""; 0]);
        let low = ("low/inner.rs", "fn f() { crate::high::go() }");
        let found = messages(&[("lib.rs", ""), ("low/mod.rs", ""), low, ("high.rs", "")]);
        assert_eq!(found, ["src/low/inner.rs: depends on high, which is in a higher layer"]);
    }

    #[test]
    fn a_module_without_a_layer_is_found() {
        assert_eq!(messages(&[("new.rs", "")]), ["src/new.rs: has no layer in tidy's list"]);
    }
}
