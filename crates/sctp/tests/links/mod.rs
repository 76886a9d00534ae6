//! Two endpoints over links with a rate, a delay, a queue and losses, in virtual time: how much of
//! a long path is used, how soon another path takes over, how large packets become, and what marks do.

mod congestion_marks;
mod coupling;
mod failover;
mod long_path;
mod path_mtu;
mod shared;
