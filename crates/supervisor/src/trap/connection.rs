//! A connection to the supervisor, used by one call at a time.

use std::io::{self, IoSliceMut};
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;

use crate::client::SupervisorAddress;
use crate::local::{MAX_DATA, Op, RESPONSE, Request, Response};

/// The reply to a call.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) response: Response,
    pub(super) data: Vec<u8>,
    pub(super) descriptor: Option<OwnedFd>,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection(UnixStream);

impl Connection {
    pub(super) async fn open(address: &SupervisorAddress) -> io::Result<Self> {
        Ok(Self(UnixStream::connect(address.path()).await?))
    }

    /// Returns whether it is still open and nothing is left of an earlier call.
    pub(super) fn is_open(&self) -> bool {
        let peeked = self.0.try_io(Interest::READABLE, || {
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK;
            Ok(nix::sys::socket::recv(self.0.as_raw_fd(), &mut [0], flags)?)
        });
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a request with its data.
    pub(super) async fn send(&mut self, request: &Request, parts: [&[u8]; 3]) -> io::Result<()> {
        self.0.write_all(&request.encode()).await?;
        for part in parts {
            self.0.write_all(part).await?;
        }
        Ok(())
    }

    /// Ends the wait of the previous request, which is then answered.
    pub(super) async fn cancel(&mut self, key: u64) -> io::Result<()> {
        self.send(&Request { key, ..Request::new(Op::Cancel) }, [&[], &[], &[]]).await
    }

    /// Waits until a response starts to arrive.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// Receives a response; `None` if it has not arrived yet.
    pub(super) async fn receive(&mut self) -> io::Result<Option<Reply>> {
        let mut head = [0; RESPONSE];
        let first = self.0.try_io(Interest::READABLE, || first(&self.0, &mut head));
        let (length, descriptor) = match first {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(first) => first,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        self.0.read_exact(&mut head[length..]).await?;
        let response = Response::parse(&head).filter(|response| response.data as usize <= MAX_DATA);
        let response = response.ok_or(io::ErrorKind::InvalidData)?;
        let mut data = vec![0; response.data as usize];
        self.0.read_exact(&mut data).await?;
        Ok(Some(Reply { response, data, descriptor }))
    }
}

/// Receives the first bytes, and the descriptor that comes with them.
fn first(stream: &UnixStream, head: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut control = [0; size_of::<[usize; 3]>()];
    let mut room = [IoSliceMut::new(head)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(stream.as_raw_fd(), &mut room, Some(&mut control), flags)?;
    let mut found = None;
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(descriptors) = message {
            found = descriptors.first().copied().map(owned);
        }
    }
    Ok((received.bytes, found))
}

fn owned(fd: RawFd) -> OwnedFd {
    #[expect(unsafe_code, reason = "the kernel passes descriptors as numbers")]
    // SAFETY: the kernel has just created it for us, and there is no room for another one.
    unsafe {
        OwnedFd::from_raw_fd(fd)
    }
}
