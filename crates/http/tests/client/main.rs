//! Tests of the client against real servers on loopback.

mod alt_svc;
mod bodies;
mod cancellation;
mod client_certificates;
#[cfg(feature = "compression")]
mod compression;
#[cfg(all(feature = "form", feature = "json"))]
mod conveniences;
mod early;
mod early_answers;
mod events;
mod faults;
mod field_tables;
mod fields;
mod hostile;
mod hostile_peer;
mod lying_server;
#[path = "../../../eyas/tests/namespace/mod.rs"]
mod namespace;
#[path = "../../../eyas/tests/observer/mod.rs"]
mod observer;
mod odd;
mod pool;
#[path = "../../../eyas/tests/ports/mod.rs"]
mod ports;
mod proxy;
mod race;
mod redirects;
mod retries;
mod reuse;
#[cfg(all(feature = "server", feature = "sctp"))]
mod sctp_port;
mod service;
mod site;
mod unexpected;
#[cfg(feature = "server")]
mod upgrades;
mod versions;
#[cfg(feature = "server")]
mod websockets;
#[path = "../wire/mod.rs"]
mod wire;
