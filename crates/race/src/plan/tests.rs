//! Plans, by topic.

mod order;
