//! Accepting connections.

use std::{
    ffi::{c_char, c_int},
    pin::pin,
    sync::Arc,
};

use crate::{
    call::{ffi_call, ffi_call_with_code, release},
    code::{Code, EYAS_OK, EYAS_WOULD_BLOCK},
    connection::Connection,
    endpoint::Endpoint,
    endpoint_runtime::{EndpointRuntime, RuntimeOwned},
    error::Failure,
    json,
    listen_options::ListenOptions,
    pointer::{OutPointer, required_handle, return_handle},
    wait::{CallTurn, HandleClosed, WaitLimit, store_descriptor, wait, wait_for},
};

/// Accepts connections over all its transports. May be used from any thread, with one accepting
/// call at a time.
pub struct Listener {
    listener: RuntimeOwned<eyas::Listener>,
    accepting: CallTurn,
    over: HandleClosed,
}

impl Listener {
    fn new(endpoint: &Endpoint, options: &ListenOptions) -> Result<Self, Failure> {
        let endpoint_runtime = endpoint.endpoint_runtime();
        let bound = eyas::Listener::bind(options.parameters());
        let listener = RuntimeOwned::new(
            wait_for(endpoint_runtime, WaitLimit::Never, bound)??,
            endpoint_runtime,
        );
        Ok(Self { listener, accepting: CallTurn::default(), over: HandleClosed::default() })
    }

    fn endpoint_runtime(&self) -> &Arc<EndpointRuntime> {
        self.listener.endpoint_runtime()
    }

    fn accept(&self, limit: WaitLimit) -> Result<Option<Connection>, Failure> {
        let _turn = self.accepting.acquire("accepting")?;
        let accepted = wait(self.endpoint_runtime(), &self.accepting, &self.over, limit, |cx| {
            pin!(self.listener.accept()).poll(cx).map(Ok)
        })?;
        Ok(accepted.map(|connection| Connection::new(connection, None, self.endpoint_runtime())))
    }
}

/// Listens with these options, which are only read during the call. The caller must free the
/// listener with eyas_listener_free; it uses the threads of the endpoint.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen(
    endpoint: Option<&Endpoint>,
    options: Option<&ListenOptions>,
    listener: OutPointer<'_, *mut Listener>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = listener.null_place("listener")?;
        let (endpoint, options) =
            (required_handle(endpoint, "endpoint")?, required_handle(options, "options")?);
        return_handle(place, Listener::new(endpoint, options)?);
        Ok(())
    })
}

/// Accepts a connection whose handshake is complete. The caller must free it with
/// eyas_connection_free. A timeout of 0 does not wait: EYAS_WOULD_BLOCK.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listener_accept(
    listener: Option<&Listener>,
    timeout_ms: i32,
    connection: OutPointer<'_, *mut Connection>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call_with_code(error, || {
        let place = connection.null_place("connection")?;
        let accepted = required_handle(listener, "listener")?
            .accept(WaitLimit::from_milliseconds(timeout_ms))?;
        let Some(accepted) = accepted else { return Ok(EYAS_WOULD_BLOCK) };
        return_handle(place, accepted);
        Ok(EYAS_OK)
    })
}

/// Stores a descriptor in `fd` that becomes readable (POLLIN) when eyas_listener_accept is worth a
/// try. It belongs to the listener: neither read nor close it.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listener_fd(
    listener: Option<&Listener>,
    fd: OutPointer<'_, c_int>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        store_descriptor(fd, required_handle(listener, "listener").map(|one| &one.accepting))
    })
}

/// Cancels a waiting accept call of another thread, which returns EYAS_CANCELLED, and all later
/// ones.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listener_cancel(
    listener: Option<&Listener>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let listener = required_handle(listener, "listener")?;
        listener.over.end();
        listener.accepting.readiness.raise();
        Ok(())
    })
}

/// Stores the address and port of the listener in `text`, such as "127.0.0.1:4433". The caller must
/// free it with eyas_text_free.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listener_address(
    listener: Option<&Listener>,
    text: OutPointer<'_, *mut c_char>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = text.required("text")?;
        let address = required_handle(listener, "listener")?.listener.local_addr().to_string();
        place.write(json::c_string(address).into_raw());
        Ok(())
    })
}

/// Stores the port of the listener in `port`.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listener_port(
    listener: Option<&Listener>,
    port: OutPointer<'_, u16>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let port = port.required("port")?;
        port.write(required_handle(listener, "listener")?.listener.local_addr().port());
        Ok(())
    })
}

/// Stores the UDP port for SCTP over UDP in `port`.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listener_sctp_udp_port(
    listener: Option<&Listener>,
    port: OutPointer<'_, u16>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = port.required("port")?;
        let listener = required_handle(listener, "listener")?;
        listener.endpoint_runtime().runtime()?;
        let port = listener.listener.sctp().and_then(|sctp| sctp.encapsulation_port());
        place.write(port.ok_or_else(|| {
            Failure::unsupported("this listener does not serve SCTP inside UDP: ask for sctp-udp")
        })?);
        Ok(())
    })
}

/// Frees a listener; NULL is allowed. No call on it may be in progress. Accepted connections stay
/// open.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listener_free(listener: Option<Box<Listener>>) {
    release(listener);
}
