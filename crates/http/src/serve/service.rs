//! The interface between the protocols and the caller's service.

pub(super) mod body;

use std::{fmt, future::Future, future::poll_fn, pin::Pin, sync::Arc};

use http::{Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use self::body::ServiceBody;
use super::{
    body_error::BoxError,
    content::Content,
    link::Link,
    metered::MeteredBody,
    reply::{error, with_server_fields},
    request_body::RequestBody,
};

/// The future of a response.
pub(super) type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Content>, BoxError>> + Send + 'a>>;

/// Answers requests, over any version of HTTP.
pub(super) trait Application: Send + Sync {
    /// Answers a request. Only the returned future may panic, not this call.
    fn answer<'a>(&'a self, link: &'a Link, request: Request<RequestBody>) -> ResponseFuture<'a>;
}

/// An application of any type.
#[derive(Clone)]
pub(super) struct AnyApplication(Arc<dyn Application>);

impl AnyApplication {
    pub(super) fn new(application: impl Application + 'static) -> Self {
        Self(Arc::new(application))
    }

    /// Answers a request.
    pub(super) fn answer<'a>(
        &'a self,
        link: &'a Link,
        request: Request<RequestBody>,
    ) -> ResponseFuture<'a> {
        self.0.answer(link, request)
    }
}

impl fmt::Debug for AnyApplication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyApplication")
    }
}

/// The application of a server without a service.
pub(super) struct NotFound;

impl Application for NotFound {
    fn answer<'a>(&'a self, _: &'a Link, _: Request<RequestBody>) -> ResponseFuture<'a> {
        let reply = error(StatusCode::NOT_FOUND, "Nothing is served here.");
        Box::pin(std::future::ready(Ok(with_server_fields(reply))))
    }
}

/// A tower service, a clone of which answers each request.
pub(super) struct Tower<S>(pub(super) S);

impl<S, B> Application for Tower<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn answer<'a>(
        &'a self,
        link: &'a Link,
        mut request: Request<RequestBody>,
    ) -> ResponseFuture<'a> {
        Box::pin(async move {
            let mut service = self.0.clone();
            request.extensions_mut().insert(link.peer_info());
            let turn = Arc::clone(request.body().turn());
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(boxed)?;
            let response = service.call(request).await.map_err(boxed)?;
            let share = Arc::clone(&link.share);
            Ok(response.map(|body| match MeteredBody::unwrap(body) {
                Ok(content) => content,
                Err(body) => Content::Service(ServiceBody::new(body, share, turn)),
            }))
        })
    }
}

fn boxed(error: impl Into<BoxError>) -> BoxError {
    error.into()
}
