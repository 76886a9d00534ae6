//! What programs see of Linux's SCTP sockets, over a wire in virtual time.

mod as_linux;
mod behaviour;
mod beside;
mod buffers;
mod further;
mod life;
mod many;
mod model;
mod options;
mod pair;
mod random_calls;
