//! A request and its responses (RFC 9114 §4.1): what arrives on their stream, decoded and checked.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::io::{Event, Failure, Output};
use super::{Checked, WholeConnection};
use crate::code::ErrorCode;
use crate::connection::{self, Section};
use crate::fault::{Fault, StreamFault};
use crate::message::{self, Content, RequestMethod, RequestOptions};
use crate::misuse::Misuse;
use crate::qpack::FieldLine;
use crate::request::{Received, RequestReceiver, RequestSender};
use crate::stream::{Role, StreamId};

/// Both halves of a request's stream.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) receiver: RequestReceiver,
    pub(super) sender: RequestSender,
    pub(super) method: RequestMethod,
    /// Whether nothing more is received, and nothing more is sent.
    pub(super) is_received: bool,
    pub(super) is_sent: bool,
    /// Whether the field section that is being decoded is the trailers.
    decodes_trailers: bool,
}

impl Exchange {
    pub(super) fn new(role: Role, max_section: u64, method: RequestMethod) -> Self {
        Self {
            receiver: RequestReceiver::new(role, max_section),
            sender: RequestSender::default(),
            method,
            is_received: false,
            is_sent: false,
            decodes_trailers: false,
        }
    }

    pub(super) fn finish(&mut self) -> Result<(), Misuse> {
        self.sender.finish()?;
        self.is_sent = true;
        Ok(())
    }

    /// Checks that a message may end with a head that is followed by this.
    pub(super) const fn check_end_after(&self, content: Content) -> Result<(), Misuse> {
        match content {
            Content::Interim => Err(Misuse::OutOfOrder),
            Content::Length(announced) if announced > 0 => {
                Err(Misuse::ContentLength { announced, sent: 0 })
            }
            _ => Ok(()),
        }
    }
}

impl WholeConnection {
    /// Reads what has arrived on a request's stream until it needs more.
    pub(super) fn read(&mut self, now: Duration, stream: StreamId) {
        while let Some(exchange) = self.exchanges.get_mut(&stream) {
            let Some(received) = exchange.receiver.poll_output() else { return };
            match received {
                Received::Data(data) => self.push_event(Event::Data { stream, data }),
                Received::Head(section) => self.decode(now, stream, section, false),
                Received::Trailers(section) => self.decode(now, stream, section, true),
                Received::End => {
                    exchange.is_received = true;
                    self.push_event(Event::End { stream });
                    self.remove_if_over(stream);
                }
                Received::Failed(fault) => self.fail(stream, fault),
            }
        }
    }

    fn decode(&mut self, now: Duration, stream: StreamId, section: Bytes, is_trailers: bool) {
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.decodes_trailers = is_trailers;
        }
        match self.connection.decode_section(now, stream, section) {
            Ok(Section::Ready(fields)) => self.handle_fields(stream, fields),
            Ok(Section::Blocked) => {}
            Err(fault) => self.fail(stream, fault),
        }
    }

    pub(super) fn handle_event(&mut self, now: Duration, event: connection::Event) {
        match event {
            connection::Event::Section { stream, fields } => {
                match fields {
                    Ok(fields) => self.handle_fields(stream, fields),
                    Err(fault) => self.fail(stream, fault.into()),
                }
                self.read(now, stream);
            }
            connection::Event::GoAway { id } => {
                self.push_event(Event::Connection(event));
                if self.role == Role::Client {
                    let unprocessed = self.exchanges.split_off(&StreamId(id));
                    for (stream, exchange) in unprocessed {
                        self.abort(stream, &exchange, ErrorCode::RequestCancelled);
                        let failure = Failure::Unprocessed;
                        self.push_event(Event::Failed { stream, failure });
                    }
                }
            }
            event => self.push_event(Event::Connection(event)),
        }
    }

    /// Checks the fields of a head or of trailers and passes them on.
    fn handle_fields(&mut self, stream: StreamId, fields: Vec<FieldLine>) {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        let pairs = || fields.iter().map(|line| (&line.name[..], &line.value[..]));
        if exchange.decodes_trailers {
            match message::check_trailers(pairs()) {
                Ok(()) => {
                    exchange.receiver.accept_trailers();
                    self.push_event(Event::Trailers { stream, fields });
                }
                Err(fault) => self.fail(stream, fault.into()),
            }
            return;
        }
        let checked: Checked = match self.role {
            Role::Client => message::check_response(pairs(), exchange.method)
                .map(|head| head.content)
                .map_err(Fault::from),
            Role::Server => {
                let extended_connect = self.extended_connect;
                let options = RequestOptions { extended_connect };
                message::check_request(pairs(), options).map_err(Fault::from).map(|head| {
                    exchange.method = RequestMethod::from_name(head.method);
                    head.content
                })
            }
        };
        match checked {
            Ok(content) => {
                exchange.receiver.accept_head(content);
                self.push_event(Event::Head { stream, fields, content });
            }
            Err(fault) => self.fail(stream, fault),
        }
    }

    /// Ends a request, or the connection, because of a violation.
    fn fail(&mut self, stream: StreamId, fault: Fault) {
        match fault {
            Fault::Connection(fault) => self.connection.close(fault),
            Fault::Stream(fault) => self.fail_stream(stream, fault),
        }
    }

    fn fail_stream(&mut self, stream: StreamId, fault: StreamFault) {
        if let Some(exchange) = self.exchanges.remove(&stream) {
            self.abort(stream, &exchange, fault.code());
            self.push_event(Event::Failed { stream, failure: Failure::Fault(fault) });
        }
    }

    /// Gives up both directions of a stream, as far as they have not ended.
    pub(super) fn abort(&mut self, stream: StreamId, exchange: &Exchange, code: ErrorCode) {
        if !exchange.is_received {
            self.connection.cancel(stream);
            self.outputs.push_back(Output::StopSending { stream, code });
        }
        if !exchange.is_sent {
            self.outputs.push_back(Output::Reset { stream, code });
        }
    }

    pub(super) fn remove_if_over(&mut self, stream: StreamId) {
        let exchange = self.exchanges.get(&stream);
        if exchange.is_some_and(|exchange| exchange.is_received && exchange.is_sent) {
            self.exchanges.remove(&stream);
        }
    }
}
