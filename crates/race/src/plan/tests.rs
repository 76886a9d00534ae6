//! Plans, by topic.

mod explained;
mod memory;
mod order;
mod properties;
mod records;
