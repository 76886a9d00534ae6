//! What all connections of a program share.

use std::sync::Arc;

use crate::{
    call::{done, release},
    code::Code,
    endpoint_options::EndpointOptions,
    error::Failure,
    home::{Home, Owned},
    pointer::{Out, give, handle},
};

/// What all connections of a program share: trust, names, memory, sockets, and the threads that drive
/// them. From any thread. A process that was forked after it was made cannot use it, nor anything made
/// with it, but may free them.
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

/// Makes an endpoint: the caller's, to be freed with eyas_endpoint_free. `options` are read and not kept;
/// NULL takes the defaults: the platform's roots, the system's DNS, a memory that lasts as long as the
/// endpoint.
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

/// Waits until every SCTP association that was opened with this endpoint has ended: one that is freed ends
/// in order, for which it needs a round trip. Those in use are waited for as well, so give a timeout.
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

/// Frees an endpoint; NULL is fine. No call on it may be under way. What was made with it lives on, and
/// its threads and sockets end with the last of that.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_free(endpoint: Option<Box<Endpoint>>) {
    release(endpoint);
}
