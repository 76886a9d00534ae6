//! The unidirectional streams of a connection (RFC 9114 §6.2, RFC 9204 §4.2), in one task.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    slice,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use eyas_h3::{
    connection::{Input, UniStream},
    stream::{CriticalStream, Role, StreamId},
};

use super::{
    connection::{Shared, Work},
    error::ConnectionEnd,
    transport::{
        QuicConnection, QuicConnectionEnd, QuicRecvStream, QuicSendStream, QuicStreamEnd, Stopped,
        poll_write_all,
    },
};

/// How many streams each side has, and usually no others.
const USUAL_STREAMS: usize = CriticalStream::ALL.len();

/// How much is read before it is the turn of other tasks: a peer may send without an end.
const MAX_READS: usize = 64;

type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The unidirectional streams of both ends. Nothing of HTTP/3 but requests goes on unless they are [run](Self::run).
///
/// All are polled together. A future for each, which wakes for itself alone, takes more memory than its stream, and every
/// idle connection has six.
pub(crate) struct SideStreams<Q: QuicConnection> {
    shared: Arc<Shared<Q>>,
    outgoing: Vec<Outgoing<Q>>,
    /// Streams of the peer, as many as QUIC allows it.
    incoming: Vec<Q::RecvStream>,
}

/// A stream of this side.
struct Outgoing<Q: QuicConnection> {
    name: UniStream,
    state: State<Q>,
}

enum State<Q: QuicConnection> {
    Opening(Task<Result<Q::SendStream, QuicConnectionEnd>>),
    Open(Open<Q::SendStream>),
}

struct Open<S> {
    stream: S,
    /// Until the peer has asked to stop, or the stream has ended otherwise.
    stopped: Option<Task<Stopped>>,
    /// The next write follows when this one is complete, and until then the core keeps it.
    writing: Option<Box<Write>>,
}

struct Write {
    data: Bytes,
    fin: bool,
}

impl<Q: QuicConnection> SideStreams<Q> {
    pub(super) fn new(shared: Arc<Shared<Q>>) -> Self {
        let (outgoing, incoming) =
            (Vec::with_capacity(USUAL_STREAMS), Vec::with_capacity(USUAL_STREAMS));
        Self { shared, outgoing, incoming }
    }

    /// Reads and writes the streams until the connection ends.
    pub(crate) fn run(mut self) -> impl Future<Output = ConnectionEnd> + Send {
        let shared = Arc::clone(&self.shared);
        // An async function would keep its argument twice.
        async move {
            let quic = shared.quic();
            let mut unidirectional = pin!(quic.accept_unidirectional());
            let mut bidirectional = pin!(quic.accept_bidirectional());
            let end = loop {
                let happened = tokio::select! {
                    biased;
                    work = shared.next_work() => {
                        self.carry_out(work);
                        Ok(())
                    }
                    accepted = &mut unidirectional => {
                        unidirectional.set(quic.accept_unidirectional());
                        accepted.map(|stream| self.incoming.push(stream))
                    }
                    opened = &mut bidirectional, if shared.role() == Role::Client => {
                        bidirectional.set(quic.accept_bidirectional());
                        opened.map(|(send, _)| shared.server_opened(send.id()))
                    }
                    end = poll_fn(|cx| self.poll_streams(cx)) => Err(end),
                };
                if let Err(end) = happened {
                    break end;
                }
            };
            let end = shared.explain_end(end);
            shared.ended(&end);
            end
        }
    }

    fn carry_out(&mut self, work: Vec<Work>) {
        for work in work {
            match work {
                Work::Open(name) => {
                    let opening = Box::pin(self.shared.quic().open_unidirectional());
                    self.outgoing.push(Outgoing { name, state: State::Opening(opening) });
                }
                Work::Write { stream: name, data, fin } => {
                    let mut outgoing = self.outgoing.iter_mut();
                    if let Some(outgoing) = outgoing.find(|outgoing| outgoing.name == name) {
                        outgoing.write(Write { data, fin });
                    }
                }
                Work::StopSending { stream: id, code } => {
                    let stopped = self.incoming.iter().position(|stream| stream.id() == id);
                    if let Some(stopped) = stopped {
                        self.incoming.swap_remove(stopped).stop(code);
                    }
                }
            }
        }
    }

    /// Reads and writes what is possible. Ready when the connection has ended.
    fn poll_streams(&mut self, cx: &mut Context<'_>) -> Poll<QuicConnectionEnd> {
        // What is read may have to be answered.
        match self.poll_incoming(cx) {
            Poll::Ready(end) => Poll::Ready(end),
            Poll::Pending => self.poll_outgoing(cx),
        }
    }

    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<QuicConnectionEnd> {
        let (mut index, mut reads) = (0, 0);
        while let Some(stream) = self.incoming.get_mut(index) {
            if reads == MAX_READS {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match poll_read(stream, cx) {
                Poll::Ready(Ok(input)) => {
                    reads += 1;
                    if !matches!(input, Input::Stream { fin: false, .. }) {
                        self.incoming.swap_remove(index);
                    }
                    // Before it is read again: the core may stop the stream.
                    let work = self.shared.handle_input(input);
                    self.carry_out(work);
                }
                Poll::Ready(Err(end)) => return Poll::Ready(end),
                Poll::Pending => index += 1,
            }
        }
        Poll::Pending
    }

    fn poll_outgoing(&mut self, cx: &mut Context<'_>) -> Poll<QuicConnectionEnd> {
        loop {
            let mut work = Vec::new();
            for outgoing in &mut self.outgoing {
                while let Poll::Ready(input) = outgoing.poll_input(cx) {
                    match input {
                        Ok(input) => work.extend(self.shared.handle_input(input)),
                        Err(end) => return Poll::Ready(end),
                    }
                }
            }
            if work.is_empty() {
                return Poll::Pending;
            }
            self.carry_out(work);
        }
    }
}

impl<Q: QuicConnection> Outgoing<Q> {
    fn write(&mut self, write: Write) {
        if let State::Open(open) = &mut self.state {
            open.writing = Some(Box::new(write));
        }
    }

    /// Ready with what the core has to know, or when the connection has ended.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Result<Input, QuicConnectionEnd>> {
        match &mut self.state {
            State::Opening(opening) => {
                let stream = ready!(opening.as_mut().poll(cx))?;
                let stopped: Task<Stopped> = Box::pin(stream.stopped());
                self.state = State::Open(Open { stream, stopped: Some(stopped), writing: None });
                Poll::Ready(Ok(Input::Opened(self.name)))
            }
            State::Open(open) => match open.poll_writing(cx) {
                Poll::Ready(written) => Poll::Ready(written.map(|()| Input::Written(self.name))),
                Poll::Pending => open.poll_stopped(cx).map_ok(|()| Input::Stopped(self.name)),
            },
        }
    }
}

impl<S: QuicSendStream> Open<S> {
    /// Ready when a write is complete.
    fn poll_writing(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), QuicConnectionEnd>> {
        let Some(Write { data, fin }) = self.writing.as_deref_mut() else { return Poll::Pending };
        let mut written = ready!(poll_write_all(&mut self.stream, cx, slice::from_mut(data)));
        if *fin && written.is_ok() {
            written = self.stream.finish();
        }
        self.writing = None;
        match written {
            Ok(()) => Poll::Ready(Ok(())),
            Err(QuicStreamEnd::Connection(end)) => Poll::Ready(Err(end)),
            // If the stream was stopped, the core learns it from there.
            Err(_) => Poll::Pending,
        }
    }

    /// Ready when the peer has asked to stop.
    fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), QuicConnectionEnd>> {
        let Some(stopped) = &mut self.stopped else { return Poll::Pending };
        let reason = ready!(stopped.as_mut().poll(cx));
        self.stopped = None;
        match reason {
            Ok(Some(_)) => Poll::Ready(Ok(())),
            Err(QuicStreamEnd::Connection(end)) => Poll::Ready(Err(end)),
            Ok(None) | Err(_) => Poll::Pending,
        }
    }
}

/// Reads the next bytes of a stream of the peer.
fn poll_read(
    stream: &mut impl QuicRecvStream,
    cx: &mut Context<'_>,
) -> Poll<Result<Input, QuicConnectionEnd>> {
    let id = StreamId(stream.id());
    let mut chunk = [Bytes::new()];
    let read = ready!(stream.poll_read(cx, &mut chunk));
    let [data] = chunk;
    Poll::Ready(match read {
        Ok(Some(_)) => Ok(Input::Stream { stream: id, data, fin: false }),
        Ok(None) => Ok(Input::Stream { stream: id, data, fin: true }),
        Err(QuicStreamEnd::Connection(end)) => Err(end),
        Err(_) => Ok(Input::Reset { stream: id }),
    })
}
