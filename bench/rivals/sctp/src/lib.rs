//! The common part of the programs for stacks without sockets: a trait for one end of an association, and the loops
//! that transfer its packets in memory or over UDP.
//!
//! | module | job |
//! | --- | --- |
//! | [`end`] | the interface of a stack |
//! | [`memory`] | two ends in one thread |
//! | [`link`] | two ends and a long path with packet loss, in virtual time |
//! | [`udp`] | one end on a socket, one system call for each packet |
//! | [`command`] | the command line, and the output |

pub mod command;
pub mod end;
pub mod link;
pub mod memory;
pub mod udp;
