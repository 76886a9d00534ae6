//! Tests of the race, by topic. See [`scene`] for the vocabulary.

mod after_win;
mod again;
mod endings;
mod hold;
mod limits;
mod loss;
mod networks;
mod properties;
mod refusals;
mod retests;
mod scene;
mod timing;
mod wake_ups;
mod winning;
mod world;
