//! Parameters of unknown types.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.2.1>

use bytes::Bytes;

use super::{Parameter, ParameterType};
use crate::wire::UnknownAction;

/// A received parameter of unknown type, which may have to be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownParameter {
    /// Its type.
    pub parameter_type: ParameterType,
    /// The content after type and length.
    pub value: Bytes,
}

impl UnknownParameter {
    /// Returns the action that its type requests.
    #[must_use]
    pub const fn action(&self) -> UnknownAction {
        UnknownAction::of_parameter(self.parameter_type)
    }

    /// Returns the parameter with type and length, for [`Parameter::Unrecognized`].
    #[must_use]
    pub fn whole(&self) -> Bytes {
        Parameter::Unknown(self.clone()).to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parameter::tests::{parse_one, round_trip};

    #[test]
    fn an_unknown_parameter_is_kept_as_it_is() {
        let bytes = [0x40, 0x77, 0, 7, 1, 2, 3];
        let Parameter::Unknown(unknown) = parse_one(&bytes) else { panic!("0x4077 is not known") };
        assert_eq!(unknown.parameter_type, ParameterType(0x4077));
        assert_eq!(unknown.whole()[..], bytes);
        assert_eq!(unknown.action(), UnknownAction::StopAndReport);
        round_trip(&bytes);
    }
}
