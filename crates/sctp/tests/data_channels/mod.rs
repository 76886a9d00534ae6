//! Data channels as their users see them: two endpoints and a network, in virtual time.

mod behaviour;
mod hostile;
mod limits;
mod properties;
mod world;
