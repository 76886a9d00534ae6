//! Defines which calls stop in the kernel until they are answered here.
//!
//! A filter sees only numbers, not what they refer to: descriptors of SCTP sockets get numbers from
//! [`BASE`] on, so that calls on other descriptors pass.

use libc::{c_int, c_long, sock_filter};

use crate::local::subject::{KIND_FLAGS, SCTP};

/// The lowest descriptor number whose calls stop. Most programs never reach it with other
/// descriptors, and it still works with `select`.
pub(super) const BASE: c_int = 900;
/// Calls on descriptor numbers below this one stop.
pub(super) const TOP: c_int = 65_536;

/// Calls whose first argument is a descriptor.
pub(super) const ON_DESCRIPTOR: &[c_long] = &[
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_sendfile,
    libc::SYS_dup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    libc::SYS_dup3,
];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// On other architectures nothing stops.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

/// The offsets in `seccomp_data` of the call's number, the architecture, and the low half of an
/// argument.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUALS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// A jump label.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Next,
    Socket,
    OfSctp,
    OfAnything,
    Control,
    Copy,
    Splice,
    Descriptor,
    Pass,
    Stop,
}

/// An assembler for programs whose jumps refer to labels.
#[derive(Default)]
struct Assembler {
    code: Vec<(u32, u32, Label, Label)>,
    labels: Vec<(Label, usize)>,
}

impl Assembler {
    fn label(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    fn add(&mut self, code: u32, value: u32) {
        self.code.push((code, value, Label::Next, Label::Next));
    }

    /// Jumps to one label if the loaded value satisfies the comparison, otherwise to the other.
    fn jump(&mut self, compare: u32, value: u32, if_true: Label, if_false: Label) {
        self.code.push((compare, value, if_true, if_false));
    }

    fn finish(self) -> Vec<sock_filter> {
        let distance = |from: usize, to: Label| {
            let found = self.labels.iter().find(|(label, _)| *label == to);
            found.map_or(0, |(_, at)| u8::try_from(at - from - 1).expect("the program is short"))
        };
        let instructions =
            self.code.iter().enumerate().map(|(at, (code, value, delivery, or_else))| {
                let (jt, jf) = (distance(at, *delivery), distance(at, *or_else));
                sock_filter {
                    code: u16::try_from(*code).expect("a code of BPF"),
                    jt,
                    jf,
                    k: *value,
                }
            });
        instructions.collect()
    }
}

/// Returns the program for the kernel.
pub(super) fn program() -> Vec<sock_filter> {
    use Label::{Control, Copy, Descriptor, Next, OfAnything, OfSctp, Pass, Socket, Splice, Stop};

    let number = |value: i64| value as u32;
    let mut assembler = Assembler::default();
    assembler.add(LOAD, MACHINE);
    assembler.jump(EQUALS, ARCHITECTURE, Next, Pass);
    assembler.add(LOAD, NUMBER);
    assembler.jump(EQUALS, number(libc::SYS_socket), Socket, Next);
    for call in ON_DESCRIPTOR {
        assembler.jump(EQUALS, number(*call), Descriptor, Next);
    }
    assembler.jump(EQUALS, number(libc::SYS_ioctl), Control, Next);
    assembler.jump(EQUALS, number(libc::SYS_fcntl), Copy, Next);
    assembler.jump(EQUALS, number(libc::SYS_splice), Splice, Pass);

    assembler.label(Socket);
    assembler.add(LOAD, argument(0));
    assembler.jump(EQUALS, libc::AF_INET as u32, OfSctp, Next);
    assembler.jump(EQUALS, libc::AF_INET6 as u32, OfSctp, Pass);
    assembler.label(OfSctp);
    assembler.add(LOAD, argument(2));
    assembler.jump(EQUALS, 0, OfAnything, Next);
    assembler.jump(EQUALS, SCTP as u32, Next, Pass);
    assembler.add(LOAD, argument(1));
    assembler.add(AND, !KIND_FLAGS as u32);
    assembler.jump(EQUALS, libc::SOCK_RAW as u32, Pass, Stop);
    assembler.label(OfAnything);
    assembler.add(LOAD, argument(1));
    assembler.add(AND, !KIND_FLAGS as u32);
    assembler.jump(EQUALS, libc::SOCK_SEQPACKET as u32, Stop, Pass);

    assembler.label(Control);
    assembler.add(LOAD, argument(1));
    assembler.jump(EQUALS, libc::FIONREAD as u32, Descriptor, Next);
    assembler.jump(EQUALS, libc::TIOCOUTQ as u32, Descriptor, Pass);
    assembler.label(Copy);
    assembler.add(LOAD, argument(1));
    assembler.jump(EQUALS, libc::F_DUPFD as u32, Descriptor, Next);
    assembler.jump(EQUALS, libc::F_DUPFD_CLOEXEC as u32, Descriptor, Pass);
    assembler.label(Splice);
    assembler.add(LOAD, argument(2));
    assembler.jump(AT_LEAST, TOP as u32, Descriptor, Next);
    assembler.jump(AT_LEAST, BASE as u32, Stop, Next);
    assembler.label(Descriptor);
    assembler.add(LOAD, argument(0));
    assembler.jump(AT_LEAST, TOP as u32, Pass, Next);
    assembler.jump(AT_LEAST, BASE as u32, Stop, Next);

    assembler.label(Pass);
    assembler.add(RETURN, libc::SECCOMP_RET_ALLOW);
    assembler.label(Stop);
    assembler.add(RETURN, libc::SECCOMP_RET_USER_NOTIF);
    assembler.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the kernel would stop this call, by interpreting the program.
    fn stops(machine: u32, call: c_long, arguments: [u64; 6]) -> bool {
        let mut data = [0_u8; 64];
        data[..4].copy_from_slice(&(call as u32).to_ne_bytes());
        data[4..8].copy_from_slice(&machine.to_ne_bytes());
        for (label, argument) in data[16..].chunks_mut(8).zip(arguments) {
            label.copy_from_slice(&argument.to_ne_bytes());
        }
        let (program, mut at, mut loaded) = (program(), 0, 0_u32);
        loop {
            let instruction = program[at];
            let jump = |yes: bool| usize::from(if yes { instruction.jt } else { instruction.jf });
            at += 1;
            match u32::from(instruction.code) {
                LOAD => {
                    let bytes = data[instruction.k as usize..].first_chunk().unwrap();
                    loaded = u32::from_ne_bytes(*bytes);
                }
                AND => loaded &= instruction.k,
                EQUALS => at += jump(loaded == instruction.k),
                AT_LEAST => at += jump(loaded >= instruction.k),
                RETURN => return instruction.k == libc::SECCOMP_RET_USER_NOTIF,
                other => panic!("unknown code {other}"),
            }
        }
    }

    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> bool {
        let arguments = [domain as u64, kind as u64, protocol as u64, 0, 0, 0];
        stops(ARCHITECTURE, libc::SYS_socket, arguments)
    }

    #[test]
    fn socket_calls_are_trapped_only_for_sctp() {
        for domain in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
            for kind in 1..=6 {
                for flags in [0, libc::SOCK_NONBLOCK, libc::SOCK_CLOEXEC, KIND_FLAGS] {
                    for protocol in [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP, SCTP] {
                        let wanted = crate::local::subject::is_sctp(domain, kind, protocol);
                        let got = socket(domain, kind | flags, protocol);
                        assert_eq!(got, wanted, "{domain} {kind} {flags} {protocol}");
                    }
                }
            }
        }
    }

    #[test]
    fn calls_are_trapped_only_on_high_descriptors() {
        let on = |call, fd: i64, second: u64, third: i64| {
            stops(ARCHITECTURE, call, [fd as u64, second, third as u64, 0, 0, 0])
        };
        for call in ON_DESCRIPTOR {
            for (fd, wanted) in [
                (-1, false),
                (0, false),
                (899, false),
                (900, true),
                (65_535, true),
                (65_536, false),
            ] {
                assert_eq!(on(*call, fd, 0, 0), wanted, "{call} on {fd}");
            }
        }
        assert!(on(libc::SYS_ioctl, 900, libc::FIONREAD, 0));
        assert!(!on(libc::SYS_ioctl, 900, libc::FIONBIO, 0));
        assert!(on(libc::SYS_fcntl, 900, libc::F_DUPFD_CLOEXEC as u64, 0));
        assert!(!on(libc::SYS_fcntl, 900, libc::F_GETFL as u64, 0));
        assert!(on(libc::SYS_splice, 900, 0, 3) && on(libc::SYS_splice, 3, 0, 900));
        assert!(!on(libc::SYS_splice, 3, 0, 4) && !on(libc::SYS_splice, 3, 0, -1));
        for call in [libc::SYS_close, libc::SYS_epoll_ctl, libc::SYS_openat] {
            assert!(!on(call, 900, 0, 0), "{call}");
        }
    }

    #[test]
    fn calls_of_another_architecture_pass() {
        assert!(!stops(0x4000_0003, libc::SYS_bind, [900, 0, 0, 0, 0, 0]));
    }
}
