//! The environment of the command's tests: the binary, servers, DNS, schemas.

mod breaking;
mod dns;
mod faulty;
mod process;
mod schema;
mod server;

pub(crate) use breaking::{Breaking, TcpEnd};
pub(crate) use dns::DnsStub;
pub(crate) use faulty::Faulty;
#[cfg(target_os = "linux")]
pub(crate) use process::leave_descriptors;
pub(crate) use process::{Eyas, Running, Served};
pub(crate) use schema::validate;
pub(crate) use server::Peer;
