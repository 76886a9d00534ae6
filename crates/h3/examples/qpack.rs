//! An encoder and a decoder that other programs drive over standard input and output: `interop/run
//! --only qpack` compares them with other implementations.
//!
//! Each line is a command, and has one line as its answer. Octets are in hexadecimal; a field is
//! `NAME:VALUE` or, if it must not be indexed, `NAME:VALUE!`.
//!
//! | command | answer |
//! | --- | --- |
//! | `limits CAPACITY BLOCKED` of the peer | `ok` |
//! | `encode STREAM FIELD…` | `section OCTETS INSTRUCTIONS` |
//! | `encoder-stream OCTETS` | `ok`, then `STREAM=FIELD,…` for each section that was waiting |
//! | `decode STREAM OCTETS` | `blocked`, or `fields` and the fields |
//! | `decoder-stream OCTETS` | `ok` |
//! | `cancel STREAM` | `ok` |
//! | `acknowledge` | `instructions OCTETS` |
//!
//! The arguments are what both ends allow: the capacity of the dynamic table in octets, and the number
//! of blocked streams. A fault is answered with `fault CODE: TEXT`.
#![allow(clippy::disallowed_methods, reason = "a program, not a core: it has arguments")]

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

use bytes::Bytes;
use eyas_h3::qpack::{
    Decoded, Decoder, DecoderSetup, Encoder, EncoderSetup, FieldLine, QpackFault, Sensitivity,
};

/// Why a line has no answer.
enum Failure {
    Fault(QpackFault),
    Misuse(String),
}

impl From<QpackFault> for Failure {
    fn from(fault: QpackFault) -> Self {
        Self::Fault(fault)
    }
}

struct Ends {
    encoder: Encoder,
    decoder: Decoder,
}

fn main() -> io::Result<()> {
    let arguments: Vec<u64> = std::env::args().skip(1).flat_map(|word| word.parse()).collect();
    let [max_capacity, max_blocked_streams] = arguments[..] else {
        return Err(io::Error::other("usage: qpack CAPACITY BLOCKED"));
    };
    let setup = EncoderSetup { max_capacity, max_blocked_streams };
    let limits = DecoderSetup { max_capacity, max_blocked_streams, ..DecoderSetup::default() };
    let mut ends = Ends { encoder: Encoder::new(setup), decoder: Decoder::new(limits) };
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        match ends.answer(&line) {
            Ok(answer) => writeln!(out, "{}", answer.trim_end())?,
            Err(Failure::Fault(fault)) => {
                writeln!(out, "fault {:#x}: {fault}", fault.code().unwrap_or_default())?;
            }
            Err(Failure::Misuse(line)) => {
                return Err(io::Error::other(format!("not a command: {line}")));
            }
        }
        out.flush()?;
    }
    Ok(())
}

impl Ends {
    fn answer(&mut self, line: &str) -> Result<String, Failure> {
        let misuse = || Failure::Misuse(line.to_owned());
        let mut words = line.split(' ');
        let command = words.next().unwrap_or_default();
        let octets = |word: Option<&str>| octets(word.unwrap_or_default()).ok_or_else(misuse);
        let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or_else(misuse);
        match command {
            "limits" => {
                self.encoder.set_peer_limits(number()?, number()?)?;
                Ok("ok".to_owned())
            }
            "encode" => {
                let stream = number()?;
                let fields: Option<Vec<FieldLine>> = words.map(field).collect();
                let fields = fields.ok_or_else(misuse)?;
                let mut section = Vec::new();
                self.encoder.encode(stream, fields.iter().map(FieldLine::as_parts), &mut section);
                let instructions = self.encoder.take_instructions();
                Ok(format!("section {} {}", hex(&section), hex(&instructions)))
            }
            "encoder-stream" => {
                self.decoder.handle_encoder_stream(&octets(words.next())?)?;
                let mut answer = "ok".to_owned();
                while let Some((stream, fields)) = self.decoder.unblocked() {
                    let fields: Vec<String> = fields?.iter().map(text).collect();
                    let _ = write!(answer, " {stream}={}", fields.join(","));
                }
                Ok(answer)
            }
            "decode" => {
                let stream = number()?;
                Ok(match self.decoder.decode(stream, octets(words.next())?)? {
                    Decoded::Blocked => "blocked".to_owned(),
                    Decoded::Ready(fields) => {
                        let fields: Vec<String> = fields.iter().map(text).collect();
                        format!("fields {}", fields.join(" "))
                    }
                })
            }
            "decoder-stream" => {
                self.encoder.handle_decoder_stream(&octets(words.next())?)?;
                Ok("ok".to_owned())
            }
            "cancel" => {
                self.decoder.cancel(number()?);
                Ok("ok".to_owned())
            }
            "acknowledge" => Ok(format!("instructions {}", hex(&self.decoder.take_instructions()))),
            _ => Err(misuse()),
        }
    }
}

fn text(field: &FieldLine) -> String {
    let (_, _, sensitivity) = field.as_parts();
    let mark = if sensitivity == Sensitivity::Sensitive { "!" } else { "" };
    format!("{}:{}{mark}", hex(&field.name), hex(&field.value))
}

fn field(word: &str) -> Option<FieldLine> {
    let (name, value) = word.split_once(':')?;
    let (value, sensitive) = value.strip_suffix('!').map_or((value, false), |value| (value, true));
    Some(FieldLine { name: octets(name)?, value: octets(value)?, sensitive })
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn octets(digits: &str) -> Option<Bytes> {
    let pair = |index| u8::from_str_radix(digits.get(index..index + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}
