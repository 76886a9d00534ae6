//! The state shared by all connections of a program.

use std::sync::Arc;

use crate::{
    call::{done, release},
    code::Code,
    endpoint_options::EndpointOptions,
    error::Failure,
    home::{Home, Owned},
    pointer::{Out, give, handle},
};

/// The state shared by all connections of a program: trust, names, memory, sockets, and the threads
/// that drive them. May be used from any thread. A process that was forked afterwards cannot use
/// it, nor anything made with it, but may free them.
pub struct Endpoint(Owned<eyas::Endpoint>);

impl Endpoint {
    fn new(options: Option<&EndpointOptions>) -> Result<Self, Failure> {
        let home = Home::new()?;
        let endpoint = {
            let _inside = home.enter()?;
            match options {
                Some(options) => options.build()?,
                None => eyas::Endpoint::builder().build()?,
            }
        };
        Ok(Self(Owned::new(endpoint, &home)))
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        self.0.home()
    }

    /// The endpoint itself; a forked child has none.
    pub(crate) fn inner(&self) -> Result<&eyas::Endpoint, Failure> {
        self.home().runtime()?;
        Ok(&self.0)
    }
}

/// Creates an endpoint. The caller must free it with eyas_endpoint_free. `options` are only read
/// during the call; NULL means the defaults: the platform's roots, the system's DNS, and a memory
/// that lasts as long as the endpoint.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_new(
    options: Option<&EndpointOptions>,
    endpoint: Out<'_, *mut Endpoint>,
    error: Out<'_, *mut Failure>,
) -> Code {
    done(error, || {
        let place = endpoint.empty("endpoint")?;
        give(place, Endpoint::new(options)?);
        Ok(())
    })
}

/// Waits until every SCTP association that was opened with this endpoint has ended. An association
/// that is freed shuts down gracefully, which takes a round trip. Associations in use are waited
/// for as well, so use a timeout.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_wait_for_associations(
    endpoint: Option<&Endpoint>,
    timeout_ms: i32,
    error: Out<'_, *mut Failure>,
) -> Code {
    done(error, || {
        let endpoint = handle(endpoint, "endpoint")?;
        let limit = crate::wait::Limit::of(timeout_ms);
        crate::wait::wait_for(endpoint.home(), limit, endpoint.inner()?.associations_ended())
    })
}

/// Frees an endpoint; NULL is allowed. No call on it may be in progress. Objects made with it
/// remain usable; its threads and sockets are freed with the last of them.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_free(endpoint: Option<Box<Endpoint>>) {
    release(endpoint);
}
