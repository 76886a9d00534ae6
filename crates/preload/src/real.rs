//! libc's own functions, or those of the next preloaded library.

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use libc::{FILE, timespec};
use libc::{iovec, loff_t, mmsghdr, msghdr, off_t, off64_t, size_t, sockaddr, socklen_t, ssize_t};

/// A function that is looked up once.
pub(crate) struct Function {
    name: &'static CStr,
    next: AtomicPtr<c_void>,
}

impl Function {
    const fn new(name: &'static str) -> Self {
        let name = match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        };
        Self { name, next: AtomicPtr::new(null_mut()) }
    }

    /// Returns its address, or null if this libc does not have it.
    fn find(&self) -> *mut c_void {
        let mut next = self.next.load(Ordering::Relaxed);
        if next.is_null() {
            // SAFETY: the name ends with a zero byte.
            next = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.next.store(next, Ordering::Relaxed);
        }
        next
    }
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        #[allow(non_upper_case_globals, reason = "each has the name of its function")]
        mod function {
            $(pub(super) static $name: super::Function =
                super::Function::new(concat!(stringify!($name), "\0"));)*
        }

        $(
            /// # Safety
            /// As libc's function of this name.
            pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
                let next = function::$name.find();
                if next.is_null() {
                    return crate::answer(Err(crate::Errno(libc::ENOSYS))) as $result;
                }
                // SAFETY: libc's function of this name has this signature. Variadic functions
                // receive their arguments as a function with this many fixed ones does.
                let next: unsafe extern "C" fn($($type),*) -> $result = unsafe { transmute(next) };
                // SAFETY: the caller keeps the function's contract.
                unsafe { next($($argument),*) }
            }
        )*

        /// Looks up all functions, so that no later call has to, because that may allocate.
        pub(crate) fn find_all() {
            $(function::$name.find();)*
            PUSH.find();
            POP.find();
        }
    };
}

/// Memory for libc's record of a cancellation handler (`struct _pthread_cleanup_buffer`): three or
/// four words.
#[derive(Default)]
pub(crate) struct CleanupRecord([usize; 4]);

static PUSH: Function = Function::new("_pthread_cleanup_push\0");
static POP: Function = Function::new("_pthread_cleanup_pop\0");

/// Registers a function to be called with the argument if the thread is cancelled, if libc supports
/// it.
///
/// # Safety
/// Record and argument are not moved until [`pop_cleanup`], which the same frame calls, and the
/// handler takes a pointer to a `T`.
pub(crate) unsafe fn push_cleanup<T>(
    record: &mut CleanupRecord,
    handler: unsafe extern "C" fn(*mut c_void),
    argument: &T,
) {
    type Push = unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void), *mut c_void);
    let push = PUSH.find();
    if !push.is_null() && !POP.find().is_null() {
        // SAFETY: libc's function of this name has this signature.
        let push: Push = unsafe { transmute(push) };
        // SAFETY: libc keeps both pointers until `pop_cleanup`, as the caller allows, and its
        // record has at most these four words.
        unsafe {
            push((&raw mut record.0).cast(), handler, (&raw const *argument).cast_mut().cast())
        };
    }
}

/// Removes the record.
///
/// # Safety
/// It is the record that was registered last.
pub(crate) unsafe fn pop_cleanup(record: &mut CleanupRecord) {
    let pop = POP.find();
    if record.0[0] != 0 && !pop.is_null() {
        // SAFETY: libc's function of this name has this signature.
        let pop: unsafe extern "C" fn(*mut c_void, c_int) = unsafe { transmute(pop) };
        // SAFETY: it is libc's last record, by this function's contract, and 0 means that no
        // handler runs.
        unsafe { pop((&raw mut record.0).cast(), 0) };
    }
}

functions! {
    fdopen(fd: c_int, mode: *const c_char) -> *mut FILE;
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    bind(fd: c_int, name: *const sockaddr, length: socklen_t) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    accept(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int;
    accept4(fd: c_int, name: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
    connect(fd: c_int, name: *const sockaddr, length: socklen_t) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    getsockname(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int;
    getpeername(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int;
    getsockopt(fd: c_int, level: c_int, option: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int;
    setsockopt(fd: c_int, level: c_int, option: c_int, value: *const c_void, length: socklen_t) -> c_int;
    send(fd: c_int, data: *const c_void, length: size_t, flags: c_int) -> ssize_t;
    sendto(fd: c_int, data: *const c_void, length: size_t, flags: c_int, name: *const sockaddr, name_length: socklen_t) -> ssize_t;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
    write(fd: c_int, data: *const c_void, length: size_t) -> ssize_t;
    writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t;
    sendfile(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    sendfile64(out: c_int, from: c_int, offset: *mut off64_t, count: size_t) -> ssize_t;
    splice(from: c_int, from_offset: *mut loff_t, out: c_int, out_offset: *mut loff_t, length: size_t, flags: c_uint) -> ssize_t;
    recv(fd: c_int, data: *mut c_void, length: size_t, flags: c_int) -> ssize_t;
    __recv_chk(fd: c_int, data: *mut c_void, length: size_t, size: size_t, flags: c_int) -> ssize_t;
    recvfrom(fd: c_int, data: *mut c_void, length: size_t, flags: c_int, name: *mut sockaddr, name_length: *mut socklen_t) -> ssize_t;
    __recvfrom_chk(fd: c_int, data: *mut c_void, length: size_t, size: size_t, flags: c_int, name: *mut sockaddr, name_length: *mut socklen_t) -> ssize_t;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int;
    read(fd: c_int, data: *mut c_void, length: size_t) -> ssize_t;
    __read_chk(fd: c_int, data: *mut c_void, length: size_t, size: size_t) -> ssize_t;
    readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t;
    close(fd: c_int) -> c_int;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    dup(fd: c_int) -> c_int;
    dup2(fd: c_int, wanted: c_int) -> c_int;
    dup3(fd: c_int, wanted: c_int, flags: c_int) -> c_int;
    fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int;
    fcntl64(fd: c_int, command: c_int, argument: *mut c_void) -> c_int;
    ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
}
