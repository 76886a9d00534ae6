//! Resolution, by topic. Each test follows the zone and the timeline in its comment.

mod aliases;
mod ech;
mod expired;
mod families;
mod local;
mod records;
mod timelines;
