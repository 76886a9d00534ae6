//! Races, plans and what is remembered of them.

use std::{
    ffi::CStr,
    mem::MaybeUninit,
    net::{TcpListener, UdpSocket},
    ptr, thread,
};

use serde_json::Value;

use super::{
    PATIENCE, connect, connections::code, done, endpoint, free, given, listen_options, listener,
    made, port, target, told,
};
use crate::{
    code::{EYAS_CANCELLED, EYAS_CONNECT, EYAS_END, EYAS_MISUSE},
    endpoint::eyas_endpoint_free,
    error::{eyas_error_code, eyas_error_race_json},
    memory::{
        eyas_memory_clear, eyas_memory_forget, eyas_memory_json, eyas_memory_warnings_json,
        eyas_plan_json,
    },
    pointer::{Out, Text},
    race::{
        Race, eyas_connect, eyas_race_better, eyas_race_cancel, eyas_race_finish, eyas_race_json,
        eyas_race_start,
    },
    target::eyas_target_set_security,
};

/// A port that nobody listens at.
fn refusing() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("an address").port()
}

fn json(text: Result<String, super::Refused>) -> Value {
    serde_json::from_str(&text.expect("a text")).expect("JSON")
}

#[test]
fn an_error_tells_of_each_candidate() {
    let (endpoint, target) = (endpoint(), target(refusing(), c"tcp"));
    let (mut place, mut error) = (MaybeUninit::uninit(), MaybeUninit::new(ptr::null_mut()));
    let code = eyas_connect(
        Some(&endpoint),
        Some(&target),
        PATIENCE,
        Out::to(&mut place),
        Out::to(&mut error),
    );
    assert_eq!(code, EYAS_CONNECT);
    // SAFETY: the call has failed, so it has set its error, which is ours.
    let error = unsafe { Box::from_raw(error.assume_init()) };
    // SAFETY: it has set its place to NULL.
    assert!(unsafe { place.assume_init() }.is_null());
    assert_eq!(eyas_error_code(Some(&error)), code);
    // SAFETY: the text belongs to the error, which lives.
    let race = unsafe { CStr::from_ptr(eyas_error_race_json(Some(&error))) };
    let race: Value = serde_json::from_str(race.to_str().expect("UTF-8")).expect("JSON");
    assert_eq!(race["winner"], Value::Null);
    assert_eq!(race["attempts"][0]["outcome"], "failed");
}

#[test]
fn a_race_gives_its_winner_once_and_then_what_is_better() {
    let endpoint = endpoint();
    let listener = listener(&endpoint, &listen_options(c"tcp"));
    let target = target(port(&listener), c"tcp");
    let race: Box<Race> =
        made(|place, error| eyas_race_start(Some(&endpoint), Some(&target), place, error))
            .expect("a race");
    let early = made(|place, error| eyas_race_better(Some(&race), PATIENCE, place, error));
    assert_eq!(early.err().map(|(code, _)| code), Some(EYAS_MISUSE));
    let won = made(|place, error| eyas_race_finish(Some(&race), PATIENCE, place, error));
    let again = made(|place, error| eyas_race_finish(Some(&race), PATIENCE, place, error));
    assert_eq!(again.err().map(|(code, _)| code), Some(EYAS_MISUSE));
    let better = made(|place, error| eyas_race_better(Some(&race), PATIENCE, place, error));
    assert_eq!(better.err().map(|(code, _)| code), Some(EYAS_END));
    let told = json(told(|text, error| eyas_race_json(Some(&race), text, error)));
    assert_eq!(told["winner"]["transport"], "tcp");
    free([won.expect("a connection")]);
}

#[test]
fn a_race_that_is_cancelled_says_so_to_who_waits() {
    let endpoint = endpoint();
    // It takes what comes and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut target = target(silent.local_addr().expect("an address").port(), c"quic");
    done(|error| eyas_target_set_security(Some(&mut target), c"tls".into(), error)).expect("set");
    let race: Box<Race> =
        made(|place, error| eyas_race_start(Some(&endpoint), Some(&target), place, error))
            .expect("a race");
    thread::scope(|scope| {
        let waiting = scope
            .spawn(|| made(|place, error| eyas_race_finish(Some(&race), -1, place, error)).err());
        done(|error| eyas_race_cancel(Some(&race), error)).expect("cancelled");
        let (code, text) = waiting.join().expect("no panic").expect("no connection");
        assert_eq!(code, EYAS_CANCELLED, "{text}");
    });
}

#[test]
fn a_plan_has_reasons_and_connects_to_nobody() {
    let (endpoint, target) = (endpoint(), target(refusing(), c"sctp-udp,tcp"));
    let plan = json(told(|text, error| {
        eyas_plan_json(Some(&endpoint), Some(&target), PATIENCE, text, error)
    }));
    let entries = plan["entries"].as_array().expect("entries");
    let transports: Vec<_> = entries.iter().filter_map(|one| one["transport"].as_str()).collect();
    assert_eq!(transports, ["sctp-udp", "tcp"]);
    assert!(entries.iter().all(|one| one["reasons"].as_array().is_some_and(|all| !all.is_empty())));
}

#[test]
fn what_was_learnt_can_be_read_and_forgotten() {
    let endpoint = endpoint();
    let memory = |host: Option<&CStr>| {
        let host = host.map_or_else(Text::null, Text::from);
        json(told(|text, error| eyas_memory_json(Some(&endpoint), host, text, error)))
    };
    assert_eq!(memory(None), Value::Array(Vec::new()));
    let refused = connect(&endpoint, &target(refusing(), c"tcp")).map(|_| ());
    assert_eq!(code(refused), EYAS_CONNECT);
    let rows = memory(Some(c"127.0.0.1"));
    assert_eq!((&rows[0]["host"], &rows[0]["verdict"]), (&"127.0.0.1".into(), &"bad".into()));
    assert_eq!(memory(Some(c"other.example")), Value::Array(Vec::new()));
    let forgotten: usize = given(|count, error| {
        eyas_memory_forget(Some(&endpoint), c"127.0.0.1".into(), count, error)
    })
    .expect("forgotten");
    assert!(forgotten > 0);
    assert_eq!(memory(Some(c"127.0.0.1")), Value::Array(Vec::new()));
    done(|error| eyas_memory_clear(Some(&endpoint), error)).expect("cleared");
    let warnings = told(|text, error| eyas_memory_warnings_json(Some(&endpoint), text, error));
    assert_eq!(json(warnings), Value::Array(Vec::new()));
    eyas_endpoint_free(Some(endpoint));
}
