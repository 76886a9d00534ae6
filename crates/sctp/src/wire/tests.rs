//! Properties of all bytes and all chunks.

mod properties;
mod strategies;
mod values;
