//! HTTP/1.1, 2 and 3 over eyas.

pub mod alt_svc;
pub mod serve;
