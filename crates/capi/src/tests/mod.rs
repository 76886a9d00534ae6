//! Calls as a program of C makes them, of whose pointers Rust knows that they are good.

mod arguments;
mod connections;
mod fork;
mod messages;
mod panics;
mod poll;
mod races;

use std::{
    ffi::{CStr, c_char},
    mem::MaybeUninit,
    ptr,
};

use crate::{
    code::{Code, EYAS_OK},
    connection::{Connection, eyas_connection_free},
    endpoint::{Endpoint, eyas_endpoint_new},
    error::{Failure, eyas_error_code, eyas_error_free, eyas_error_message},
    listen_options::{
        ListenOptions, eyas_listen_options_new, eyas_listen_options_set_sctp_udp_port,
        eyas_listen_options_set_transports,
    },
    listener::{Listener, eyas_listen, eyas_listener_accept, eyas_listener_port},
    pointer::{Out, eyas_text_free},
    race::eyas_connect,
    target::{Target, eyas_target_new, eyas_target_set_security, eyas_target_set_transports},
};

/// What a test waits for at most, in milliseconds: a busy machine takes its time.
const PATIENCE: i32 = 60_000;

/// A code that is no success, with its text.
type Refused = (Code, String);

/// Calls what takes a place for its error, and takes it out of there.
fn called(call: impl FnOnce(Out<'_, *mut Failure>) -> Code) -> (Code, String) {
    let mut error = MaybeUninit::new(ptr::dangling_mut());
    let code = call(Out::to(&mut error));
    // SAFETY: every call sets it, to NULL or to an error that is given to the caller.
    let error = unsafe {
        let error = error.assume_init();
        (!error.is_null()).then(|| Box::from_raw(error))
    };
    let Some(error) = error else { return (code, String::new()) };
    assert_eq!(eyas_error_code(Some(&error)), code);
    // SAFETY: the text of an error that lives.
    let text = unsafe { CStr::from_ptr(eyas_error_message(Some(&error))) };
    let text = text.to_str().expect("UTF-8").to_owned();
    eyas_error_free(Some(error));
    (code, text)
}

/// The same of a call that gives nothing.
fn done(call: impl FnOnce(Out<'_, *mut Failure>) -> Code) -> Result<(), Refused> {
    let (code, text) = called(call);
    if code == EYAS_OK { Ok(()) } else { Err((code, text)) }
}

/// The same of a call that gives a value.
fn given<T: Default>(
    call: impl FnOnce(Out<'_, T>, Out<'_, *mut Failure>) -> Code,
) -> Result<T, Refused> {
    let mut place = MaybeUninit::new(T::default());
    let outcome = done(|error| call(Out::to(&mut place), error));
    // SAFETY: it was set here, and calls set it only to values of its type.
    outcome.map(|()| unsafe { place.assume_init() })
}

/// The same of a call that gives a handle.
fn made<T>(
    call: impl FnOnce(Out<'_, *mut T>, Out<'_, *mut Failure>) -> Code,
) -> Result<Box<T>, Refused> {
    let mut place = MaybeUninit::new(ptr::null_mut());
    let outcome = done(|error| call(Out::to(&mut place), error));
    // SAFETY: the call has set it, to a handle that is ours if it was a success.
    outcome.map(|()| unsafe { Box::from_raw(place.assume_init()) })
}

/// The same of a call that gives a text.
fn text_of(
    call: impl FnOnce(Out<'_, *mut c_char>, Out<'_, *mut Failure>) -> Code,
) -> Result<String, Refused> {
    let mut place = MaybeUninit::new(ptr::null_mut());
    done(|error| call(Out::to(&mut place), error))?;
    // SAFETY: a text that is ours now, until it is freed.
    unsafe {
        let text = place.assume_init();
        let copy = CStr::from_ptr(text).to_str().expect("UTF-8").to_owned();
        eyas_text_free(text.as_mut());
        Ok(copy)
    }
}

fn endpoint() -> Box<Endpoint> {
    made(|place, error| eyas_endpoint_new(None, place, error)).expect("an endpoint")
}

fn listen_options(transports: &CStr) -> Box<ListenOptions> {
    let mut options =
        made(|place, error| eyas_listen_options_new(c"127.0.0.1:0".into(), place, error))
            .expect("options");
    done(|error| eyas_listen_options_set_transports(Some(&mut options), transports.into(), error))
        .expect("transports");
    done(|error| eyas_listen_options_set_sctp_udp_port(Some(&mut options), 0, error))
        .expect("a port");
    options
}

fn listener(endpoint: &Endpoint, options: &ListenOptions) -> Box<Listener> {
    made(|place, error| eyas_listen(Some(endpoint), Some(options), place, error))
        .expect("a listener")
}

fn port(listener: &Listener) -> u16 {
    given(|place, error| eyas_listener_port(Some(listener), place, error)).expect("a port")
}

/// A target on this host, without security.
fn target(port: u16, transports: &CStr) -> Box<Target> {
    let mut target = made(|place, error| eyas_target_new(c"127.0.0.1".into(), port, place, error))
        .expect("a target");
    done(|error| eyas_target_set_transports(Some(&mut target), transports.into(), error))
        .expect("transports");
    done(|error| eyas_target_set_security(Some(&mut target), c"none".into(), error))
        .expect("security");
    target
}

fn connect(endpoint: &Endpoint, target: &Target) -> Result<Box<Connection>, Refused> {
    made(|place, error| eyas_connect(Some(endpoint), Some(target), PATIENCE, place, error))
}

fn accept(listener: &Listener) -> Box<Connection> {
    made(|place, error| eyas_listener_accept(Some(listener), PATIENCE, place, error))
        .expect("a connection")
}

/// What a client says first, so that its connection can be told from those that lost its race.
const GREETING: &[u8] = b"!";

/// The first connection that greets; those that have lost a race end without a word.
fn accept_greeting(listener: &Listener) -> Box<Connection> {
    loop {
        let connection = accept(listener);
        if connections::read(&connection, GREETING.len(), PATIENCE).as_deref() == Ok(GREETING) {
            return connection;
        }
    }
}

/// Both ends of a TCP connection without security.
fn pair(endpoint: &Endpoint) -> (Box<Connection>, Box<Connection>) {
    let listener = listener(endpoint, &listen_options(c"tcp"));
    let here = connect(endpoint, &target(port(&listener), c"tcp")).expect("a connection");
    assert_eq!(connections::write(&here, GREETING), Ok(GREETING.len()));
    (here, accept_greeting(&listener))
}

fn free(connections: impl IntoIterator<Item = Box<Connection>>) {
    for connection in connections {
        eyas_connection_free(Some(connection));
    }
}
