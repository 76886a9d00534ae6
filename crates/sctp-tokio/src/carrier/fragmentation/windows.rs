//! Windows.

use std::io;
use std::os::windows::io::AsRawSocket;

use socket2::Socket;
use windows_sys::Win32::Networking::WinSock::{
    IP_DONTFRAGMENT, IPPROTO_IP, IPPROTO_IPV6, IPV6_DONTFRAG, SOCKET, setsockopt,
};

#[expect(unsafe_code, reason = "socket2 has no function for this option")]
pub(super) fn set_forbidden(socket: &Socket, is_ipv4: bool, forbidden: bool) -> io::Result<()> {
    let (level, option) = match is_ipv4 {
        true => (IPPROTO_IP, IP_DONTFRAGMENT),
        false => (IPPROTO_IPV6, IPV6_DONTFRAG),
    };
    let value = i32::from(forbidden).to_ne_bytes();
    // SAFETY: the socket is open while it is borrowed, and the value is as long as is said.
    let failed = unsafe {
        let length = i32::try_from(value.len()).unwrap_or_default();
        let socket = socket.as_raw_socket() as SOCKET;
        setsockopt(socket, level, option, value.as_ptr(), length)
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
