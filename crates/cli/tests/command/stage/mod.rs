//! The stage of the command's tests: the binary, servers of all characters, DNS, schemas.

mod dns;
mod faulty;
mod ports;
mod process;
mod schema;
mod server;

pub(crate) use dns::DnsStub;
pub(crate) use faulty::Faulty;
pub(crate) use ports::{free_tcp_port, free_udp_port};
pub(crate) use process::{Eyas, Running, Served};
pub(crate) use schema::validate;
pub(crate) use server::Peer;
