//! Systems where SCTP is not sent directly over IP.

use super::{DirectAccess, DirectAccessError};

pub(super) fn detect() -> Result<DirectAccess, DirectAccessError> {
    Err(DirectAccessError::NotLinux)
}

#[cfg(test)]
mod tests {
    use crate::{DirectAccessError, Wires, direct_access};

    #[test]
    fn what_is_absent_is_named() {
        assert_eq!(direct_access(), Err(DirectAccessError::NotLinux));
        let error = Wires::raw(&[]).unwrap_err();
        assert!(error.to_string().contains("Linux"), "{error}");
    }
}
