//! Tests: calls as C programs make them, with pointers that Rust has checked.

mod arguments;
mod connections;
mod encrypted_keys;
mod ends;
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
    pointer::{OutPointer, eyas_text_free},
    race::eyas_connect,
    target::{Target, eyas_target_new, eyas_target_set_security, eyas_target_set_transports},
};

/// The maximum wait in tests, in milliseconds: generous, for busy machines.
const PATIENCE: i32 = 60_000;

/// The code of a failure, with its text.
type CallError = (Code, String);

/// Makes a call that stores its error, and returns its code and error text.
fn call_with_error(call: impl FnOnce(OutPointer<'_, *mut Failure>) -> Code) -> (Code, String) {
    let mut error = MaybeUninit::new(ptr::dangling_mut());
    let code = call(OutPointer::from_place(&mut error));
    // SAFETY: every call sets it to NULL or to an error that the caller owns.
    let error = unsafe {
        let error = error.assume_init();
        (!error.is_null()).then(|| Box::from_raw(error))
    };
    let Some(error) = error else { return (code, String::new()) };
    assert_eq!(eyas_error_code(Some(&error)), code);
    // SAFETY: the text is valid as long as the error.
    let text = unsafe { CStr::from_ptr(eyas_error_message(Some(&error))) };
    let text = text.to_str().expect("UTF-8").to_owned();
    eyas_error_free(Some(error));
    (code, text)
}

/// Makes a call that returns only success or failure.
fn done(call: impl FnOnce(OutPointer<'_, *mut Failure>) -> Code) -> Result<(), CallError> {
    let (code, text) = call_with_error(call);
    if code == EYAS_OK { Ok(()) } else { Err((code, text)) }
}

/// Makes a call that returns a value.
fn get_value<T: Default>(
    call: impl FnOnce(OutPointer<'_, T>, OutPointer<'_, *mut Failure>) -> Code,
) -> Result<T, CallError> {
    let mut place = MaybeUninit::new(T::default());
    let outcome = done(|error| call(OutPointer::from_place(&mut place), error));
    // SAFETY: it was initialised above, and calls set it only to values of its type.
    outcome.map(|()| unsafe { place.assume_init() })
}

/// Makes a call that returns a handle.
fn new_handle<T>(
    call: impl FnOnce(OutPointer<'_, *mut T>, OutPointer<'_, *mut Failure>) -> Code,
) -> Result<Box<T>, CallError> {
    let mut place = MaybeUninit::new(ptr::null_mut());
    let outcome = done(|error| call(OutPointer::from_place(&mut place), error));
    // SAFETY: on success, the call has set it to a handle that we own.
    outcome.map(|()| unsafe { Box::from_raw(place.assume_init()) })
}

/// Makes a call that returns a text.
fn get_text(
    call: impl FnOnce(OutPointer<'_, *mut c_char>, OutPointer<'_, *mut Failure>) -> Code,
) -> Result<String, CallError> {
    let mut place = MaybeUninit::new(ptr::null_mut());
    done(|error| call(OutPointer::from_place(&mut place), error))?;
    // SAFETY: we own the text until it is freed.
    unsafe {
        let text = place.assume_init();
        let copy = CStr::from_ptr(text).to_str().expect("UTF-8").to_owned();
        eyas_text_free(text.as_mut());
        Ok(copy)
    }
}

fn endpoint() -> Box<Endpoint> {
    new_handle(|place, error| eyas_endpoint_new(None, place, error)).expect("an endpoint")
}

fn listen_options(transports: &CStr) -> Box<ListenOptions> {
    let mut options =
        new_handle(|place, error| eyas_listen_options_new(c"127.0.0.1:0".into(), place, error))
            .expect("options");
    done(|error| eyas_listen_options_set_transports(Some(&mut options), transports.into(), error))
        .expect("transports");
    done(|error| eyas_listen_options_set_sctp_udp_port(Some(&mut options), 0, error))
        .expect("a port");
    options
}

fn listener(endpoint: &Endpoint, options: &ListenOptions) -> Box<Listener> {
    new_handle(|place, error| eyas_listen(Some(endpoint), Some(options), place, error))
        .expect("a listener")
}

fn port(listener: &Listener) -> u16 {
    get_value(|place, error| eyas_listener_port(Some(listener), place, error)).expect("a port")
}

/// Returns a target on this host, without security.
fn target(port: u16, transports: &CStr) -> Box<Target> {
    let mut target =
        new_handle(|place, error| eyas_target_new(c"127.0.0.1".into(), port, place, error))
            .expect("a target");
    done(|error| eyas_target_set_transports(Some(&mut target), transports.into(), error))
        .expect("transports");
    done(|error| eyas_target_set_security(Some(&mut target), c"none".into(), error))
        .expect("security");
    target
}

fn connect(endpoint: &Endpoint, target: &Target) -> Result<Box<Connection>, CallError> {
    new_handle(|place, error| eyas_connect(Some(endpoint), Some(target), PATIENCE, place, error))
}

fn accept(listener: &Listener) -> Box<Connection> {
    new_handle(|place, error| eyas_listener_accept(Some(listener), PATIENCE, place, error))
        .expect("a connection")
}

/// Sent first by clients, to distinguish their connection from those that lost the race.
const GREETING: &[u8] = b"!";

/// Accepts the first connection that sends the greeting; those that have lost a race send nothing.
fn accept_greeting(listener: &Listener) -> Box<Connection> {
    loop {
        let connection = accept(listener);
        if connections::read(&connection, GREETING.len(), PATIENCE).as_deref() == Ok(GREETING) {
            return connection;
        }
    }
}

/// Returns both ends of a TCP connection without security.
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
