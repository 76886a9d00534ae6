//! Resolution, by topic. Each test reads like the zone and the ladder in its comment.

mod ech;
mod families;
mod timelines;
