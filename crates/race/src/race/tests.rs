//! Tests of the race, by topic. See [`scene`] for the notation.

mod after_win;
mod early_start;
mod endings;
mod expired;
mod fallback;
mod init_ack_gate;
mod limits;
mod long_hello;
mod loss;
mod networks;
mod properties;
mod recovery;
mod refusals;
mod retests;
mod scene;
mod second_try;
mod timing;
mod wake_ups;
mod winning;
mod world;
