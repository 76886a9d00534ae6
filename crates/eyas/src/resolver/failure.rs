//! Why DNS returned no records.

use eyas_race::dns::DnsFailure;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;

/// Classifies the failures that the race and the user treat differently.
pub(super) fn classify(error: &NetError) -> DnsFailure {
    match error {
        NetError::Dns(error) => response_failure(error),
        NetError::Timeout => DnsFailure::Timeout,
        NetError::NoConnections | NetError::Busy => DnsFailure::Unreachable,
        NetError::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => DnsFailure::Timeout,
        NetError::Io(_) => DnsFailure::Unreachable,
        NetError::Proto(_) => DnsFailure::Malformed,
        other => {
            tracing::debug!(error = %other, "DNS query failed");
            DnsFailure::ServerFailure
        }
    }
}

fn response_failure(error: &DnsError) -> DnsFailure {
    match error {
        DnsError::NoRecordsFound(none) => match none.response_code {
            ResponseCode::NoError => DnsFailure::NoData,
            ResponseCode::NXDomain => DnsFailure::NoSuchName,
            _ => DnsFailure::ServerFailure,
        },
        _ => DnsFailure::ServerFailure,
    }
}
