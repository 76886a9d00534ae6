//! Error numbers of system calls by their POSIX names, on every platform.
//!
//! A number that a platform lacks has a negative value there, which no call returns, so that one classification serves
//! all.

#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
mod bsd;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
pub use bsd::*;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::*;
#[cfg(windows)]
pub use windows::*;
