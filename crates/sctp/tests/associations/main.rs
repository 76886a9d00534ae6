//! Associations as their users see them: two endpoints and a network, in virtual time.

mod data;
mod handshake;
mod hostile;
mod paths;
mod world;
