//! Details of an exchange.

use std::sync::Arc;

use url::Url;

use super::Redirect;
use crate::connection_report::ConnectionReport;

/// The details of an exchange, apart from its response.
#[derive(Debug)]
pub(super) struct Exchanged {
    pub(super) report: Arc<ConnectionReport>,
    pub(super) url: Url,
    pub(super) redirected: Vec<Redirect>,
    pub(super) reused: bool,
}
