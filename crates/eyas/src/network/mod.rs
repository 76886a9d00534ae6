//! Which network this is, and how it changes.

pub(crate) mod sources;
