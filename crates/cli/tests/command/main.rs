//! The command as a user meets it: the binary, run against servers of every character.

mod demo;
mod faults;
mod get;
mod lab;
mod memory;
mod pipe;
mod race;
mod sctp;
mod serve;
mod stage;
