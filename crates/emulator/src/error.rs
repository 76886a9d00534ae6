//! Errors of the emulator.

use std::io;

use crate::units::MiddleboxSpecError;

/// An error of the emulator, with advice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The topology is invalid.
    #[error("{0}")]
    Topology(String),
    /// A middlebox is invalid.
    #[error(transparent)]
    Middlebox(#[from] MiddleboxSpecError),
    /// The kernel does not allow this user to create namespaces.
    #[error("cannot create a {kind} namespace: {cause}; {remedy}")]
    NotAllowed {
        /// The kind of namespace: `user`, `network` or `mount`.
        kind: &'static str,
        /// The error from the kernel.
        cause: io::Error,
        /// Advice, depending on the settings of the machine.
        remedy: String,
    },
    /// TUN devices are not available.
    #[error(
        "cannot open a TUN device, {name}: {cause}; the kernel needs the module tun, and this user access to \
         /dev/net/tun"
    )]
    Tun {
        /// The interface to be created.
        name: String,
        /// The error from the kernel.
        cause: io::Error,
    },
    /// The name is not valid for an interface.
    #[error("{0:?} is not a name for an interface: up to 15 letters, digits, '-', '_' and '.'")]
    InvalidName(String),
    /// An interface with this name already exists.
    #[error(
        "the interface {0} exists already; choose another name, or remove it (ip link delete {0})"
    )]
    AlreadyExists(String),
    /// This user may not create interfaces.
    #[error(
        "cannot create the interface {name}: {cause}; this requires root, or CAP_NET_ADMIN and, in a container, \
         the device /dev/net/tun"
    )]
    InterfaceNotAllowed {
        /// The interface to be created.
        name: String,
        /// The error from the kernel.
        cause: io::Error,
    },
    /// A required program cannot be run.
    #[error("cannot run {program}: {cause}; it comes with {package}")]
    Program {
        /// The program.
        program: &'static str,
        /// The error from the system.
        cause: io::Error,
        /// The package to install.
        package: &'static str,
    },
    /// An interface could not be configured.
    #[error("cannot set up the interfaces of the {host}: {output}")]
    Interfaces {
        /// The namespace.
        host: String,
        /// The output of `ip`.
        output: String,
    },
    /// The kernel does not provide separate threads for receiving at the server.
    #[error(
        "the kernel does not provide threads for network devices: {0}; this requires Linux 5.12 and root"
    )]
    Receivers(String),
    /// The path does not exist.
    #[error("there is no path {name:?}; there are {known}")]
    NoSuchPath {
        /// The requested path.
        name: String,
        /// The existing paths.
        known: String,
    },
    /// A namespace cannot be entered.
    #[error("cannot enter the network namespace of the {host}: {cause}")]
    Enter {
        /// Its host.
        host: String,
        /// The error from the kernel.
        cause: io::Error,
    },
    /// A file cannot be replaced.
    #[error("cannot replace {file} for the command: {cause}")]
    Replace {
        /// The file to be replaced.
        file: String,
        /// The error from the kernel.
        cause: io::Error,
    },
    /// The thread of the emulator has ended.
    #[error("the emulator has ended: {0}")]
    Ended(String),
    /// The capture file cannot be written.
    #[error("cannot write the capture: {0}")]
    Capture(io::Error),
    /// Another error from the system.
    #[error("cannot {what}: {cause}")]
    System {
        /// The operation.
        what: &'static str,
        /// The error from the system.
        cause: io::Error,
    },
}

impl EmulatorError {
    /// For `map_err`: the operation that was attempted, and why it failed.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self::System { what, cause: cause.into() }
    }
}
