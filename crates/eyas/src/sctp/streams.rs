//! Further streams of an association as byte streams, with the security of the first.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use eyas_race::candidate::Security;
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use eyas_sctp_tokio::protocol::identifier::StreamId;
use eyas_sctp_tokio::{SctpAssociation, SctpMessages};

use super::attempt_failure;
use super::secured::{Role, Secured};
use crate::byte_stream::{ByteStream, ByteTransport};
use crate::connection_info::ConnectionInfo;
use crate::failure::failure;
use crate::feedback::ConnectionFeedback;

/// Opens byte streams over the further streams of an association, even after the
/// [`Connection`](crate::Connection) has been converted into a stream. Cheap to clone; it keeps the
/// association open.
#[derive(Clone)]
pub struct SctpStreams {
    pub(crate) association: SctpAssociation,
    /// How streams are secured; `None` if the association has no security, or DTLS below it.
    pub(crate) role: Option<Role>,
    pub(crate) info: Arc<ConnectionInfo>,
    pub(crate) feedback: ConnectionFeedback,
}

impl SctpStreams {
    /// Returns the association whose streams they are.
    pub fn association(&self) -> &SctpAssociation {
        &self.association
    }

    /// Opens this pair of streams as one byte stream, in a TLS session of its own if the connection
    /// uses TLS (RFC 3436 §4). The peer must do the same with the same number and present the same
    /// certificate as on stream 0, because nothing else ties the sessions to one another.
    ///
    /// # Errors
    /// If the streams are in use, the handshake fails, or another peer answers it.
    pub async fn stream(&self, stream: StreamId) -> Result<ByteStream, AttemptFailure> {
        let opened = self.association.stream(stream);
        let opened = opened.map_err(|error| attempt_failure(&error, EvidenceLevel::Transport))?;
        let transport = match &self.role {
            None => ByteTransport::Sctp(Box::new(opened)),
            Some(role) => {
                let tls = role.secure(opened).await?;
                let certificate = tls.get_ref().1.peer_certificates().and_then(<[_]>::first);
                if certificate != self.info.peer_certificates.first() {
                    let detail = format!(
                        "a different peer than on stream 0 responds on stream {}",
                        stream.0
                    );
                    return Err(failure(
                        FailureCause::Certificate,
                        EvidenceLevel::Transport,
                        detail,
                    ));
                }
                ByteTransport::SctpTls(Box::new(Secured::new(tls, role.clone())))
            }
        };
        let (info, feedback) = (Arc::clone(&self.info), self.feedback.clone());
        Ok(ByteStream::new(transport, info, feedback, Bytes::new()))
    }

    /// Uses this pair of streams for messages instead of bytes. The peer must use the pair with the
    /// same number, before anything is sent on it.
    ///
    /// # Errors
    /// If the association is not inside DTLS, because TLS on its streams does not protect messages;
    /// if the peer does not support partial reliability (RFC 3758), or if there is no such pair of
    /// streams or it is in use.
    pub fn messages(&self, stream: StreamId) -> Result<SctpMessages, AttemptFailure> {
        if self.info.security != Security::Dtls {
            let detail = "messages need DTLS below the association";
            return Err(failure(FailureCause::Unsupported, EvidenceLevel::Transport, detail));
        }
        let messages = self.association.messages(stream);
        messages.map_err(|error| attempt_failure(&error, EvidenceLevel::Transport))
    }
}

impl fmt::Debug for SctpStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SctpStreams")
            .field("association", &self.association)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerIdentity;
    use crate::sctp::secured_pair::pair;

    //= hostile tunnel
    //# another key on a further SCTP stream
    //= bound: the stream is refused
    #[tokio::test]
    async fn a_further_stream_from_another_peer_is_refused() {
        let (_listener, ours, theirs) = pair().await;
        let ours = ours.sctp_streams().expect("streams");
        let theirs = theirs.sctp_streams().expect("streams");
        let other = ServerIdentity::self_signed(["other.test"]).expect("an identity");
        // As if a different peer had responded on stream 0.
        let mut impostor = ours.clone();
        let peer_certificates = vec![other.certificate().clone()];
        impostor.info = Arc::new(ConnectionInfo { peer_certificates, ..(*ours.info).clone() });
        let (refused, _) = tokio::join!(impostor.stream(StreamId(1)), theirs.stream(StreamId(1)));
        assert_eq!(refused.expect_err("a different peer").cause, FailureCause::Certificate);
        let (stream, _) = tokio::join!(ours.stream(StreamId(2)), theirs.stream(StreamId(2)));
        stream.expect("the same peer");
    }
}
