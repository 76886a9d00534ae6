//! A workload for an instruction counter: `instructions CASE N` performs the operation of a case N
//! times.
//!
//! ```text
//! cargo bench -p eyas-h3 --bench instructions -- list
//! valgrind --tool=callgrind target/release/deps/instructions-… encode-again 1000
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "this is a program beside the core: it reads its arguments and prints"
)]

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;

use bytes::Bytes;
use eyas_h3::qpack::{
    Decoded, Decoder, DecoderSetup, Encoder, EncoderSetup, QpackFault, Sensitivity,
};

/// A request of a browser; [`path`] replaces the path.
const REQUEST: [(&str, &str); 14] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "www.example.com"),
    (":path", "/articles/2026/11/a-page-of-its-own?from=index"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-US,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("cookie", "session=0123456789abcdef0123456789abcdef; theme=dark"),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "same-origin"),
    ("priority", "u=0, i"),
];

/// The cases, with a description of one operation.
const CASES: [(&str, Case, &str); 5] = [
    (
        "encode-again",
        Case::Encode(Table::Dynamic),
        "a request whose fields are in the dynamic table",
    ),
    ("encode-static", Case::Encode(Table::Static), "a request with the static table alone"),
    (
        "decode-again",
        Case::Decode(Table::Dynamic),
        "a request whose fields are in the dynamic table",
    ),
    ("decode-static", Case::Decode(Table::Static), "a request with the static table alone"),
    ("first-request", Case::First, "both ends of a connection, and one request"),
];

#[derive(Clone, Copy)]
enum Case {
    Encode(Table),
    Decode(Table),
    First,
}

#[derive(Clone, Copy)]
enum Table {
    Dynamic,
    Static,
}

/// Both ends of a connection.
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
    section: Vec<u8>,
}

fn main() -> ExitCode {
    // `cargo bench` adds the argument `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] | ["list"] => {
            CASES.iter().for_each(|(name, ..)| println!("{name}"));
            Ok(())
        }
        [name, repetitions] => {
            let case = CASES.iter().find(|(known, ..)| known == name);
            let (Some((_, case, _)), Ok(repetitions)) = (case, repetitions.parse()) else {
                return usage();
            };
            run(*case, repetitions)
        }
        _ => return usage(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("instructions list\ninstructions CASE N");
    for (name, _, about) in CASES {
        eprintln!("  {name:14} {about}");
    }
    ExitCode::FAILURE
}

fn run(case: Case, repetitions: u64) -> Result<(), Box<dyn Error>> {
    match case {
        Case::Encode(table) => {
            let mut pair = Pair::after_two_requests(table)?;
            for stream in 2..2 + repetitions {
                pair.encode(stream);
                black_box(&pair.section);
                if let Table::Dynamic = table {
                    // Section Acknowledgment, with a stream of more than one octet.
                    let mut octets = vec![0x80];
                    write_stream(stream, &mut octets);
                    pair.encoder.handle_decoder_stream(&octets)?;
                }
            }
        }
        Case::Decode(table) => {
            let mut pair = Pair::after_two_requests(table)?;
            pair.encode(2);
            let section = Bytes::from(pair.section);
            for stream in 2..2 + repetitions {
                black_box(pair.decoder.decode(stream, section.clone())?);
                let _ = black_box(pair.decoder.take_instructions());
            }
        }
        Case::First => {
            for _ in 0..repetitions {
                let mut pair = Pair::new(Table::Dynamic)?;
                pair.exchange(0)?;
            }
        }
    }
    Ok(())
}

/// Returns the path of the request on a stream, which no other has.
fn path(stream: u64) -> [u8; 46] {
    let mut path = *b"/articles/2026/11/a-page-of-its-own?from=00000";
    let mut rest = stream;
    for digit in path.iter_mut().rev().take(5) {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    path
}

/// Appends a stream to an octet with a prefix of seven bits.
fn write_stream(stream: u64, octets: &mut Vec<u8>) {
    if stream < 127 {
        octets[0] |= stream as u8;
        return;
    }
    octets[0] |= 127;
    let mut rest = stream - 127;
    while rest >= 128 {
        octets.push(rest as u8 | 128);
        rest >>= 7;
    }
    octets.push(rest as u8);
}

impl Pair {
    fn new(table: Table) -> Result<Self, QpackFault> {
        let limits = DecoderSetup::default();
        let mut encoder = Encoder::new(match table {
            Table::Dynamic => EncoderSetup::default(),
            Table::Static => EncoderSetup::STATIC_ONLY,
        });
        encoder.set_peer_limits(limits.max_capacity, limits.max_blocked_streams)?;
        Ok(Self { encoder, decoder: Decoder::new(limits), section: Vec::new() })
    }

    fn after_two_requests(table: Table) -> Result<Self, Box<dyn Error>> {
        let mut pair = Self::new(table)?;
        pair.exchange(0)?;
        pair.exchange(1)?;
        Ok(pair)
    }

    fn encode(&mut self, stream: u64) {
        let path = path(stream);
        let fields = REQUEST.iter().map(|(name, value)| {
            let value = if *name == ":path" { &path } else { value.as_bytes() };
            (name.as_bytes(), value, Sensitivity::Ordinary)
        });
        self.section.clear();
        self.encoder.encode(stream, fields, &mut self.section);
    }

    fn exchange(&mut self, stream: u64) -> Result<(), Box<dyn Error>> {
        self.encode(stream);
        self.decoder.handle_encoder_stream(&self.encoder.take_instructions())?;
        let section = Bytes::copy_from_slice(&self.section);
        let Decoded::Ready(fields) = self.decoder.decode(stream, section)? else {
            return Err("a request is blocked".into());
        };
        if fields.len() != REQUEST.len() {
            return Err(format!("{} fields were decoded", fields.len()).into());
        }
        self.encoder.handle_decoder_stream(&self.decoder.take_instructions())?;
        Ok(())
    }
}
