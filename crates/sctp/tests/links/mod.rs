//! Two endpoints over links with a rate, a delay, a queue and losses, in virtual time: utilisation
//! of a long path, failover, packet sizes and congestion marks.

mod congestion_marks;
mod coupling;
mod failover;
mod long_path;
mod outages;
mod path_mtu;
mod shared;
