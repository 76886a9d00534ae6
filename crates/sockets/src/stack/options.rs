//! `getsockopt` and `setsockopt`: each call is a value that holds the option and the program's
//! buffer, with the parts of the stack that it needs.
//!
//! | file | purpose |
//! | --- | --- |
//! | `call` | the option and its value |
//! | `target` | the socket or the associations that an option applies to |
//! | `general` | options without effect; privileges |
//! | `query` | `getsockopt` |
//! | `query/association` | what an association or its endpoint reports |
//! | `query/settings`, `query/rare` | settings that each association has |
//! | `change` | `setsockopt` |
//! | `change/shared` | settings of a socket for all its associations |
//! | `change/settings`, `change/rare` | settings that each association has |
//! | `change/commands` | options that start a procedure or change keys |
//! | `change/effect` | applies changed settings to the endpoints |

mod call;
mod change;
mod general;
mod query;
mod target;

use alloc::vec::Vec;
use core::time::Duration;

use super::Stack;
use crate::abi::Errno;
use crate::abi::number::{level, option, so};
use crate::io::SocketId;

use call::{OptionCall, ints};
use change::OptionChange;
use query::OptionQuery;

pub use general::needs_privileges;

impl Stack {
    /// `getsockopt`; `value` is the content of the program's buffer, with the length `optlen`. The
    /// result is never longer, and its length is the new `optlen`. `CONNECTX3` and `PEELOFF` have
    /// separate calls here.
    ///
    /// # Errors
    /// `ENOPROTOOPT`, `EINVAL`, `ENOTCONN`, …
    pub fn getsockopt(
        &mut self,
        now: Duration,
        socket: SocketId,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        self.advance_to(now);
        let call = OptionCall { socket, level, name, value };
        if (level, name) == (level::SOL_SOCKET, so::SO_ERROR) {
            return self.take_error(call);
        }
        let found = self.sockets.find(socket)?;
        let query = OptionQuery::new(&self.config, found, &self.associations, &self.ports, call);
        let outcome = query.perform();
        self.unsupported.count(level, name, &outcome);
        outcome
    }

    /// `SO_ERROR`, which can be read once.
    fn take_error(&mut self, call: OptionCall<'_>) -> Result<Vec<u8>, Errno> {
        let error = self.sockets.find_mut(call.socket)?.error.take();
        self.sockets.touch(call.socket);
        Ok(call.truncated(ints(&[error.map_or(0, |error| error.0 as u32)])))
    }

    /// `setsockopt`. `BINDX_ADD` and `BINDX_REM` work here, too; for the variants of `CONNECTX` see
    /// [`Self::connectx`]. The caller checks that a program has the privileges for options that
    /// need them ([`needs_privileges`](crate::needs_privileges)).
    ///
    /// # Errors
    /// `ENOPROTOOPT`, `EINVAL`, …
    pub fn setsockopt(
        &mut self,
        now: Duration,
        socket: SocketId,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        self.advance_to(now);
        self.sockets.find(socket)?;
        let outcome = match (level, name) {
            (level::SOL_SCTP, option::SCTP_SOCKOPT_BINDX_ADD) => {
                self.bindx(now, socket, value, true)
            }
            (level::SOL_SCTP, option::SCTP_SOCKOPT_BINDX_REM) => {
                self.bindx(now, socket, value, false)
            }
            _ => {
                let Self { now, config, sockets, associations, ports, .. } = self;
                let call = OptionCall { socket, level, name, value };
                OptionChange::new(*now, config, sockets, associations, ports, call).perform()
            }
        };
        self.unsupported.count(level, name, &outcome);
        outcome
    }
}
