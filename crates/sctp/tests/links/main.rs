//! Two endpoints over links with a rate, a delay, a queue and losses, in virtual time: how much of
//! a long path is used, and how soon another path takes over.

mod failover;
mod long_path;
mod world;
