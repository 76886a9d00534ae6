//! A command with its own network, whose only way out is a device that this process reads.

use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};

use super::error::EmulatorError;
use super::guard::EmulatorGuard;
use super::host::HostRole;
use super::kernel::{self, TunKind};
use super::namespace::{CURRENT_NAMESPACE, disable_background_traffic, run_ip};
use super::user_namespace::not_allowed;

/// The interface inside.
const INTERFACE: &str = "eyas0";
/// The largest IP packet: there is no link that would require segmentation.
const MTU: u32 = 65_535;

/// The environment inside an enclosure.
#[derive(Clone, Debug)]
pub struct EnclosureConfig {
    /// The addresses inside. Packets for others go to the device.
    pub addresses: (Ipv4Addr, Ipv6Addr),
    /// Files that replace others: the replacement and the path where it is seen.
    pub file_overrides: Vec<(PathBuf, PathBuf)>,
}

/// A network namespace with its own view of the files, both unnamed. Processes that are still
/// running in it are killed when this is dropped or this program is killed.
#[derive(Debug)]
pub struct Enclosure {
    _guard: EmulatorGuard,
}

impl Enclosure {
    /// Creates an enclosure and runs `work` in it, in a thread of its own: sockets that it opens
    /// and processes that it starts are inside. It gets the device: IP packets without a header,
    /// non-blocking.
    ///
    /// # Errors
    /// If the kernel refuses, or a program is missing.
    ///
    /// # Panics
    /// If `work` panics, with the same message.
    pub fn create<T: Send>(
        config: &EnclosureConfig,
        work: impl FnOnce(OwnedFd) -> T + Send,
    ) -> Result<(Self, T), EmulatorError> {
        let (created, namespace) = mpsc::channel();
        let (guard_started, proceed) = mpsc::channel();
        let inside = move || {
            let (namespace, device) = prepare(config)?;
            let guard_ended =
                |_| EmulatorError::Ended("the guard of the namespace has ended".to_owned());
            created.send(namespace).map_err(|_| guard_ended(mpsc::RecvError))?;
            // Nothing is started in it before the guard that kills it is running.
            proceed.recv().map_err(guard_ended)?;
            Ok(work(device))
        };
        thread::scope(|scope| {
            let thread = scope.spawn(inside);
            let guard = namespace.recv().ok().map(|namespace: File| {
                let guard = EmulatorGuard::start([&namespace, &namespace]);
                if guard.is_ok() {
                    let _ = guard_started.send(());
                }
                guard
            });
            drop(guard_started);
            let result = match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            match guard {
                Some(Ok(guard)) => result.map(|result| (Self { _guard: guard }, result)),
                Some(Err(cause)) => {
                    Err(EmulatorError::Program { program: "sh", cause, package: "any shell" })
                }
                None => Err(result.err().unwrap_or_else(|| {
                    EmulatorError::Ended("the namespace could not be created".to_owned())
                })),
            }
        })
    }
}

/// Moves the calling thread into new namespaces and sets them up.
fn prepare(config: &EnclosureConfig) -> Result<(File, OwnedFd), EmulatorError> {
    kernel::unshare_network_namespace().map_err(|cause| not_allowed("network", cause))?;
    kernel::unshare_mount_namespace().map_err(|cause| not_allowed("mount", cause))?;
    let namespace =
        File::open(CURRENT_NAMESPACE).map_err(EmulatorError::system("open a network namespace"))?;
    let refused = |cause| EmulatorError::Tun { name: INTERFACE.to_owned(), cause };
    let device = kernel::open_tun(INTERFACE, TunKind::Plain).map_err(refused)?;
    disable_background_traffic(INTERFACE);
    let (v4, v6) = config.addresses;
    run_ip(
        HostRole::Client,
        "-4",
        &format!(
            "link set lo up\n\
             link set dev {INTERFACE} mtu {MTU} txqueuelen 10000 multicast off up\n\
             addr add {v4}/32 dev {INTERFACE}\n\
             route add default dev {INTERFACE} src {v4}\n"
        ),
    )?;
    if Path::new("/proc/sys/net/ipv6").exists() {
        run_ip(
            HostRole::Client,
            "-6",
            &format!(
                "addr add {v6}/128 dev {INTERFACE} nodad\n\
                 route add default dev {INTERFACE} src {v6}\n"
            ),
        )?;
    }
    // Mounts made here must not be visible elsewhere.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .map_err(EmulatorError::system("make mounts private"))?;
    for (replacement, original) in &config.file_overrides {
        cover(replacement, original).map_err(|cause| EmulatorError::Replace {
            file: original.display().to_string(),
            cause,
        })?;
    }
    Ok((namespace, device))
}

/// Covers a file with a replacement: with a device itself, and with a copy of a file.
///
/// The file may be removed while it is in use, but nothing can be mounted on a file without a name (the kernel returns
/// ENOENT), as an enclosure inside this one will have to. So the copy is in a file system of its own, which has no
/// place in the tree once the copy is mounted.
fn cover(replacement: &Path, original: &Path) -> io::Result<()> {
    // A symbolic link leads to the file that is covered.
    let target = fs::canonicalize(original).unwrap_or_else(|_| original.to_owned());
    let metadata = fs::metadata(replacement)?;
    let Some(directory) = replacement.parent().filter(|_| metadata.is_file()) else {
        return Ok(mount_bind(replacement, &target)?);
    };
    let copy = FileCover { contents: fs::read(replacement)?, permissions: metadata.permissions() };
    // The new file system may cover the directory of the target, too.
    let target = File::open(&target);
    mount("none", directory, "tmpfs", MountFlags::empty(), c"size=1m")?;
    let covered = match target {
        Ok(target) => copy.write(replacement).and_then(|()| {
            let target = format!("/proc/self/fd/{}", target.as_raw_fd());
            Ok(mount_bind(replacement, target)?)
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            add_layer(directory, original).and_then(|()| copy.write(original))
        }
        Err(error) => Err(error),
    };
    unmount(directory, UnmountFlags::DETACH)?;
    covered
}

/// What a file is covered with.
struct FileCover {
    contents: Vec<u8>,
    permissions: Permissions,
}

impl FileCover {
    fn write(self, path: &Path) -> io::Result<()> {
        fs::write(path, self.contents)?;
        fs::set_permissions(path, self.permissions)
    }
}

/// Makes the directory of a file that does not exist writable in here alone: there is nothing to mount on. A symbolic
/// link that leads nowhere is removed in the same way.
fn add_layer(scratch: &Path, missing: &Path) -> io::Result<()> {
    let (upper, work) = (scratch.join("upper"), scratch.join("work"));
    fs::create_dir(&upper)?;
    fs::create_dir(&work)?;
    let Some(directory) = missing.parent() else { return Err(io::ErrorKind::NotFound.into()) };
    let layers = [("lowerdir", directory), ("upperdir", &upper), ("workdir", &work)];
    let options = layers.map(|(option, path)| format!("{option}={}", path.display())).join(",");
    let options = CString::new(options)?;
    mount("overlay", directory, "overlay", MountFlags::empty(), &*options)?;
    match fs::remove_file(missing) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
