//! System calls that neither the standard library nor safe wrappers offer: namespaces, TUN devices,
//! and children that start in a namespace. This is the only unsafe code of this crate.
#![allow(unsafe_code, reason = "system calls whose arguments the compiler cannot check")]

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{IntegerSetter, Opcode, Updater, opcode};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// `TUNSETIFF` of linux/if_tun.h.
const SET_INTERFACE: Opcode = opcode::write::<c_int>(b'T', 202);
/// `TUNSETOFFLOAD`.
const SET_OFFLOAD: Opcode = opcode::write::<u32>(b'T', 208);
/// `IFF_TUN | IFF_NO_PI`: plain IP packets.
const TUN_PLAIN: u16 = 0x0001 | 0x1000;
/// `IFF_VNET_HDR`: with a virtio header before each packet.
const TUN_HEADER: u16 = 0x4000;
/// `IFF_TUN_EXCL`: fail if an interface of this name exists.
const TUN_NEW: u16 = 0x8000;
/// `IFF_NAPI`: the kernel processes written packets like those of a network card.
const TUN_NAPI: u16 = 0x0010;
/// The longest name of an interface (`IFNAMSIZ` without the terminating zero).
pub const LONGEST_NAME: usize = 15;

/// `struct ifreq`: a name, and a union; only its flags are used here.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; LONGEST_NAME + 1],
    flags: u16,
    rest: [u8; 22],
}

/// Moves the calling thread into a new network namespace.
pub(super) fn unshare_network_namespace() -> io::Result<()> {
    // SAFETY: of everything that threads share, only the network namespace is no longer shared;
    // neither memory nor descriptors are affected.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}

/// Makes the process, which must have only one thread, root of a new user namespace.
pub(super) fn unshare_user_namespace() -> io::Result<()> {
    // SAFETY: this changes the credentials, not memory or descriptors; the kernel refuses if there
    // is another thread.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?;
    Ok(())
}

/// Moves the calling thread into a new mount namespace.
pub(super) fn unshare_mount_namespace() -> io::Result<()> {
    // SAFETY: threads no longer share the mounts, the root and the working directory, of which this
    // one has its own copies from now on.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    Ok(())
}

/// How a TUN device delivers packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TunKind {
    /// Complete packets.
    Plain,
    /// Packets that may be incomplete, with a header that says so.
    Offload,
    /// The same, and the packets written to it can be processed by a kernel thread.
    OffloadThreaded,
}

/// Creates a TUN device in the network namespace of the calling thread. It exists as long as the
/// descriptor is open.
pub(super) fn open_tun(name: &str, kind: TunKind) -> io::Result<OwnedFd> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open("/dev/net/tun")?;
    let mode = match kind {
        TunKind::Plain => 0,
        TunKind::Offload => TUN_HEADER,
        TunKind::OffloadThreaded => TUN_HEADER | TUN_NAPI,
    };
    let flags = TUN_PLAIN | TUN_NEW | mode;
    let mut request = InterfaceRequest { name: [0; LONGEST_NAME + 1], flags, rest: [0; 22] };
    let bytes = name.as_bytes();
    let fits = request.name.get_mut(..bytes.len()).filter(|_| bytes.len() <= LONGEST_NAME);
    fits.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(bytes);
    // SAFETY: the request is a `struct ifreq`, 40 bytes long, that outlives the call.
    unsafe {
        rustix::ioctl::ioctl(&file, Updater::<SET_INTERFACE, InterfaceRequest>::new(&mut request))
    }?;
    Ok(file.into())
}

/// Schedules the calling thread before all ordinary ones: first in, first out, with the lowest
/// real-time priority (sched(7)).
pub(super) fn use_real_time_priority() -> io::Result<()> {
    // The only member of the kernel's `struct sched_param`. musl's function always fails with ENOSYS, and its structure
    // has more members.
    let priority: libc::c_int = 1;
    let parameters = &raw const priority;
    // SAFETY: the number outlives the call, which only reads it, and 0 is the calling thread.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets which kinds of incomplete packets the device delivers: bits of `TUN_F_*`.
pub(super) fn set_offload(tun: impl AsFd, bits: usize) -> io::Result<()> {
    // SAFETY: the argument is a number, not a pointer.
    unsafe { rustix::ioctl::ioctl(tun, IntegerSetter::<SET_OFFLOAD>::new_usize(bits)) }?;
    Ok(())
}

/// Makes the command start in this network namespace.
pub(super) fn start_in_namespace(command: &mut Command, namespace: Arc<File>) {
    let enter = move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(io::Error::from)
    };
    // SAFETY: between fork and exec only one system call is made; nothing is allocated or locked.
    unsafe { command.pre_exec(enter) };
}

/// Makes the command start in a user namespace in which the root of this one has this user and
/// group.
pub(super) fn start_as(command: &mut Command, user: u32, group: u32) {
    let maps = [
        (c"/proc/self/uid_map", format!("{user} 0 1")),
        (c"/proc/self/gid_map", format!("{group} 0 1")),
    ];
    let leave = move || {
        unshare_user_namespace()?;
        for (file, line) in &maps {
            let map = rustix::fs::open(*file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::io::write(&map, line.as_bytes())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated or locked.
    unsafe { command.pre_exec(leave) };
}
