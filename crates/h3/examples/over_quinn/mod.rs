//! A driver of [`WholeConnection`] over quinn: a task for each direction of each stream carries bytes between them.
//!
//! What is sent waits in queues without a bound until the peer takes it, which is fine for heads and small contents.
//! eyas-http shows a driver of the [parts](eyas_h3::request), which lets its user wait instead.

use std::collections::BTreeMap;
use std::error::Error;

use bytes::Bytes;
use eyas_h3::connection::{ConnectionConfig, ConnectionSetup};
use eyas_h3::whole::{Event, Input, Output, WholeConnection};
use eyas_h3::{ErrorCode, Role, StreamId};
use quinn::{ReadError, RecvStream, SendStream, VarInt, WriteError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// How much is read from a stream at once, and how many such pieces wait for the connection.
const PIECE: usize = 64 * 1024;
const PIECES: usize = 16;

pub(crate) struct H3OverQuinn {
    pub(crate) core: WholeConnection,
    quic: quinn::Connection,
    epoch: Instant,
    inputs: mpsc::Receiver<Input>,
    arrivals: mpsc::Sender<Input>,
    writers: BTreeMap<StreamId, mpsc::UnboundedSender<Outgoing>>,
    readers: BTreeMap<StreamId, oneshot::Sender<ErrorCode>>,
}

/// What the task that writes a stream has to do.
enum Outgoing {
    Data { data: Bytes, fin: bool },
    Reset(ErrorCode),
}

impl H3OverQuinn {
    pub(crate) fn new(quic: quinn::Connection, role: Role) -> Self {
        let config = ConnectionConfig::default();
        let setup =
            ConnectionSetup { role, config, seed: quic.stable_id() as u64, remembered: None };
        let core = WholeConnection::new(setup, std::time::Duration::ZERO);
        let (arrivals, inputs) = mpsc::channel(PIECES);
        let (writers, readers) = (BTreeMap::new(), BTreeMap::new());
        Self { core, quic, epoch: Instant::now(), inputs, arrivals, writers, readers }
    }

    /// Drives the connection until something happens that its user has to know.
    pub(crate) async fn next_event(&mut self) -> Result<Event, Failure> {
        loop {
            match self.core.poll_output(self.epoch.elapsed()) {
                Output::Event(event) => return Ok(event),
                Output::Close(fault) => {
                    let reason = fault.to_string();
                    self.quic.close(code(fault.code()), reason.as_bytes());
                    return Err(reason.into());
                }
                Output::Open(stream) if stream.is_unidirectional() => {
                    let send = self.quic.open_uni().await?;
                    self.write(stream, send);
                }
                Output::Open(stream) => {
                    let (send, recv) = self.quic.open_bi().await?;
                    self.write(stream, send);
                    self.read(recv);
                }
                Output::Write { stream, data, fin } => {
                    self.pass(stream, Outgoing::Data { data, fin });
                }
                Output::Reset { stream, code } => self.pass(stream, Outgoing::Reset(code)),
                Output::StopSending { stream, code } => {
                    if let Some(reader) = self.readers.remove(&stream) {
                        let _ = reader.send(code);
                    }
                }
                Output::Datagram(frame) => self.quic.send_datagram(frame)?,
                // This core asks for no time.
                Output::Timeout(_) => self.wait().await?,
            }
        }
    }

    /// Waits for something from the peer.
    async fn wait(&mut self) -> Result<(), Failure> {
        let input = tokio::select! {
            Some(input) = self.inputs.recv() => input,
            recv = self.quic.accept_uni() => {
                self.read(recv?);
                return Ok(());
            }
            streams = self.quic.accept_bi() => {
                let (send, recv) = streams?;
                self.write(id(recv.id()), send);
                self.read(recv);
                return Ok(());
            }
            frame = self.quic.read_datagram() => Input::Datagram(frame?),
        };
        let end = match input {
            Input::Stream { stream, fin: true, .. } | Input::Reset { stream, .. } => Some(stream),
            _ => None,
        };
        end.and_then(|stream| self.readers.remove(&stream));
        self.core.handle_input(self.epoch.elapsed(), input);
        Ok(())
    }

    fn pass(&mut self, stream: StreamId, outgoing: Outgoing) {
        let is_last = matches!(outgoing, Outgoing::Data { fin: true, .. } | Outgoing::Reset(_));
        if let Some(writer) = self.writers.get(&stream) {
            // The task has ended if the peer has stopped the stream.
            let _ = writer.send(outgoing);
        }
        if is_last {
            self.writers.remove(&stream);
        }
    }

    fn write(&mut self, stream: StreamId, mut send: SendStream) {
        let (writer, mut queue) = mpsc::unbounded_channel();
        self.writers.insert(stream, writer);
        let arrivals = self.arrivals.clone();
        tokio::spawn(async move {
            while let Some(outgoing) = queue.recv().await {
                let written = match outgoing {
                    Outgoing::Data { data, fin } => {
                        let written = send.write_chunk(data).await;
                        if fin {
                            let _ = send.finish();
                            return;
                        }
                        written
                    }
                    Outgoing::Reset(reason) => {
                        let _ = send.reset(code(reason));
                        return;
                    }
                };
                if let Err(error) = written {
                    if let WriteError::Stopped(code) = error {
                        let code = code.into_inner();
                        let _ = arrivals.send(Input::Stopped { stream, code }).await;
                    }
                    return;
                }
            }
            // Without its user: quinn would end the stream as if its message were complete.
            let _ = send.reset(code(ErrorCode::RequestCancelled));
        });
    }

    fn read(&mut self, mut recv: RecvStream) {
        let stream = id(recv.id());
        let (stopper, mut stop) = oneshot::channel();
        self.readers.insert(stream, stopper);
        let arrivals = self.arrivals.clone();
        tokio::spawn(async move {
            loop {
                let chunk = tokio::select! {
                    chunk = recv.read_chunk(PIECE, true) => chunk,
                    Ok(reason) = &mut stop => {
                        let _ = recv.stop(code(reason));
                        return;
                    }
                };
                let (data, fin) = match chunk {
                    Ok(Some(chunk)) => (chunk.bytes, false),
                    Ok(None) => (Bytes::new(), true),
                    Err(ReadError::Reset(code)) => {
                        let code = code.into_inner();
                        let _ = arrivals.send(Input::Reset { stream, code }).await;
                        return;
                    }
                    // Whoever waits for the connection learns it there.
                    Err(_) => return,
                };
                if arrivals.send(Input::Stream { stream, data, fin }).await.is_err() || fin {
                    return;
                }
            }
        });
    }
}

impl Drop for H3OverQuinn {
    /// Closes the connection; what has not arrived at the peer may be lost.
    fn drop(&mut self) {
        self.quic.close(code(ErrorCode::NoError), b"");
    }
}

fn id(stream: quinn::StreamId) -> StreamId {
    StreamId(VarInt::from(stream).into_inner())
}

fn code(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}
