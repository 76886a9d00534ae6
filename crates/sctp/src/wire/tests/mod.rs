//! What holds for all bytes and all chunks.

mod properties;
mod strategies;
