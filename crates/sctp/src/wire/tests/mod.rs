//! What holds for all bytes and all chunks.

mod forms;
mod properties;
mod strategies;
