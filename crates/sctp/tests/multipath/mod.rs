//! Several paths used at once, over links in virtual time.

mod properties;
mod published;
mod throughput;
mod world;
