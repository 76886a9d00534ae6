//! Tests of what a connection says, and of what holds over its lifetime. What a peer must not say is in
//! the tests of the whole.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::*;
use crate::code::ErrorCode as Code;
use crate::frame;
use crate::qpack::Sensitivity;

const NOW: Duration = Duration::ZERO;

fn connection(role: Role, config: ConnectionConfig) -> Connection {
    Connection::new(ConnectionSetup { role, config, seed: 11, remembered: None }, NOW)
}

fn quiet() -> ConnectionConfig {
    ConnectionConfig { grease: false, ..ConnectionConfig::default() }
}

/// Takes all outputs, as a transport that opens and sends at once.
fn drain(connection: &mut Connection) -> Vec<Output> {
    let mut outputs = Vec::new();
    loop {
        let output = connection.poll_output(NOW);
        match &output {
            Output::Timeout(_) => return outputs,
            Output::OpenUni(stream) => connection.handle_input(NOW, Input::Opened(*stream)),
            Output::Write { stream, .. } => connection.handle_input(NOW, Input::Written(*stream)),
            _ => {}
        }
        outputs.push(output);
    }
}

fn receive(connection: &mut Connection, stream: u64, data: &[u8]) -> Vec<Output> {
    let data = Bytes::copy_from_slice(data);
    let stream = StreamId(stream);
    connection.handle_input(NOW, Input::Stream { stream, data, fin: false });
    drain(connection)
}

/// A control stream with these settings.
fn settings(settings: &Settings) -> Vec<u8> {
    let mut payload = Vec::new();
    settings.write(None, &mut payload);
    let mut data = vec![0];
    frame::write(FrameType::Settings, &payload, &mut data);
    data
}

fn control_frames(outputs: &[Output]) -> Vec<u8> {
    let control = UniStream::Critical(CriticalStream::Control);
    let written = outputs.iter().filter_map(|output| match output {
        Output::Write { stream, data, .. } if *stream == control => Some(&data[..]),
        _ => None,
    });
    written.collect::<Vec<_>>().concat()
}

//= rfc9114 §6.2.1
//# this end's own begins so as well
#[test]
fn the_control_stream_is_opened_first_and_begins_with_settings() {
    let mut connection = connection(Role::Client, quiet());
    let critical = CriticalStream::ALL.map(UniStream::Critical);
    for stream in critical {
        assert_eq!(connection.poll_output(NOW), Output::OpenUni(stream));
    }
    assert_eq!(connection.poll_output(NOW), Output::Timeout(None), "nothing is written before");
    for (stream, expected) in critical.into_iter().zip([&b"\x00\x04"[..], b"\x02", b"\x03"]) {
        connection.handle_input(NOW, Input::Opened(stream));
        match connection.poll_output(NOW) {
            Output::Write { stream: other, data, fin: false } => {
                assert!(other == stream && data.starts_with(expected), "{stream:?}: {data:?}");
            }
            output => panic!("{output:?}"),
        }
    }
}

//= rfc9114 §6.2.3, §7.2.8
//# reserved types are sent, and ignored
#[test]
fn reserved_numbers_come_from_the_seed_and_are_ignored() {
    let mut client = connection(Role::Client, ConnectionConfig::default());
    let outputs = drain(&mut client);
    assert_eq!(outputs, drain(&mut connection(Role::Client, ConnectionConfig::default())));
    let reserved: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Write { stream: UniStream::Reserved, data, fin: true } => Some(data),
            _ => None,
        })
        .collect();
    let [data] = reserved[..] else { panic!("{outputs:?}") };
    let (kind, _) = varint::parse(data).expect("it begins with its type");
    assert!(crate::stream::is_reserved(kind), "{kind:#x}");

    let mut server = connection(Role::Server, quiet());
    drain(&mut server);
    for (index, stream) in
        [UniStream::Critical(CriticalStream::Control), UniStream::Reserved].into_iter().enumerate()
    {
        for output in &outputs {
            if let Output::Write { stream: other, data, .. } = output
                && *other == stream
            {
                for output in receive(&mut server, 2 + 4 * index as u64, data) {
                    assert!(!matches!(output, Output::Close(_)), "{output:?}");
                }
            }
        }
    }
    assert!(server.peer_settings().is_some());
}

//= rfc9114 §7.2.4.2
//# settings of the accepted 0-RTT are not reduced and not omitted, else H3_SETTINGS_ERROR
#[test]
fn settings_after_accepted_early_data_keep_what_was_remembered() {
    let remembered = Settings {
        max_field_section_size: Some(1000),
        qpack_max_table_capacity: 100,
        qpack_blocked_streams: 4,
        extended_connect: true,
        datagrams: true,
    };
    let reduced = |change: fn(&mut Settings)| {
        let mut settings = remembered;
        change(&mut settings);
        settings
    };
    for (new, expected) in [
        (remembered, None),
        (reduced(|new| new.max_field_section_size = Some(1001)), None),
        (reduced(|new| new.max_field_section_size = None), Some(Code::SettingsError)),
        (reduced(|new| new.qpack_blocked_streams = 5), None),
        (reduced(|new| new.max_field_section_size = Some(999)), Some(Code::SettingsError)),
        (reduced(|new| new.qpack_blocked_streams = 3), Some(Code::SettingsError)),
        (reduced(|new| new.extended_connect = false), Some(Code::SettingsError)),
        (reduced(|new| new.datagrams = false), Some(Code::SettingsError)),
        // RFC 9204 §3.2.3 has a code of its own.
        (reduced(|new| new.qpack_max_table_capacity = 0), Some(Code::QpackDecoderStreamError)),
        (reduced(|new| new.qpack_max_table_capacity = 101), Some(Code::QpackDecoderStreamError)),
    ] {
        let remembered = Some(remembered);
        let setup = ConnectionSetup { role: Role::Client, config: quiet(), seed: 0, remembered };
        let mut client = Connection::new(setup, NOW);
        assert_eq!(client.peer_settings(), remembered.as_ref());
        let outputs = receive(&mut client, 3, &settings(&new));
        let code = outputs.iter().find_map(|output| match output {
            Output::Close(fault) => Some(fault.code()),
            _ => None,
        });
        assert_eq!(code, expected, "{new:?}");
    }
}

//= rfc9114 §4.2.2
//# no field section beyond the peer's limit
#[test]
fn field_sections_larger_than_the_peer_accepts_are_not_sent() {
    let mut client = connection(Role::Client, quiet());
    let value = [b'v'; 66];
    let field = || core::iter::once((&b"ab"[..], &value[..], Sensitivity::Ordinary));
    client.encode_section(StreamId(0), field()).expect("without settings there is no limit");
    let limited = Settings { max_field_section_size: Some(99), ..Settings::default() };
    receive(&mut client, 3, &settings(&limited));
    let too_large = Misuse::FieldSectionTooLarge { size: 100, limit: 99 };
    assert_eq!(client.encode_section(StreamId(4), field()), Err(too_large));
}

#[test]
fn a_blocked_section_follows_as_an_event() {
    let config = ConnectionConfig { qpack_encoder_blocked_streams: 4, ..quiet() };
    let (mut client, mut server) =
        (connection(Role::Client, config), connection(Role::Server, config));
    drain(&mut server);
    receive(&mut client, 3, &settings(&config.settings()));
    let fields = || core::iter::once((&b"user-agent"[..], &b"eyas"[..], Sensitivity::Ordinary));
    let section = client.encode_section(StreamId(0), fields()).expect("it is small");
    let outputs = drain(&mut client);
    let encoder = UniStream::Critical(CriticalStream::QpackEncoder);
    let instructions: Vec<u8> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Write { stream, data, .. } if *stream == encoder => Some(&data[..]),
            _ => None,
        })
        .collect::<Vec<_>>()
        .concat();
    let stream = StreamId(0);
    assert_eq!(server.decode_section(NOW, stream, section), Ok(Section::Blocked));
    let instructions = [b"\x02", &instructions[..]].concat();
    let outputs = receive(&mut server, 6, &instructions);
    let decoded = outputs.iter().find_map(|output| match output {
        Output::Event(Event::Section { stream, fields: Ok(fields) }) => Some((*stream, fields)),
        _ => None,
    });
    let (of, fields) = decoded.expect("the entries have arrived");
    assert_eq!((of, &fields[0].value[..]), (stream, &b"eyas"[..]));
    let acknowledged = outputs.iter().any(|output| {
        matches!(output, Output::Write { stream, .. }
            if *stream == UniStream::Critical(CriticalStream::QpackDecoder))
    });
    assert!(acknowledged, "{outputs:?}");
}

//= rfc9114 RFC 9218 §7.2
//# PRIORITY_UPDATE from clients, for requests; a bounded number before their streams
#[test]
fn priorities_of_requests_to_come_are_kept_up_to_a_bound() {
    let mut server = connection(Role::Server, quiet());
    receive(&mut server, 2, &settings(&Settings::default()));
    let update = |id: u64, value: &str| {
        let mut payload = Vec::new();
        varint::write(id, &mut payload);
        payload.extend_from_slice(value.as_bytes());
        let mut out = Vec::new();
        frame::write(FrameType::PriorityUpdateOfRequest, &payload, &mut out);
        out
    };
    for index in (0..2 * MAX_PENDING_PRIORITIES as u64).rev() {
        assert_eq!(receive(&mut server, 2, &update(4 * index, "u=1")), []);
    }
    receive(&mut server, 2, &update(0, "u=5, i"));
    let priority = |urgency, incremental| Some(Priority { urgency, incremental });
    assert_eq!(server.accept_request(StreamId(0)), Ok(priority(5, true)), "the latest counts");
    assert_eq!(server.accept_request(StreamId(4)), Ok(priority(1, false)));
    let beyond = StreamId::from_request_index(MAX_PENDING_PRIORITIES as u64);
    assert_eq!(server.accept_request(beyond), Ok(None), "there was no room");
    let outputs = receive(&mut server, 2, &update(4, "u=7"));
    let (stream, priority) = (StreamId(4), Priority { urgency: 7, incremental: false });
    assert_eq!(outputs, [Output::Event(Event::Priority { stream, priority })]);

    server.set_request_limit(100);
    assert!(receive(&mut server, 2, &update(4 * 99, "")).is_empty());
    let outputs = receive(&mut server, 2, &update(4 * 100, ""));
    assert_eq!(outputs, [Output::Close(ConnectionFault::PriorityOfOtherStream(400))]);
}

//= rfc9114 RFC 9412 §2
//# ORIGIN from servers, on the control stream
#[test]
fn only_a_client_changes_priorities_and_only_a_server_names_origins() {
    let (mut client, mut server) =
        (connection(Role::Client, quiet()), connection(Role::Server, quiet()));
    drain(&mut client);
    drain(&mut server);
    let priority = Priority { urgency: 1, incremental: true };
    assert_eq!(server.update_priority(StreamId(0), priority), Err(Misuse::OtherRole));
    assert_eq!(client.update_priority(StreamId(2), priority), Err(Misuse::NoSuchStream));
    assert_eq!(client.update_priority(StreamId(8), priority), Ok(()));
    assert_eq!(control_frames(&drain(&mut client)), b"\x80\x0f\x07\x00\x07\x08u=1, i");

    assert_eq!(client.send_origins(["https://a.test"]), Err(Misuse::OtherRole));
    assert_eq!(server.send_origins(["https://a.test", "https://b.test"]), Ok(()));
    let said = [settings(&Settings::default()), control_frames(&drain(&mut server))].concat();
    let outputs = receive(&mut client, 3, &said);
    let origins = ["https://a.test", "https://b.test"].map(Bytes::from).to_vec();
    assert!(outputs.contains(&Output::Event(Event::Origins(origins))), "{outputs:?}");
}

#[test]
fn origins_are_new_and_bounded() {
    let mut client = connection(Role::Client, quiet());
    receive(&mut client, 3, &settings(&Settings::default()));
    let mut said = |names: Vec<String>| {
        let entry = |name: &String| [&(name.len() as u16).to_be_bytes(), name.as_bytes()].concat();
        let payload: Vec<u8> = names.iter().flat_map(entry).collect();
        let mut out = Vec::new();
        frame::write(FrameType::Origin, &payload, &mut out);
        let outputs = receive(&mut client, 3, &out);
        let count = |output: &Output| match output {
            Output::Event(Event::Origins(origins)) => origins.len(),
            _ => panic!("{output:?}"),
        };
        outputs.iter().map(count).sum::<usize>()
    };
    assert_eq!(said(vec![String::new(), "\u{e4}".into(), "a".repeat(301)]), 0);
    assert_eq!(said(vec!["a".into(), "a".into(), "b".into()]), 2);
    assert_eq!(said(vec!["a".into()]), 0);
    let many = (0..2 * MAX_ORIGINS).map(|index| index.to_string()).collect();
    assert_eq!(said(many), MAX_ORIGINS - 2);
}

#[test]
fn the_parts_can_go_to_other_threads() {
    fn assert_both<T: Send + Sync>() {}
    assert_both::<Connection>();
    assert_both::<crate::request::RequestReceiver>();
    assert_both::<crate::request::RequestSender>();
    assert_both::<crate::whole::WholeConnection>();
}

#[test]
fn a_peer_that_does_not_read_the_decoder_stream_is_closed() {
    let mut server = connection(Role::Server, quiet());
    while !matches!(server.poll_output(NOW), Output::Timeout(_)) {}
    for index in 0..100_000 {
        server.cancel(StreamId::from_request_index(index));
        if let Output::Close(fault) = server.poll_output(NOW) {
            assert_eq!(fault, ConnectionFault::StreamNotRead(CriticalStream::QpackDecoder));
            assert_eq!(server.poll_output(NOW), Output::Timeout(None), "nothing follows");
            return;
        }
    }
    panic!("it grows without a bound");
}

//= rfc9114 RFC 9297 §2.1, §2.1.1
//# datagrams with both settings, for streams that can exist
#[test]
fn datagrams_need_the_setting_of_both_ends() {
    let with = ConnectionConfig { datagrams: true, ..quiet() };
    for (own, peer, expected) in
        [(with, true, true), (with, false, false), (quiet(), true, false), (quiet(), false, false)]
    {
        let mut client = connection(Role::Client, own);
        assert!(!client.may_send_datagrams(), "before the peer's settings");
        receive(&mut client, 3, &settings(&Settings { datagrams: peer, ..Settings::default() }));
        assert_eq!(client.may_send_datagrams(), expected);
        client.handle_input(NOW, Input::Datagram(Bytes::from_static(b"\x01hi")));
        let (stream, payload) = (StreamId(4), Bytes::from_static(b"hi"));
        let event = Output::Event(Event::Datagram { stream, payload });
        assert_eq!(drain(&mut client).contains(&event), own.datagrams);
    }
    let mut server = connection(Role::Server, with);
    server.set_request_limit(1);
    server.handle_input(NOW, Input::Datagram(Bytes::from_static(b"\x01hi")));
    let fault = ConnectionFault::DatagramOfOtherStream(StreamId(4));
    assert_eq!(fault.code(), Code::IdError);
    assert!(drain(&mut server).contains(&Output::Close(fault)));
}

#[test]
fn a_client_sends_no_request_after_goaway() {
    let mut client = connection(Role::Client, quiet());
    assert_eq!(client.check_new_request(), Ok(()));
    receive(&mut client, 3, &settings(&Settings::default()));
    receive(&mut client, 3, b"\x07\x01\x08");
    assert_eq!(client.check_new_request(), Err(Misuse::GoingAway));
    client.close(ConnectionFault::FrameTruncated);
    assert_eq!(client.check_new_request(), Err(Misuse::Closed));
    let mut server = connection(Role::Server, quiet());
    drain(&mut server);
    assert_eq!(server.check_new_request(), Err(Misuse::OtherRole));
    server.shut_down(Shutdown::Announce);
    assert_eq!(server.accept_request(StreamId(0)), Ok(None), "it may still arrive");
    server.shut_down(Shutdown::Refuse);
    assert_eq!(server.accept_request(StreamId(0)), Ok(None), "it has arrived");
    assert_eq!(server.accept_request(StreamId(4)), Err(StreamFault::AfterGoAway.into()));
    let maximum = [&b"\x07\x08"[..], &[0xff; 7], &[0xfc]].concat();
    assert_eq!(control_frames(&drain(&mut server)), [&maximum[..], b"\x07\x01\x04"].concat());

    let mut last = connection(Role::Server, quiet());
    drain(&mut last);
    assert_eq!(last.accept_request(StreamId::MAX_REQUEST), Ok(None));
    last.shut_down(Shutdown::Refuse);
    assert_eq!(control_frames(&drain(&mut last)), maximum, "there is no number after it");
}
