//! Whether only trusted users can change a file that says who may enter (as OpenSSH's `StrictModes`).

use std::path::Path;

use crate::failure::{Failure, FailureKind};

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub(super) use platform::read_to_string;

/// Checks that only root and this user can change a file that says who may enter.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    let unusable = |cause: &dyn std::fmt::Display| {
        Failure::new(FailureKind::Identity, format!("cannot use {}: {cause}", path.display()))
    };
    match platform::changeable_by_others(path) {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(unusable(&format_args!("{why}: they could let themselves in"))
            .hint("chmod go-w takes the permission from them")),
        Err(cause) => Err(unusable(&cause)),
    }
}
