//! Tests of the behaviour of Linux's SCTP sockets, over a simulated wire in virtual time.

mod behaviour;
mod buffers;
mod comparison;
mod features;
mod ip_options;
mod lifecycle;
mod lksctp_regressions;
mod one_to_many;
mod one_to_one;
mod options;
mod pair;
mod plain_sends;
mod random_calls;
mod sharing;
