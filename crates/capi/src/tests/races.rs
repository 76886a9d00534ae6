//! Tests of races, plans and the memory.

use std::{
    ffi::{CStr, CString},
    mem::MaybeUninit,
    net::{TcpListener, UdpSocket},
    ptr, thread,
};

use serde_json::Value;

use super::{
    PATIENCE, connect, connections::code, done, endpoint, free, get_text, get_value,
    listen_options, listener, new_handle, port, target,
};
use crate::{
    code::{EYAS_CANCELLED, EYAS_CONNECT, EYAS_END, EYAS_MISUSE},
    endpoint::{eyas_endpoint_free, eyas_endpoint_new},
    endpoint_options::{eyas_endpoint_options_new, eyas_endpoint_options_set_dns_server},
    error::{eyas_error_code, eyas_error_race_json},
    memory::{
        eyas_memory_clear, eyas_memory_forget, eyas_memory_json, eyas_memory_warnings_json,
        eyas_plan_json,
    },
    pointer::{OutPointer, TextPointer},
    race::{
        Race, eyas_connect, eyas_race_better, eyas_race_cancel, eyas_race_finish, eyas_race_json,
        eyas_race_start,
    },
    target::{Target, eyas_target_ask_https_records, eyas_target_new, eyas_target_set_security},
};

/// Returns a port that nothing listens on.
fn unused_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("an address").port()
}

fn json(text: Result<String, super::CallError>) -> Value {
    serde_json::from_str(&text.expect("a text")).expect("JSON")
}

#[test]
fn an_error_lists_each_candidate() {
    let (endpoint, target) = (endpoint(), target(unused_port(), c"tcp"));
    let (mut place, mut error) = (MaybeUninit::uninit(), MaybeUninit::new(ptr::null_mut()));
    let code = eyas_connect(
        Some(&endpoint),
        Some(&target),
        PATIENCE,
        OutPointer::from_place(&mut place),
        OutPointer::from_place(&mut error),
    );
    assert_eq!(code, EYAS_CONNECT);
    // SAFETY: the call has failed, so it has set the error, which we own.
    let error = unsafe { Box::from_raw(error.assume_init()) };
    // SAFETY: it has set its place to NULL.
    assert!(unsafe { place.assume_init() }.is_null());
    assert_eq!(eyas_error_code(Some(&error)), code);
    // SAFETY: the text is valid as long as the error.
    let race = unsafe { CStr::from_ptr(eyas_error_race_json(Some(&error))) };
    let race: Value = serde_json::from_str(race.to_str().expect("UTF-8")).expect("JSON");
    assert_eq!(race["winner"], Value::Null);
    assert_eq!(race["attempts"][0]["outcome"], "failed");
}

#[test]
fn a_race_returns_its_winner_once_and_then_better_connections() {
    let endpoint = endpoint();
    let listener = listener(&endpoint, &listen_options(c"tcp"));
    let target = target(port(&listener), c"tcp");
    let race: Box<Race> =
        new_handle(|place, error| eyas_race_start(Some(&endpoint), Some(&target), place, error))
            .expect("a race");
    let early = new_handle(|place, error| eyas_race_better(Some(&race), PATIENCE, place, error));
    assert_eq!(early.err().map(|(code, _)| code), Some(EYAS_MISUSE));
    let won = new_handle(|place, error| eyas_race_finish(Some(&race), PATIENCE, place, error));
    let second = new_handle(|place, error| eyas_race_finish(Some(&race), PATIENCE, place, error));
    assert_eq!(second.err().map(|(code, _)| code), Some(EYAS_MISUSE));
    let better = new_handle(|place, error| eyas_race_better(Some(&race), PATIENCE, place, error));
    assert_eq!(better.err().map(|(code, _)| code), Some(EYAS_END));
    let get_text = json(get_text(|text, error| eyas_race_json(Some(&race), text, error)));
    assert_eq!(get_text["winner"]["transport"], "tcp");
    free([won.expect("a connection")]);
}

#[test]
fn cancelling_a_race_wakes_its_waiter() {
    let endpoint = endpoint();
    // It never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut target = target(silent.local_addr().expect("an address").port(), c"quic");
    done(|error| eyas_target_set_security(Some(&mut target), c"tls".into(), error)).expect("set");
    let race: Box<Race> =
        new_handle(|place, error| eyas_race_start(Some(&endpoint), Some(&target), place, error))
            .expect("a race");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            new_handle(|place, error| eyas_race_finish(Some(&race), -1, place, error)).err()
        });
        done(|error| eyas_race_cancel(Some(&race), error)).expect("cancelled");
        let (code, text) = waiting.join().expect("no panic").expect("no connection");
        assert_eq!(code, EYAS_CANCELLED, "{text}");
    });
}

#[test]
fn a_plan_has_reasons_and_makes_no_connection() {
    let (endpoint, target) = (endpoint(), target(unused_port(), c"sctp-udp,tcp"));
    let plan = json(get_text(|text, error| {
        eyas_plan_json(Some(&endpoint), Some(&target), PATIENCE, text, error)
    }));
    let entries = plan["entries"].as_array().expect("entries");
    let transports: Vec<_> = entries.iter().filter_map(|one| one["transport"].as_str()).collect();
    assert_eq!(transports, ["sctp-udp", "tcp"]);
    assert!(entries.iter().all(|one| one["reasons"].as_array().is_some_and(|all| !all.is_empty())));
}

/// Answers HTTPS queries with `1 . port=8443 ipv4hint=192.0.2.7`, and others with no data.
fn dns(socket: &UdpSocket) {
    let mut question = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut question) {
        // The name is followed by the type, 65 for HTTPS, and the class; after that comes EDNS.
        let end = 12 + question[12..].iter().position(|byte| *byte == 0).expect("a name") + 5;
        let is_https = question[end - 4..end - 2] == [0, 65];
        let mut answer = question[..end.min(length)].to_vec();
        answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_https), 0, 0, 0, 0]);
        if is_https {
            let parameters = [0, 3, 0, 2, 0x20, 0xfb, 0, 4, 0, 4, 192, 0, 2, 7];
            answer.extend([0xc0, 12, 0, 65, 0, 1, 0, 0, 0, 60, 0, 17, 0, 1, 0]);
            answer.extend(parameters);
        }
        socket.send_to(&answer, from).expect("sent");
    }
}

#[test]
fn https_records_are_followed_if_requested() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = CString::new(server.local_addr().expect("an address").to_string());
    thread::spawn(move || dns(&server));
    let mut options =
        new_handle(|place, error| eyas_endpoint_options_new(place, error)).expect("options");
    let address = address.expect("a text");
    done(|error| {
        eyas_endpoint_options_set_dns_server(Some(&mut options), address.as_c_str().into(), error)
    })
    .expect("set");
    let endpoint = new_handle(|place, error| eyas_endpoint_new(Some(&options), place, error))
        .expect("an endpoint");
    let host = c"service.example";
    let mut target = new_handle(|place, error| eyas_target_new(host.into(), 443, place, error))
        .expect("a target");
    let plan = |target: &Target| {
        json(get_text(|text, error| {
            eyas_plan_json(Some(&endpoint), Some(target), PATIENCE, text, error)
        }))
    };
    assert_eq!(plan(&target)["entries"].as_array().map_or(0, Vec::len), 0);
    done(|error| eyas_target_ask_https_records(Some(&mut target), error)).expect("set");
    let entries = plan(&target)["entries"].clone();
    let get_text = |one: &Value| (one["transport"].to_string(), one["address"].to_string());
    let get_text: Vec<_> = entries.as_array().expect("entries").iter().map(get_text).collect();
    assert_eq!(get_text, [("\"tcp\"".into(), "\"192.0.2.7:8443\"".into())]);
}

#[test]
fn the_memory_can_be_read_and_deleted() {
    let endpoint = endpoint();
    let memory = |host: Option<&CStr>| {
        let host = host.map_or_else(TextPointer::null, TextPointer::from);
        json(get_text(|text, error| eyas_memory_json(Some(&endpoint), host, text, error)))
    };
    assert_eq!(memory(None), Value::Array(Vec::new()));
    let refused = connect(&endpoint, &target(unused_port(), c"tcp")).map(|_| ());
    assert_eq!(code(refused), EYAS_CONNECT);
    let rows = memory(Some(c"127.0.0.1"));
    assert_eq!((&rows[0]["host"], &rows[0]["verdict"]), (&"127.0.0.1".into(), &"bad".into()));
    assert_eq!(memory(Some(c"other.example")), Value::Array(Vec::new()));
    let forgotten: usize = get_value(|count, error| {
        eyas_memory_forget(Some(&endpoint), c"127.0.0.1".into(), count, error)
    })
    .expect("forgotten");
    assert!(forgotten > 0);
    assert_eq!(memory(Some(c"127.0.0.1")), Value::Array(Vec::new()));
    done(|error| eyas_memory_clear(Some(&endpoint), error)).expect("cleared");
    let warnings = get_text(|text, error| eyas_memory_warnings_json(Some(&endpoint), text, error));
    assert_eq!(json(warnings), Value::Array(Vec::new()));
    eyas_endpoint_free(Some(endpoint));
}
