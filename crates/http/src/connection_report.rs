//! Details of a connection that carries requests.

use std::{fmt, sync::Arc};

use eyas::{
    ConnectionFeedback, ConnectionInfo, RaceRecording,
    race::{
        evidence::{AttemptFailure, EvidenceLevel, FailureCause},
        trace::Trace,
    },
};

use crate::{Error, alt_svc::Service};

/// The details of a connection and of the race that led to it.
pub(crate) struct ConnectionReport {
    info: Arc<ConnectionInfo>,
    feedback: ConnectionFeedback,
    alternative: Option<Service>,
    recording: RaceRecording,
}

impl ConnectionReport {
    pub(crate) fn new(
        info: Arc<ConnectionInfo>,
        feedback: ConnectionFeedback,
        recording: RaceRecording,
    ) -> Self {
        Self { info, feedback, alternative: None, recording }
    }

    /// Marks the connection as one to an alternative service.
    pub(crate) fn of_alternative(mut self, service: &Service) -> Self {
        self.add_reason(format!("the origin announced the alternative {service}"));
        self.alternative = Some(service.clone());
        self
    }

    /// Notes that the request was sent before the handshake was complete.
    pub(crate) fn sent_early(mut self) -> Self {
        self.add_reason("the request was sent as 0-RTT data, as asked".to_owned());
        self
    }

    /// Returns what belongs to the candidate rather than to this connection.
    pub(crate) fn handles(&self) -> (RaceRecording, ConnectionFeedback) {
        (self.recording.clone(), self.feedback.clone())
    }

    /// Notes that the connection leads through a proxy.
    pub(crate) fn through_proxy(mut self, proxy: &str) -> Self {
        self.add_reason(format!("TCP only: the peer is reached through the proxy {proxy}"));
        self
    }

    fn add_reason(&mut self, reason: String) {
        Arc::make_mut(&mut self.info).reasons.push(reason);
    }

    pub(crate) fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    pub(crate) fn alternative(&self) -> Option<&Service> {
        self.alternative.as_ref()
    }

    pub(crate) fn trace(&self) -> Trace {
        self.recording.trace()
    }

    /// Records that the peer's application has answered.
    pub(crate) fn first_byte_seen(&self) {
        self.feedback.first_byte_seen();
    }

    /// Reports to the memory that the connection was established and then ended without a response.
    pub(crate) fn failed(&self, error: &Error) {
        self.report_failure(
            error.path_failure().unwrap_or(FailureCause::Reset),
            EvidenceLevel::Security,
            error,
        );
    }

    /// Reports to the memory that the connection ended in the middle of a response, if that is
    /// informative about the path.
    pub(crate) fn failed_in_body(&self, error: &Error) {
        if let Some(cause) = error.path_failure() {
            self.report_failure(cause, EvidenceLevel::FirstByte, error);
        }
    }

    /// Reports to the memory that the peer fell silent after it had answered, and that it could not
    /// be reached again either.
    pub(crate) fn fell_silent(&self, detail: String) {
        self.feedback.broke(AttemptFailure::new(
            FailureCause::Silent,
            EvidenceLevel::FirstByte,
            detail,
        ));
    }

    fn report_failure(&self, cause: FailureCause, reached: EvidenceLevel, error: &Error) {
        self.feedback.broke(AttemptFailure::new(cause, reached, error.detail().to_owned()));
    }
}

impl fmt::Display for ConnectionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.info.transport, self.info.remote)
    }
}

impl fmt::Debug for ConnectionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionReport").field("info", &self.info).finish_non_exhaustive()
    }
}
