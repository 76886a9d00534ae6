//! The state shared by all connections of a program.

use std::sync::Arc;

use crate::{
    call::{ffi_call, release},
    code::Code,
    endpoint_options::EndpointOptions,
    endpoint_runtime::{EndpointRuntime, RuntimeOwned},
    error::Failure,
    pointer::{OutPointer, required_handle, return_handle},
};

/// The state shared by all connections of a program: trust, names, memory, sockets, and the threads
/// that drive them. May be used from any thread. A process that was forked afterwards cannot use
/// it, nor anything made with it, but may free them.
pub struct Endpoint(RuntimeOwned<eyas::Endpoint>);

impl Endpoint {
    fn new(options: Option<&EndpointOptions>) -> Result<Self, Failure> {
        let endpoint_runtime = EndpointRuntime::new()?;
        let endpoint = {
            let _inside = endpoint_runtime.enter()?;
            match options {
                Some(options) => options.build()?,
                None => eyas::Endpoint::builder().build()?,
            }
        };
        Ok(Self(RuntimeOwned::new(endpoint, &endpoint_runtime)))
    }

    pub(crate) fn endpoint_runtime(&self) -> &Arc<EndpointRuntime> {
        self.0.endpoint_runtime()
    }

    /// Returns the endpoint; an error in a forked child.
    pub(crate) fn inner(&self) -> Result<&eyas::Endpoint, Failure> {
        self.endpoint_runtime().runtime()?;
        Ok(&self.0)
    }
}

/// Creates an endpoint. The caller must free it with eyas_endpoint_free. `options` are only read
/// during the call; NULL means the defaults: the platform's roots, the system's DNS, and a memory
/// that lasts as long as the endpoint.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_new(
    options: Option<&EndpointOptions>,
    endpoint: OutPointer<'_, *mut Endpoint>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = endpoint.null_place("endpoint")?;
        return_handle(place, Endpoint::new(options)?);
        Ok(())
    })
}

/// Waits until every SCTP association and QUIC connection that was opened with this endpoint has
/// ended. An association that is freed shuts down gracefully, which takes a round trip, and a
/// connection that was closed or shut down ends once its peer has everything. Those in use are waited
/// for as well, so use a timeout.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_wait_for_connections(
    endpoint: Option<&Endpoint>,
    timeout_ms: i32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let endpoint = required_handle(endpoint, "endpoint")?;
        let limit = crate::wait::WaitLimit::from_milliseconds(timeout_ms);
        crate::wait::wait_for(
            endpoint.endpoint_runtime(),
            limit,
            endpoint.inner()?.connections_ended(),
        )
    })
}

/// Frees an endpoint; NULL is allowed. No call on it may be in progress. Objects made with it
/// remain usable; its threads and sockets are freed with the last of them.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_free(endpoint: Option<Box<Endpoint>>) {
    release(endpoint);
}
