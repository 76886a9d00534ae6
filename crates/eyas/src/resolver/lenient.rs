//! Answers that the DNS library would throw away whole for one octet.
//!
//! An ALPN protocol identifier is any octets (RFC 9460 §7.1.1); the library keeps text, and takes a
//! message in which one is no UTF-8 for broken, with all good records in it. What no text can hold
//! nobody here speaks, so its octets are replaced before the library reads them. That can be done
//! where messages come as datagrams in the clear; inside TCP and TLS they are the library's own.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hickory_resolver::net::runtime::{DnsUdpSocket, RuntimeProvider, TokioRuntimeProvider};

/// Record types that carry service parameters: SVCB and HTTPS.
const SERVICE_BINDINGS: [u16; 2] = [64, 65];

/// `SvcParamKey` of `alpn`.
const ALPN: u16 = 1;

/// Octets in front of the questions (RFC 1035 §4.1.1).
const HEADER: usize = 12;

/// Stands for each octet of an identifier that is no text; in no identifier that is registered.
const REPLACEMENT: u8 = 0x7f;

/// The runtime of the resolver, with sockets that mend what they receive.
#[derive(Clone, Default)]
pub(super) struct LenientProvider(TokioRuntimeProvider);

type Io<T> = Pin<Box<dyn Send + Future<Output = io::Result<T>>>>;

impl RuntimeProvider for LenientProvider {
    type Handle = <TokioRuntimeProvider as RuntimeProvider>::Handle;
    type Timer = <TokioRuntimeProvider as RuntimeProvider>::Timer;
    type Udp = LenientSocket;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> Self::Handle {
        self.0.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        local: Option<SocketAddr>,
        limit: Option<Duration>,
    ) -> Io<Self::Tcp> {
        self.0.connect_tcp(server, local, limit)
    }

    fn bind_udp(&self, local: SocketAddr, server: SocketAddr) -> Io<Self::Udp> {
        let socket = self.0.bind_udp(local, server);
        Box::pin(async { socket.await.map(LenientSocket) })
    }
}

/// A socket whose datagrams are mended.
pub(super) struct LenientSocket(<TokioRuntimeProvider as RuntimeProvider>::Udp);

impl DnsUdpSocket for LenientSocket {
    type Time = <TokioRuntimeProvider as RuntimeProvider>::Timer;

    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        let (len, from) = ready!(DnsUdpSocket::poll_recv_from(&self.0, cx, buffer))?;
        if let Some(message) = buffer.get_mut(..len) {
            mend(message);
        }
        Poll::Ready(Ok((len, from)))
    }

    fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        message: &[u8],
        server: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        DnsUdpSocket::poll_send_to(&self.0, cx, message, server)
    }
}

/// Replaces the octets of ALPN identifiers that are no text. A message that does not read to its end
/// is left to the library as far as it does not.
pub(super) fn mend(message: &mut [u8]) -> Option<()> {
    let count = |at: usize| Some(usize::from(u16_at(message, at)?));
    let (questions, records) = (count(4)?, count(6)? + count(8)? + count(10)?);
    let mut at = HEADER;
    for _ in 0..questions {
        at = after_name(message, at)? + 4;
    }
    for _ in 0..records {
        let fixed = after_name(message, at)?;
        let (record_type, len) = (u16_at(message, fixed)?, u16_at(message, fixed + 8)?);
        let data = fixed + 10;
        at = data + usize::from(len);
        let data = message.get_mut(data..at)?;
        if SERVICE_BINDINGS.contains(&record_type) {
            mend_parameters(data)?;
        }
    }
    Some(())
}

/// The data of one record: priority, target and parameters (RFC 9460 §2.2).
fn mend_parameters(data: &mut [u8]) -> Option<()> {
    let mut at = after_name(data, 2)?;
    while at < data.len() {
        let (key, len) = (u16_at(data, at)?, u16_at(data, at + 2)?);
        let value = at + 4;
        at = value + usize::from(len);
        let value = data.get_mut(value..at)?;
        if key == ALPN {
            mend_identifiers(value)?;
        }
    }
    Some(())
}

/// Identifiers, each after its length.
fn mend_identifiers(mut value: &mut [u8]) -> Option<()> {
    while let Some((len, rest)) = value.split_first_mut() {
        let (identifier, rest) = rest.split_at_mut_checked(usize::from(*len))?;
        if std::str::from_utf8(identifier).is_err() {
            identifier.iter_mut().filter(|octet| !octet.is_ascii()).for_each(|octet| {
                *octet = REPLACEMENT;
            });
        }
        value = rest;
    }
    Some(())
}

/// Where a name ends that begins here: behind its root or its pointer (RFC 1035 §4.1.4).
fn after_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match message.get(at)? {
            0 => return Some(at + 1),
            len @ 1..64 => at += 1 + usize::from(*len),
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
    }
}

fn u16_at(message: &[u8], at: usize) -> Option<u16> {
    message.get(at..at + 2)?.first_chunk().copied().map(u16::from_be_bytes)
}
