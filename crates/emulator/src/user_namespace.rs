//! A user namespace in which an ordinary user is root, and advice if it cannot be created.

use std::fs;
use std::io;
use std::process::Command;

use rustix::thread::{CapabilitySet, capabilities};

use super::error::EmulatorError;
use super::kernel;

/// Settings that prevent ordinary users from creating user namespaces: a file below /proc/sys, its content in
/// that case, and the setting that allows it.
const SWITCHES: [(&str, &str, &str); 3] = [
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
];

/// The identity of this program before it became root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginalUser {
    user: u32,
    group: u32,
}

impl OriginalUser {
    /// Makes a command run as this user instead of root.
    pub fn run(self, command: &mut Command) {
        kernel::start_as(command, self.user, self.group);
    }
}

/// Makes this program root of a new user namespace, and returns its former identity, unless it may
/// already create network namespaces. This allows it to create them if the kernel lets ordinary
/// users do so. Must be called before the program has a second thread. For files and processes
/// outside, it remains the same user.
///
/// # Errors
/// If the kernel does not allow it, or there is a second thread.
pub fn become_root() -> Result<Option<OriginalUser>, EmulatorError> {
    let may =
        |sets: rustix::thread::CapabilitySets| sets.effective.contains(CapabilitySet::SYS_ADMIN);
    if capabilities(None).is_ok_and(may) {
        return Ok(None);
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let refused = |cause| not_allowed("user", cause);
    kernel::unshare_user_namespace().map_err(refused)?;
    let map = |file: &str, line: String| fs::write(file, line).map_err(refused);
    // Without this, the kernel refuses the map of groups (user_namespaces(7)).
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
    map("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))?;
    Ok(Some(OriginalUser { user: user.as_raw(), group: group.as_raw() }))
}

/// Returns the error if a namespace of this kind cannot be created.
pub(super) fn not_allowed(kind: &'static str, cause: io::Error) -> EmulatorError {
    let read = |file: &str| fs::read_to_string(format!("/proc/sys/{file}")).ok();
    EmulatorError::NotAllowed { kind, cause, remedy: remedy(read) }
}

/// Returns the advice that fits the settings of the machine.
fn remedy(read: impl Fn(&str) -> Option<String>) -> String {
    let is_set = |file: &str, value: &str| read(file).is_some_and(|text| text.trim() == value);
    match SWITCHES.iter().find(|(file, value, _)| is_set(file, value)) {
        Some((_, _, setting)) => format!(
            "this machine does not allow ordinary users to create user namespaces; to allow it, run \
             'sysctl -w {setting}' as root"
        ),
        None => "run this as root; a container needs CAP_SYS_ADMIN and /dev/net/tun".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sysctl_that_is_off_is_named() {
        for (setting_file, value, setting) in SWITCHES {
            let machine = |file: &str| match file {
                file if file == setting_file => Some(format!("{value}\n")),
                "user/max_user_namespaces" => Some("96365\n".to_owned()),
                _ => None,
            };
            let reported = remedy(machine);
            assert!(reported.contains(&format!("'sysctl -w {setting}'")), "{reported}");
        }
    }

    #[test]
    fn if_no_sysctl_is_off_root_is_needed() {
        let free = |file: &str| (file == "user/max_user_namespaces").then(|| "96365\n".to_owned());
        assert!(remedy(free).starts_with("run this as root"));
        assert!(remedy(|_| None).starts_with("run this as root"));
    }
}
