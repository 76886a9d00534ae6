//! Informational responses of the upstream (RFC 9110 §15.2): `100 Continue` lets the body of the request be sent, and
//! the client gets the others, if its connection supports them.

use std::future::Future;
use std::sync::Arc;

use eyas_http::serve::InterimResponses;
use eyas_http::{InformationalLimit, InputEnd, TooManyInformational};
use http::{HeaderMap, Request, Response, StatusCode};

use crate::fields;
use crate::request_body::{UploadBody, UploadProgress};

/// What becomes of the informational responses to one request.
#[derive(Clone)]
pub(crate) struct RequestInterims {
    upload: Arc<UploadProgress>,
    client: Option<InterimResponses>,
    limit: Arc<InformationalLimit>,
}

impl RequestInterims {
    /// Creates it for a connection whose input ends where there are too many.
    pub(crate) fn new(
        upload: &Arc<UploadProgress>,
        client: Option<InterimResponses>,
        end: &InputEnd,
    ) -> Self {
        let limit = Arc::new(InformationalLimit::ending(end));
        Self { upload: Arc::clone(upload), client, limit }
    }

    /// Has hyper report those to this request, and counts them, since hyper has no limit.
    pub(crate) fn listen(&self, request: &mut Request<UploadBody>) {
        let this = self.clone();
        hyper::ext::on_informational(request, move |response| {
            if this.limit.count(response.headers()).is_ok() {
                this.receive(response.status(), response.headers());
            }
        });
    }

    /// Receives one.
    pub(crate) fn receive(&self, status: StatusCode, headers: &HeaderMap) {
        if status == StatusCode::CONTINUE {
            self.upload.gate.open();
        } else if let Some(client) = &self.client {
            let mut interim = Response::new(());
            *interim.status_mut() = status;
            *interim.headers_mut() = fields::filter_interim(headers);
            client.send(interim);
        }
    }

    /// Waits for the response, or until there are too many.
    pub(crate) async fn limit<T>(
        &self,
        response: impl Future<Output = T>,
    ) -> Result<T, TooManyInformational> {
        self.limit.apply(response).await
    }
}
