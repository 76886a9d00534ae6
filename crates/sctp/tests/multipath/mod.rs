//! Several paths used at once, over links in virtual time.

mod asymmetric;
mod properties;
mod published;
mod throughput;
mod world;
