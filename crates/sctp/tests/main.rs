//! What users of endpoints see, over networks in virtual time.

mod associations;
mod data_channels;
mod links;
mod multipath;
mod network;
mod saturated;
