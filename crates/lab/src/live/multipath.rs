//! Measures how much payload one connection gets over several paths, and the cost of a failing
//! path.
//!
//! A saturated sender sends to a receiver, which records what arrives when. The stack that they use
//! differs: eyas's SCTP, the kernel's MPTCP, usrsctp, or eyas's SCTP in the simulator.

mod meter;
mod mptcp;
mod network;
mod run;
mod sctp;
mod shared;
mod simulated;
mod usrsctp;

#[cfg(test)]
mod tests;
