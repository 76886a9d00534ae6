//! Arbitrary octets as a request's stream of HTTP/3, at either end: what is read does not depend on how the
//! transport split it, a message that is accepted has only valid fields and the announced content, and
//! capsules in its content are bounded.
#![no_main]

use bytes::Bytes;
use eyas_h3::capsule::CapsuleReader;
use eyas_h3::fault::{Fault, StreamFault};
use eyas_h3::message::{self, Content, RequestMethod, RequestOptions};
use eyas_h3::qpack::{Decoded, Decoder, DecoderSetup, FieldLine};
use eyas_h3::request::{Received, RequestReceiver};
use eyas_h3::stream::Role;
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

/// The largest field section, and the largest value of a capsule, in bytes.
const LIMIT: u64 = 500;

static REACH: Reach<10> = Reach::new([
    "a complete request",
    "a complete response",
    "an interim response",
    "content",
    "trailers",
    "a tunnel",
    "a capsule",
    "a malformed message",
    "a fault of a stream",
    "a fault of the connection",
]);

/// What came of a stream.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    heads: Vec<(Vec<FieldLine>, Content)>,
    content: Vec<u8>,
    trailers: Option<Vec<FieldLine>>,
    end: Option<Result<(), Fault>>,
    capsules: Vec<usize>,
}

struct Reader {
    role: Role,
    method: RequestMethod,
    receiver: RequestReceiver,
    decoder: Decoder,
    capsules: Option<CapsuleReader>,
    outcome: Outcome,
}

impl Reader {
    fn new(role: Role, method: RequestMethod) -> Self {
        let setup = DecoderSetup { max_section_size: LIMIT, ..DecoderSetup::default() };
        Self {
            role,
            method,
            receiver: RequestReceiver::new(role, LIMIT),
            decoder: Decoder::new(setup),
            capsules: None,
            outcome: Outcome::default(),
        }
    }

    /// Reads the next bytes.
    fn read(&mut self, data: Bytes, fin: bool) {
        self.receiver.handle_input(data, fin);
        while self.outcome.end.is_none()
            && let Some(received) = self.receiver.poll_output()
        {
            if let Err(fault) = self.handle(received) {
                self.outcome.end = Some(Err(fault));
            }
        }
    }

    fn handle(&mut self, received: Received) -> Result<(), Fault> {
        match received {
            Received::Head(section) => {
                let Some(fields) = self.decode(section)? else { return Ok(()) };
                let content = self.check(&fields)?;
                self.receiver.accept_head(content);
                if content == Content::Tunnel {
                    self.capsules = Some(CapsuleReader::new(LIMIT as usize));
                }
                self.outcome.heads.push((fields, content));
            }
            Received::Trailers(section) => {
                let Some(fields) = self.decode(section)? else { return Ok(()) };
                message::check_trailers(pairs(&fields))?;
                self.receiver.accept_trailers();
                self.outcome.trailers = Some(fields);
            }
            Received::Data(mut data) => {
                assert!(!data.is_empty());
                let Some(reader) = &mut self.capsules else {
                    self.outcome.content.extend_from_slice(&data);
                    return Ok(());
                };
                while let Some(capsule) = reader.read(&mut data, |kind| kind < 4)? {
                    self.outcome.capsules.push(capsule.value.len());
                }
            }
            Received::End => self.outcome.end = Some(Ok(())),
            Received::Failed(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Returns the fields of a section, `None` if it waits for a table that never comes.
    fn decode(&mut self, section: Bytes) -> Result<Option<Vec<FieldLine>>, Fault> {
        match self.decoder.decode(0, section) {
            Ok(Decoded::Ready(fields)) => Ok(Some(fields)),
            Ok(Decoded::Blocked) => Ok(None),
            Err(_) => Err(StreamFault::FieldSectionTooLarge { limit: LIMIT }.into()),
        }
    }

    fn check(&mut self, fields: &[FieldLine]) -> Result<Content, Fault> {
        let options = RequestOptions { extended_connect: true };
        Ok(match self.role {
            Role::Server => message::check_request(pairs(fields), options)?.content,
            Role::Client => message::check_response(pairs(fields), self.method)?.content,
        })
    }
}

fn pairs(fields: &[FieldLine]) -> impl Iterator<Item = (&[u8], &[u8])> {
    fields.iter().map(|line| (&line.name[..], &line.value[..]))
}

fn read(role: Role, method: RequestMethod, stream: &[u8], cut: usize) -> Outcome {
    let mut reader = Reader::new(role, method);
    for part in stream.chunks(cut.max(1)) {
        reader.read(Bytes::copy_from_slice(part), false);
    }
    reader.read(Bytes::new(), true);
    reader.outcome
}

/// Checks what was accepted, and counts what was reached.
fn examine(role: Role, outcome: &Outcome) {
    for (fields, content) in &outcome.heads {
        for line in fields {
            assert!(!line.value.iter().any(|byte| b"\r\n\0".contains(byte)));
            assert!(!line.name.iter().any(u8::is_ascii_uppercase));
        }
        match content {
            Content::Interim => REACH.hit("an interim response"),
            Content::Tunnel => REACH.hit("a tunnel"),
            Content::Length(length) if outcome.end == Some(Ok(())) => {
                assert_eq!(*length, outcome.content.len() as u64);
            }
            Content::Empty => assert!(outcome.content.is_empty()),
            Content::Length(_) | Content::Any => {}
        }
    }
    assert!(outcome.capsules.iter().all(|length| *length as u64 <= LIMIT));
    for (is_reached, name) in [
        (!outcome.content.is_empty(), "content"),
        (outcome.trailers.is_some(), "trailers"),
        (!outcome.capsules.is_empty(), "a capsule"),
    ] {
        if is_reached {
            REACH.hit(name);
        }
    }
    match (&outcome.end, role) {
        (Some(Ok(())), Role::Server) => REACH.hit("a complete request"),
        (Some(Ok(())), Role::Client) => REACH.hit("a complete response"),
        (Some(Err(Fault::Stream(StreamFault::Message(_)))), _) => REACH.hit("a malformed message"),
        (Some(Err(Fault::Stream(_))), _) => REACH.hit("a fault of a stream"),
        (Some(Err(Fault::Connection(_))), _) => REACH.hit("a fault of the connection"),
        (None, _) => {}
    }
    if let Some(Err(fault)) = &outcome.end {
        assert_ne!(fault.code(), eyas_h3::ErrorCode::NoError);
    }
}

fuzz_target!(|input: &[u8]| {
    REACH.begin();
    let &[kind, cut, ref stream @ ..] = input else { return };
    let role = if kind & 1 == 0 { Role::Server } else { Role::Client };
    let method = match kind >> 1 & 3 {
        0 => RequestMethod::Head,
        1 => RequestMethod::Connect,
        _ => RequestMethod::Other,
    };
    let whole = read(role, method, stream, stream.len());
    assert_eq!(whole, read(role, method, stream, usize::from(cut)));
    assert_eq!(whole, read(role, method, stream, 1));
    examine(role, &whole);
});
