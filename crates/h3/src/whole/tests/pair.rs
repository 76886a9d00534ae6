//! Two ends that talk: what one sends arrives at the other, however the transport cuts the streams and
//! orders them among each other.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use proptest::prelude::*;

use super::wire::{NOW, config};
use crate::connection::{ConnectionConfig, ConnectionSetup, Shutdown};
use crate::message::Content;
use crate::qpack::{FieldLine, Sensitivity};
use crate::stream::{Role, StreamId};
use crate::whole::{Event, Failure, Input, Output, WholeConnection};

/// A message to send.
#[derive(Clone, Debug, Default)]
struct Message {
    interim_responses: usize,
    fields: Vec<(String, String)>,
    content: Vec<Vec<u8>>,
    has_length: bool,
    trailers: Option<Vec<(String, String)>>,
}

/// What has arrived of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Arrived {
    interim_responses: usize,
    fields: Vec<(String, String)>,
    content: Vec<u8>,
    trailers: Option<Vec<(String, String)>>,
    has_ended: bool,
}

impl Message {
    fn head(&self, pseudo: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut head: Vec<_> = pseudo.iter().map(own).collect();
        head.extend(self.fields.clone());
        if self.has_length {
            head.push(("content-length".into(), self.content.concat().len().to_string()));
        }
        head
    }

    fn arrived(&self, pseudo: &[(&str, &str)]) -> Arrived {
        Arrived {
            interim_responses: self.interim_responses,
            fields: self.head(pseudo),
            content: self.content.concat(),
            trailers: self.trailers.clone(),
            has_ended: true,
        }
    }
}

fn lines(fields: &[(String, String)]) -> impl Iterator<Item = (&[u8], &[u8], Sensitivity)> + Clone {
    fields.iter().map(|field| (field.0.as_bytes(), field.1.as_bytes(), Sensitivity::Ordinary))
}

const REQUEST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "https"), (":authority", "a.test"), (":path", "/")];
const RESPONSE: [(&str, &str); 1] = [(":status", "200")];

/// One end, the bytes that are on their way to it, and what has arrived.
struct End {
    connection: WholeConnection,
    role: Role,
    on_the_way: BTreeMap<StreamId, VecDeque<(Bytes, bool)>>,
    arrived: BTreeMap<StreamId, Arrived>,
}

impl End {
    fn new(role: Role, config: ConnectionConfig) -> Self {
        let setup = ConnectionSetup { role, config, seed: 3, remembered: None };
        let connection = WholeConnection::new(setup, NOW);
        Self { connection, role, on_the_way: BTreeMap::new(), arrived: BTreeMap::new() }
    }

    fn send_content(&mut self, stream: StreamId, message: &Message) {
        for part in &message.content {
            let part = Bytes::copy_from_slice(part);
            self.connection.send_data(stream, part, false).expect("content is in order");
        }
        match &message.trailers {
            Some(trailers) => self.connection.send_trailers(stream, lines(trailers)),
            None => self.connection.send_data(stream, Bytes::new(), true),
        }
        .expect("the end is in order");
    }

    /// Takes the outputs; bytes go on their way to the other end.
    fn drain(&mut self, other: &mut Self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            match self.connection.poll_output(NOW) {
                Output::Write { stream, data, fin } => {
                    other.on_the_way.entry(stream).or_default().push_back((data, fin));
                }
                Output::Event(event) => {
                    self.note(&event);
                    events.push(event);
                }
                Output::Timeout(_) => return events,
                Output::Open(_) | Output::StopSending { .. } => {}
                output => panic!("{:?}: {output:?}", self.role),
            }
        }
    }

    fn note(&mut self, event: &Event) {
        let text = |lines: &[FieldLine]| -> Vec<(String, String)> {
            let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).expect("it was text");
            lines.iter().map(|line| (text(&line.name), text(&line.value))).collect()
        };
        match event {
            Event::Head { stream, fields, content } => {
                let arrived = self.arrived.entry(*stream).or_default();
                match content {
                    Content::Interim => arrived.interim_responses += 1,
                    _ => arrived.fields = text(fields),
                }
            }
            Event::Data { stream, data } => {
                self.arrived.entry(*stream).or_default().content.extend_from_slice(data);
            }
            Event::Trailers { stream, fields } => {
                self.arrived.entry(*stream).or_default().trailers = Some(text(fields));
            }
            Event::End { stream } => {
                let arrived = self.arrived.entry(*stream).or_default();
                assert!(!core::mem::replace(&mut arrived.has_ended, true), "it ends once");
            }
            Event::Failed { .. } => panic!("{event:?}"),
            Event::Connection(_) => {}
        }
    }

    /// Passes on a part of a stream that these numbers choose; returns whether there was any.
    fn arrive(&mut self, choice: u64, size: u64) -> bool {
        let count = self.on_the_way.len() as u64;
        let Some((&stream, queue)) =
            self.on_the_way.iter_mut().nth((choice % count.max(1)) as usize)
        else {
            return false;
        };
        let (mut data, fin) = queue.pop_front().expect("empty queues are removed");
        let cut = (size as usize % 40 + 1).min(data.len());
        let part = data.split_to(cut);
        let fin = if data.is_empty() {
            fin
        } else {
            queue.push_front((data, fin));
            false
        };
        if queue.is_empty() {
            self.on_the_way.remove(&stream);
        }
        self.connection.handle_input(NOW, Input::Stream { stream, data: part, fin });
        true
    }
}

/// Numbers that a schedule is made of.
struct Draws(u64);

impl Draws {
    fn draw(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

fn fields() -> impl Strategy<Value = Vec<(String, String)>> {
    let name =
        proptest::sample::select(vec!["accept", "cookie", "x-a", "x-b", "user-agent", "age"]);
    let value = prop_oneof!["[!-~]{0,12}", Just("a value that repeats".to_owned())];
    proptest::collection::vec((name.prop_map(str::to_owned), value), 0..6)
}

fn message() -> impl Strategy<Value = Message> {
    let content = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 0..4);
    let parts = (0..3_usize, fields(), content, any::<bool>(), proptest::option::of(fields()));
    parts.prop_map(|(interim_responses, fields, content, has_length, trailers)| Message {
        interim_responses,
        fields,
        content,
        has_length,
        trailers,
    })
}

/// Sends all requests at once; the server responds to each as soon as it is complete.
fn talk(config: ConnectionConfig, exchanges: &[(Message, Message)], schedule: u64) -> (End, End) {
    let mut client = End::new(Role::Client, config);
    let mut server = End::new(Role::Server, config);
    let mut draws = Draws(schedule);
    for (request, _) in exchanges {
        let head = request.head(&REQUEST);
        let stream = client.connection.send_request(lines(&head), false).expect("a valid request");
        client.send_content(stream, request);
    }
    loop {
        client.drain(&mut server);
        for event in server.drain(&mut client) {
            if let Event::End { stream } = event {
                respond(&mut server, stream, &exchanges[(stream.0 / 4) as usize].1);
            }
        }
        server.drain(&mut client);
        let first = draws.draw().is_multiple_of(2);
        let (near, far) =
            if first { (&mut client, &mut server) } else { (&mut server, &mut client) };
        if !near.arrive(draws.draw(), draws.draw()) && !far.arrive(draws.draw(), draws.draw()) {
            return (client, server);
        }
    }
}

fn respond(server: &mut End, stream: StreamId, response: &Message) {
    let interim = [(":status".to_owned(), "103".to_owned())];
    for _ in 0..response.interim_responses {
        server
            .connection
            .send_response(stream, lines(&interim), false)
            .expect("an interim response");
    }
    let head = response.head(&RESPONSE);
    server.connection.send_response(stream, lines(&head), false).expect("the response");
    server.send_content(stream, response);
}

proptest! {
    #[test]
    fn what_is_sent_arrives(
        exchanges in proptest::collection::vec(
            (message().prop_map(|message| Message { interim_responses: 0, ..message }), message()),
            1..6,
        ),
        schedule: u64,
        blocked in proptest::sample::select(vec![0, 16]),
        capacity in proptest::sample::select(vec![0, 200, 4096]),
        grease: bool,
    ) {
        let config = ConnectionConfig {
            max_field_section_size: 64 * 1024,
            qpack_encoder_blocked_streams: blocked,
            qpack_max_table_capacity: capacity,
            grease,
            ..config()
        };
        let (client, server) = talk(config, &exchanges, schedule);
        for (index, (request, response)) in exchanges.iter().enumerate() {
            let stream = StreamId::from_request_index(index as u64);
            prop_assert_eq!(server.arrived.get(&stream), Some(&request.arrived(&REQUEST)));
            prop_assert_eq!(client.arrived.get(&stream), Some(&response.arrived(&RESPONSE)));
        }
        prop_assert_eq!(client.connection.open_requests(), 0);
        prop_assert_eq!(server.connection.open_requests(), 0);
    }
}

//= rfc9114 §5.2
//# no request after GOAWAY; a server announces it, then refuses
#[test]
fn a_server_goes_away_in_two_steps() {
    let mut client = End::new(Role::Client, config());
    let mut server = End::new(Role::Server, config());
    let carry = |from: &mut End, to: &mut End| {
        from.connection.handle_input(NOW, Input::Tick);
        let mut outputs = Vec::new();
        loop {
            match from.connection.poll_output(NOW) {
                Output::Write { stream, data, fin } => {
                    to.connection.handle_input(NOW, Input::Stream { stream, data, fin });
                }
                Output::Reset { stream, code } => {
                    let code = code.value();
                    to.connection.handle_input(NOW, Input::Reset { stream, code });
                }
                Output::Timeout(_) => return outputs,
                output => outputs.push(output),
            }
        }
    };
    let head = Message::default().head(&REQUEST);
    let request = |end: &mut End| end.connection.send_request(lines(&head), true);
    let first = request(&mut client).expect("nothing forbids it");
    carry(&mut client, &mut server);
    server.connection.shut_down(Shutdown::Announce);
    let second = request(&mut client).expect("the announcement has not arrived");
    carry(&mut client, &mut server);
    let outputs = carry(&mut server, &mut client);
    assert!(outputs.contains(&Output::Event(Event::End { stream: second })), "{outputs:?}");
    let outputs = carry(&mut client, &mut server);
    let goaway = |id| Output::Event(Event::Connection(crate::connection::Event::GoAway { id }));
    assert!(outputs.contains(&goaway(StreamId::MAX_REQUEST.0)), "{outputs:?}");
    assert_eq!(request(&mut client), Err(crate::Misuse::GoingAway));
    assert_eq!(client.connection.open_requests(), 2, "what was sent goes on");

    server.connection.shut_down(Shutdown::Refuse);
    server.connection.shut_down(Shutdown::Refuse);
    carry(&mut server, &mut client);
    let outputs = carry(&mut client, &mut server);
    let after_second = StreamId(second.0 + 4);
    assert_eq!(outputs, [goaway(after_second.0)], "once");
    assert_eq!((first, client.connection.open_requests()), (StreamId(0), 2));
}

//= rfc9114 §4.1.1
//# requests that were not processed are rejected with H3_REQUEST_REJECTED
#[test]
fn requests_beyond_goaway_are_rejected_and_reported_as_unprocessed() {
    let mut server = super::wire::begin(Role::Server, config(), &[]);
    server.shut_down(Shutdown::Refuse);
    let steps = [super::wire::Step::Send(0, super::wire::get())];
    let (_, outputs) = super::wire::react(&mut server, &steps, false);
    let (stream, code) = (StreamId(0), crate::ErrorCode::RequestRejected);
    assert!(outputs.contains(&Output::Reset { stream, code }), "{outputs:?}");
    assert!(outputs.contains(&Output::StopSending { stream, code }), "{outputs:?}");

    let mut client = super::wire::begin(Role::Client, config(), &["GET", "GET"]);
    let goaway = super::wire::control(&[super::wire::frame(super::wire::GOAWAY, b"\x04")]);
    let (_, outputs) =
        super::wire::react(&mut client, &[super::wire::Step::Send(3, goaway)], false);
    let stream = StreamId(4);
    let failed = Event::Failed { stream, failure: Failure::Unprocessed };
    assert!(outputs.contains(&Output::Event(failed)), "{outputs:?}");
    assert_eq!(client.open_requests(), 1);
}
