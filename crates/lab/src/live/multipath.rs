//! How much one connection gets out of several paths, and what a path that dies costs it.
//!
//! One sender has always more to send; one receiver notes what comes when. Who speaks over the paths
//! between them differs: our SCTP, the kernel's MPTCP, usrsctp, or our SCTP in the simulator.

mod course;
mod lines;
mod meter;
mod mptcp;
mod run;
mod sctp;
mod simulated;
mod usrsctp;

#[cfg(test)]
mod tests;
