//! Tests of the command: the binary is run against correct and faulty servers.

#[cfg(target_os = "linux")]
mod all_traffic;
mod all_traffic_dns;
#[cfg(unix)]
mod curl;
mod demo;
mod doctor;
mod faults;
mod generate;
mod get;
mod lab;
mod lab_live;
mod load;
mod memory;
mod messages;
mod netem;
mod output;
mod perf;
mod pipe;
#[path = "../../../eyas/tests/ports/mod.rs"]
mod ports;
#[cfg(unix)]
mod proxy;
mod race;
mod sctp;
#[cfg(target_os = "linux")]
mod sctp_service;
mod searched_names;
mod serve;
#[cfg(unix)]
mod service;
mod stage;
#[cfg(unix)]
mod tunnel;
#[cfg(unix)]
mod tunnel_proxied;
