//! The platforms of a release, and what each packager calls them.

/// A processor under Linux.
#[derive(Debug)]
pub(super) struct Platform {
    /// Rust's and RPM's name.
    pub(super) arch: &'static str,
    /// The name that Debian, Go, OCI and nfpm use.
    pub(super) deb: &'static str,
    /// The name that Node uses.
    pub(super) node: &'static str,
}

/// Every platform.
pub(super) const PLATFORMS: &[Platform] = &[
    Platform { arch: "x86_64", deb: "amd64", node: "x64" },
    Platform { arch: "aarch64", deb: "arm64", node: "arm64" },
];

/// The oldest glibc that wheels and libraries work with: that of CentOS 7, Debian 8 and manylinux2014. Rust's
/// standard library needs it as well (and Linux 3.2).
pub(crate) const OLDEST_GLIBC: &str = "2.17";

impl Platform {
    /// Returns the target that links libc statically.
    pub(super) fn musl(&self) -> String {
        format!("{}-unknown-linux-musl", self.arch)
    }

    /// Returns the target that links glibc.
    pub(super) fn gnu(&self) -> String {
        format!("{}-unknown-linux-gnu", self.arch)
    }
}
