//! Associations as their users see them: two endpoints and a network, in virtual time.

mod address_attacks;
mod addresses;
mod authentication;
mod bulk;
mod collision;
mod custom_algorithms;
mod data;
mod extensions;
mod families;
mod handshake;
mod held;
mod hostile;
mod interleaving;
mod live_changes;
mod memory;
mod nat;
mod out_of_band;
mod out_of_the_blue;
mod paths;
mod properties;
mod reconfiguration;
mod shutdown;
mod strategies;
mod timeouts;
mod timers;
mod world;
