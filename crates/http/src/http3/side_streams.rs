//! The unidirectional streams of a connection (RFC 9114 §6.2, RFC 9204 §4.2), in one task.

use std::{
    collections::BTreeMap,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Poll, ready},
};

use bytes::Bytes;
use eyas_h3::{
    code::ErrorCode,
    connection::{Input, UniStream},
    stream::{Role, StreamId},
};
use futures_util::{
    FutureExt as _,
    stream::{FuturesUnordered, StreamExt as _},
};

use super::{
    connection::{Shared, Work},
    error::ConnectionEnd,
    transport::{
        QuicConnection, QuicConnectionEnd, QuicRecvStream as _, QuicSendStream as _, QuicStreamEnd,
        Stopped, write_all,
    },
};

type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The unidirectional streams of both ends. Nothing of HTTP/3 but requests goes on unless they are [run](Self::run).
pub(crate) struct SideStreams<Q: QuicConnection> {
    shared: Arc<Shared<Q>>,
    /// Streams of this side that are open, except while they are written to.
    outgoing: BTreeMap<UniStream, Q::SendStream>,
    events: FuturesUnordered<Task<SideEvent<Q>>>,
    /// Streams of the peer that are to be stopped once they are at hand.
    stopping: BTreeMap<u64, ErrorCode>,
}

/// What happened on a stream.
enum SideEvent<Q: QuicConnection> {
    Opened(UniStream, Result<Q::SendStream, QuicConnectionEnd>),
    Written(UniStream, Q::SendStream, Result<(), QuicStreamEnd>),
    /// The peer asked to stop, or the stream ended otherwise.
    Stopped(UniStream, Stopped),
    Read(Q::RecvStream, Result<Option<Bytes>, QuicStreamEnd>),
}

impl<Q: QuicConnection> SideStreams<Q> {
    pub(super) fn new(shared: Arc<Shared<Q>>) -> Self {
        Self {
            shared,
            outgoing: BTreeMap::new(),
            events: FuturesUnordered::new(),
            stopping: BTreeMap::new(),
        }
    }

    /// Reads and writes the streams until the connection ends.
    pub(crate) async fn run(mut self) -> ConnectionEnd {
        let end = loop {
            let shared = Arc::clone(&self.shared);
            let happened = tokio::select! {
                work = shared.next_work() => {
                    self.carry_out(work);
                    Ok(())
                }
                accepted = shared.quic().accept_unidirectional() => match accepted {
                    Ok(stream) => {
                        self.read(stream);
                        Ok(())
                    }
                    Err(end) => Err(end),
                },
                opened = shared.quic().accept_bidirectional(), if shared.role() == Role::Client => {
                    opened.map(|(send, _)| shared.server_opened(send.id()))
                }
                Some(event) = self.events.next() => self.handle_event(event),
            };
            if let Err(end) = happened {
                break end;
            }
        };
        let end = self.shared.explain_end(end);
        self.shared.ended(&end);
        end
    }

    fn carry_out(&mut self, work: Vec<Work>) {
        for work in work {
            match work {
                Work::Open(name) => {
                    let opening = self.shared.quic().open_unidirectional();
                    self.events
                        .push(Box::pin(async move { SideEvent::Opened(name, opening.await) }));
                }
                Work::Write { stream: name, data, fin } => self.write(name, data, fin),
                Work::StopSending { stream, code } => {
                    self.stopping.insert(stream, code);
                }
            }
        }
    }

    /// Writes to a stream. The next write follows when this one is complete, and until then the core keeps it.
    fn write(&mut self, name: UniStream, data: Bytes, fin: bool) {
        let Some(mut stream) = self.outgoing.remove(&name) else { return };
        self.events.push(Box::pin(async move {
            let mut written = write_all(&mut stream, &mut [data]).await;
            if fin && written.is_ok() {
                written = stream.finish();
            }
            SideEvent::Written(name, stream, written)
        }));
    }

    fn handle_event(&mut self, event: SideEvent<Q>) -> Result<(), QuicConnectionEnd> {
        match event {
            SideEvent::Opened(name, opened) => {
                let stream = opened?;
                // No async block: of those, each idle connection has three, and each is twice as large as what it awaits.
                let stopped =
                    stream.stopped().map(move |stopped| SideEvent::Stopped(name, stopped));
                self.events.push(Box::pin(stopped));
                self.outgoing.insert(name, stream);
                self.shared.handle_input(Input::Opened(name));
            }
            SideEvent::Written(name, stream, Ok(())) => {
                self.outgoing.insert(name, stream);
                self.shared.handle_input(Input::Written(name));
            }
            SideEvent::Stopped(name, Ok(Some(_))) => {
                self.shared.handle_input(Input::Stopped(name));
            }
            SideEvent::Written(_, _, Err(QuicStreamEnd::Connection(end)))
            | SideEvent::Stopped(_, Err(QuicStreamEnd::Connection(end))) => return Err(end),
            // The event of a stream that was stopped says why.
            SideEvent::Written(..) | SideEvent::Stopped(..) => {}
            SideEvent::Read(stream, read) => return self.handle_read(stream, read),
        }
        Ok(())
    }

    fn handle_read(
        &mut self,
        mut stream: Q::RecvStream,
        read: Result<Option<Bytes>, QuicStreamEnd>,
    ) -> Result<(), QuicConnectionEnd> {
        let id = StreamId(stream.id());
        let input = match read {
            Ok(Some(data)) => Input::Stream { stream: id, data, fin: false },
            Ok(None) => Input::Stream { stream: id, data: Bytes::new(), fin: true },
            Err(QuicStreamEnd::Connection(end)) => return Err(end),
            Err(_) => Input::Reset { stream: id },
        };
        let goes_on = matches!(input, Input::Stream { fin: false, .. });
        self.shared.handle_input(input);
        let work = self.shared.pending_work();
        self.carry_out(work);
        match self.stopping.remove(&id.0) {
            Some(code) => stream.stop(code),
            None if goes_on => self.read(stream),
            None => {}
        }
        Ok(())
    }

    /// Reads the next bytes of a stream of the peer.
    fn read(&mut self, stream: Q::RecvStream) {
        let mut reading = Some(stream);
        // No async block, for the same reason.
        self.events.push(Box::pin(poll_fn(move |cx| {
            let Some(stream) = &mut reading else { return Poll::Pending };
            let mut chunk = [Bytes::new()];
            let read = ready!(stream.poll_read(cx, &mut chunk));
            let [chunk] = chunk;
            let read = read.map(|count| count.map(|_| chunk));
            reading
                .take()
                .map_or(Poll::Pending, |stream| Poll::Ready(SideEvent::Read(stream, read)))
        })));
    }
}
