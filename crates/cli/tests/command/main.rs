//! The command as a user meets it: the binary, run against servers of every character.

mod complaints;
mod demo;
#[cfg(target_os = "linux")]
mod enclosed;
mod faults;
mod generate;
mod get;
mod lab;
mod lab_live;
mod load;
mod memory;
mod netem;
mod output;
mod pipe;
#[path = "../../../eyas/tests/ports/mod.rs"]
mod ports;
#[cfg(unix)]
mod proxy;
mod race;
mod sctp;
#[cfg(target_os = "linux")]
mod sctp_service;
mod serve;
mod stage;
#[cfg(unix)]
mod tunnel;
