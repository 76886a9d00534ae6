//! Resolution, by topic. Each test reads like the zone and the ladder in its comment.

mod aliases;
mod ech;
mod families;
mod local;
mod records;
mod timelines;
