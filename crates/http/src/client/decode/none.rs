//! No content codings: without the feature `compression` none is offered, so none is undone.

use http::{HeaderMap, Response};

use crate::Body;

pub(super) const fn offer(_: &mut HeaderMap) {}

pub(super) const fn decode(response: Response<Body>) -> Response<Body> {
    response
}
