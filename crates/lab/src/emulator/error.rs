//! Why there is no emulator, or why it does not do what it is asked to.

use std::io;

/// What went wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The topology cannot be built.
    #[error("{0}")]
    Topology(String),
    /// The kernel does not let this user make namespaces.
    #[error("cannot make a {kind} namespace: {cause}; {remedy}")]
    NotAllowed {
        /// Which kind: `user`, `network` or `mount`.
        kind: &'static str,
        /// What the kernel says.
        cause: io::Error,
        /// What to do about it, by what the machine is set to.
        remedy: String,
    },
    /// There is no TUN device.
    #[error(
        "cannot open a TUN device, {name}: {cause}; the kernel needs the module tun, and this user \
         /dev/net/tun"
    )]
    Tun {
        /// The interface that was to be made.
        name: String,
        /// What the kernel says.
        cause: io::Error,
    },
    /// An interface cannot be called so.
    #[error("{0:?} is not a name for an interface: up to 15 letters, digits, '-', '_' and '.'")]
    NoName(String),
    /// There is an interface of this name.
    #[error(
        "the interface {0} exists already; choose another name, or remove it (ip link delete {0})"
    )]
    Taken(String),
    /// This user may not make interfaces.
    #[error(
        "cannot make the interface {name}: {cause}; it takes root, or CAP_NET_ADMIN and, in a container, \
         the device /dev/net/tun"
    )]
    NoInterfaces {
        /// The interface that was to be made.
        name: String,
        /// What the kernel says.
        cause: io::Error,
    },
    /// A program that the set-up needs cannot be run.
    #[error("cannot run {program}: {cause}; it comes with {package}")]
    Program {
        /// Which one.
        program: &'static str,
        /// What the system says.
        cause: io::Error,
        /// What to install.
        package: &'static str,
    },
    /// An interface could not be set up.
    #[error("cannot set up the interfaces of the {host}: {said}")]
    Interfaces {
        /// In which namespace.
        host: String,
        /// What `ip` says.
        said: String,
    },
    /// The kernel gives what arrives at the server no threads of its own.
    #[error(
        "the kernel does not provide threads for network devices: {0}; this requires Linux 5.12 and root"
    )]
    Receivers(String),
    /// There is no such path.
    #[error("there is no path {name:?}; there are {known}")]
    NoSuchPath {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A namespace cannot be entered.
    #[error("cannot enter the network namespace of the {host}: {cause}")]
    Enter {
        /// Whose.
        host: String,
        /// What the kernel says.
        cause: io::Error,
    },
    /// A file cannot be seen instead of another.
    #[error("cannot replace {file} for the command: {cause}")]
    Cover {
        /// What was to be covered.
        file: String,
        /// What the kernel says.
        cause: io::Error,
    },
    /// The thread of the emulator has ended.
    #[error("the emulator has ended: {0}")]
    Ended(String),
    /// The file of a capture cannot be written.
    #[error("cannot write the capture: {0}")]
    Capture(io::Error),
    /// Anything else that the system refuses.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        cause: io::Error,
    },
}

impl EmulatorError {
    /// For `map_err`: what was tried, and why it failed.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self::System { what, cause: cause.into() }
    }
}
