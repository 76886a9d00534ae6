//! A stub for builds without the feature `compression`: no coding is offered or decoded.

use http::{HeaderMap, Response};

use crate::Body;

pub(super) const fn offer(_: &mut HeaderMap) {}

pub(super) const fn decode(response: Response<Body>) -> Response<Body> {
    response
}
