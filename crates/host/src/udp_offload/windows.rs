//! Windows, whose older versions lack options that quinn-udp requires, such as `IP_RECVECN`, and Wine, which also refuses
//! to tell `IPV6_V6ONLY` of an IPv4 socket. There datagrams are sent and received one by one, without ECN.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::Socket;

use crate::errno;

/// `None` where an option is not known.
#[derive(Debug)]
pub(super) struct PlatformState(Option<UdpSocketState>);

impl PlatformState {
    pub(super) fn new(socket: &Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        match UdpSocketState::new(socket.into()) {
            Ok(state) => Ok(Self(Some(state))),
            Err(error) if is_unknown_option(&error) => Ok(Self(None)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn try_send(&self, socket: &Socket, transmit: &Transmit<'_>) -> io::Result<()> {
        match &self.0 {
            Some(state) => state.try_send(socket.into(), transmit),
            None => socket.send_to(transmit.contents, &transmit.destination.into()).map(drop),
        }
    }

    pub(super) fn recv(
        &self,
        socket: &Socket,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> io::Result<usize> {
        if let Some(state) = &self.0 {
            return state.recv(socket.into(), buffers, meta);
        }
        let (Some(buffer), Some(meta)) = (buffers.first_mut(), meta.first_mut()) else {
            return Ok(0);
        };
        *meta = receive_one(socket, buffer)?;
        Ok(1)
    }

    pub(super) fn max_gso_segments(&self) -> usize {
        self.0.as_ref().map_or(1, UdpSocketState::max_gso_segments)
    }

    pub(super) fn may_fragment(&self) -> bool {
        self.0.as_ref().is_none_or(UdpSocketState::may_fragment)
    }
}

fn is_unknown_option(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
        || matches!(
            error.raw_os_error(),
            Some(errno::EINVAL | errno::ENOPROTOOPT | errno::EOPNOTSUPP)
        )
}

#[expect(unsafe_code, reason = "socket2 receives into memory that need not be initialised")]
fn receive_one(socket: &Socket, buffer: &mut IoSliceMut<'_>) -> io::Result<RecvMeta> {
    let (start, len) = (buffer.as_mut_ptr().cast::<MaybeUninit<u8>>(), buffer.len());
    // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, the memory is borrowed exclusively, and `recv_from` writes
    // nothing into it that is not initialised.
    let memory = unsafe { std::slice::from_raw_parts_mut(start, len) };
    let (len, address) = socket.recv_from(memory)?;
    let addr = address.as_socket().ok_or(io::ErrorKind::InvalidData)?;
    let mut meta = RecvMeta::default();
    (meta.addr, meta.len, meta.stride) = (addr, len, len);
    Ok(meta)
}
