//! `eyas tunnel`: all connections between two hosts over one session.
//!
//! | module | job |
//! | --- | --- |
//! | [`frame`] | what the ends say to each other, as bytes; pure |
//! | [`session`] | channels, their windows, their ends; pure |

pub mod frame;
pub mod session;
