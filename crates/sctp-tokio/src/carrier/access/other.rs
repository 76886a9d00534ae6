//! Systems where SCTP is not sent directly over IP.

use super::DirectAccess;

/// Why.
pub(crate) const NOT_DIRECT: &str =
    "SCTP directly over IP (protocol 132) is there on Linux only; SCTP inside UDP needs nothing";

pub(super) fn detect() -> Result<DirectAccess, String> {
    Err(NOT_DIRECT.into())
}

#[cfg(test)]
mod tests {
    use crate::{Wires, direct_access};

    #[test]
    fn what_is_absent_is_named() {
        assert_eq!(direct_access(), Err(super::NOT_DIRECT));
        let error = Wires::raw(&[]).unwrap_err();
        assert!(error.to_string().contains("Linux"), "{error}");
    }
}
