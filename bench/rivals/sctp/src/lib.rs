//! What the rivals without sockets of their own have in common: one trait for one end of an
//! association, and the loops that carry its packets in memory or over UDP.
//!
//! | module | job |
//! | --- | --- |
//! | [`end`] | what a stack has to be able to do |
//! | [`memory`] | two ends in one thread |
//! | [`link`] | two ends and a long path with losses, in virtual time |
//! | [`udp`] | one end on a socket, one system call for each packet |
//! | [`command`] | the words on the command line, and the answer |

pub mod command;
pub mod end;
pub mod link;
pub mod memory;
pub mod udp;
