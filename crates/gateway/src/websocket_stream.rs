//! WebSockets on a stream of HTTP/2 or HTTP/3 to the upstream: requested by extended CONNECT (RFC 8441 §5, RFC 9220 §3),
//! while the rest of the gateway sees the handshake of HTTP/1.1.

use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper::ext::Protocol;

use crate::attempt::FailedAttempt;
use crate::failure::UpstreamFailure;
use crate::received::ReceivedBody;
use crate::request_body::UploadBody;
use crate::websocket;

/// A WebSocket that is requested on a stream.
pub(crate) struct StreamWebSocket {
    /// The fields of the request over HTTP/1.1.
    fields: HeaderMap,
}

impl StreamWebSocket {
    /// Turns the request for a WebSocket into an extended CONNECT, which the upstream must have `offered`. That is not
    /// known of a connection that ended before its settings arrived.
    pub(crate) fn request(
        request: &mut Request<UploadBody>,
        offered: Option<bool>,
    ) -> Result<Self, FailedAttempt> {
        match offered {
            Some(true) => {}
            Some(false) => return Err(FailedAttempt::new(UpstreamFailure::NoUpgrade)),
            None => {
                let request = std::mem::replace(request, Request::new(UploadBody::none()));
                let why = "it closed the connection before it sent its settings";
                return Err(FailedAttempt::unsent(request, why.to_owned()));
            }
        }
        let fields = request.headers().clone();
        *request.method_mut() = Method::CONNECT;
        websocket::to_extended_connect(request.headers_mut());
        request.extensions_mut().insert(Protocol::from_static("websocket"));
        Ok(Self { fields })
    }

    /// Returns the answer as it would be over HTTP/1.1, or the request, if that was not sent.
    pub(crate) fn answered(
        self,
        answered: Result<Response<ReceivedBody>, FailedAttempt>,
    ) -> Result<Response<ReceivedBody>, FailedAttempt> {
        let mut response = match answered {
            Ok(response) => response,
            Err(failed) => {
                let unsent = failed.unsent.map(|request| Box::new(self.unsent(*request)));
                return Err(FailedAttempt { unsent, ..failed });
            }
        };
        if response.status().is_success() {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            // RFC 9110 §9.3.6: "A client MUST ignore any Content-Length or Transfer-Encoding header fields received in a
            // successful response to CONNECT."
            response.headers_mut().remove(header::CONTENT_LENGTH);
            websocket::to_accepted(&self.fields, response.headers_mut());
        }
        Ok(response)
    }

    fn unsent(self, mut request: Request<UploadBody>) -> Request<UploadBody> {
        request.extensions_mut().remove::<Protocol>();
        *request.method_mut() = Method::GET;
        *request.headers_mut() = self.fields;
        request.map(|_| UploadBody::none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake() -> Request<UploadBody> {
        let mut request = Request::get("/chat");
        for (name, value) in [
            ("host", "a.example"),
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ] {
            request = request.header(name, value);
        }
        request.body(UploadBody::none()).expect("a request")
    }

    #[test]
    fn a_handshake_that_was_not_sent_is_what_it_was() {
        let mut request = handshake();
        let websocket = StreamWebSocket::request(&mut request, Some(true)).ok().expect("offered");
        assert_eq!(request.method(), Method::CONNECT);
        assert_eq!(request.headers().len(), 1, "{:?}", request.headers());
        let failed = FailedAttempt::unsent(request, "closed".to_owned());
        let Err(FailedAttempt { unsent: Some(unsent), .. }) = websocket.answered(Err(failed))
        else {
            panic!("it was not sent");
        };
        assert_eq!((unsent.method(), unsent.headers()), (&Method::GET, handshake().headers()));
        assert!(unsent.extensions().get::<Protocol>().is_none());
    }

    #[test]
    fn nothing_is_requested_that_is_not_offered() {
        let requested = |offered| StreamWebSocket::request(&mut handshake(), offered).err();
        let refused = requested(Some(false)).expect("refused");
        assert!(matches!(refused.failure, UpstreamFailure::NoUpgrade) && refused.unsent.is_none());
        let unsent = requested(None).expect("ended").unsent.expect("the request");
        assert_eq!(unsent.headers(), handshake().headers());
    }
}
