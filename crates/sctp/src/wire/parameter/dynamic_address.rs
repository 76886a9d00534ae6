//! Requests and responses of ASCONF.
//!
//! <https://www.rfc-editor.org/rfc/rfc5061#section-4.2>
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! | Type = 0xC001, C002 or C004   |            Length             |
//! +-------------------------------+-------------------------------+
//! |              ASCONF-Request Correlation ID                    |
//! +---------------------------------------------------------------+
//! \               Address Parameter (IPv4 or IPv6)                \
//! +---------------------------------------------------------------+
//!
//! +-------------------------------+-------------------------------+
//! |         Type = 0xC003         |            Length             |
//! +-------------------------------+-------------------------------+
//! |              ASCONF-Response Correlation ID                   |
//! +---------------------------------------------------------------+
//! \                       Error Cause(s)                          \
//! +---------------------------------------------------------------+
//!
//! +-------------------------------+-------------------------------+
//! |         Type = 0xC005         |          Length = 8           |
//! +-------------------------------+-------------------------------+
//! |              ASCONF-Response Correlation ID                   |
//! +---------------------------------------------------------------+
//! ```

use bytes::BytesMut;
use core::net::IpAddr;

use super::{ELEMENT_HEADER, PacketView, Parameter, ParameterType, address};
use crate::wire::Causes;
use crate::wire::records::WireRecord;
use crate::wire::walker::{ElementWalker, WalkerStep};

/// The length of a parameter up to and including its correlation identifier.
const FIXED: usize = ELEMENT_HEADER + 4;

/// A request about one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRequest {
    /// The correlation identifier.
    pub correlation: u32,
    /// The address; if unspecified (`0.0.0.0` or `::`), the source of the packet.
    pub address: IpAddr,
}

impl AddressRequest {
    fn parse(parameter: PacketView<'_>) -> Option<Self> {
        let correlation = parameter.u32_at(ELEMENT_HEADER)?;
        match ElementWalker::new(parameter.skip(FIXED)?).next()? {
            WalkerStep::Element(inner) => {
                Some(Self { correlation, address: address::parse(inner)? })
            }
            WalkerStep::Broken(_) => None,
        }
    }

    pub(super) fn encode_value(&self, buffer: &mut BytesMut) {
        self.correlation.write(buffer);
        Parameter::Address(self.address).encode(buffer);
    }
}

pub(super) fn parse(parameter_type: ParameterType, parameter: PacketView<'_>) -> Option<Parameter> {
    Some(match parameter_type {
        ParameterType::ADD_ADDRESS => Parameter::AddAddress(AddressRequest::parse(parameter)?),
        ParameterType::DELETE_ADDRESS => {
            Parameter::DeleteAddress(AddressRequest::parse(parameter)?)
        }
        ParameterType::SET_PRIMARY_ADDRESS => {
            Parameter::SetPrimaryAddress(AddressRequest::parse(parameter)?)
        }
        ParameterType::ERROR_CAUSE_INDICATION => Parameter::ErrorCauseIndication {
            correlation: parameter.u32_at(ELEMENT_HEADER)?,
            causes: Causes::from_bytes(parameter.skip(FIXED)?.share()),
        },
        ParameterType::SUCCESS_INDICATION => {
            Parameter::SuccessIndication { correlation: parameter.u32_at(ELEMENT_HEADER)? }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ErrorCause;
    use crate::wire::parameter::tests::{parse_one, round_trip};

    #[test]
    fn requests_name_an_address() {
        let request = AddressRequest { correlation: 9, address: [10, 0, 0, 2].into() };
        let mut bytes = [0xc0, 1, 0, 16, 0, 0, 0, 9, 0, 5, 0, 8, 10, 0, 0, 2];
        for (number, expected) in [
            (1, Parameter::AddAddress(request)),
            (2, Parameter::DeleteAddress(request)),
            (4, Parameter::SetPrimaryAddress(request)),
        ] {
            bytes[1] = number;
            assert_eq!(parse_one(&bytes), expected);
            round_trip(&bytes);
        }
    }

    #[test]
    fn an_address_that_is_longer_than_its_request_is_malformed() {
        let outside = [0xc0, 1, 0, 12, 0, 0, 0, 9, 0, 5, 0, 8];
        let other = [0xc0, 1, 0, 16, 0, 0, 0, 9, 0, 7, 0, 8, 10, 0, 0, 2];
        let none = [0xc0, 1, 0, 8, 0, 0, 0, 9];
        for bytes in [&outside[..], &other, &none] {
            let malformed = Parameter::Malformed { parameter_type: ParameterType::ADD_ADDRESS };
            assert_eq!(parse_one(bytes), malformed);
        }
    }

    #[test]
    fn responses_name_a_request() {
        let success = [0xc0, 5, 0, 8, 0, 0, 0, 9];
        assert_eq!(parse_one(&success), Parameter::SuccessIndication { correlation: 9 });
        round_trip(&success);
        let refused = [0xc0, 3, 0, 12, 0, 0, 0, 9, 0, 4, 0, 4];
        let causes = [ErrorCause::OutOfResource].into_iter().collect();
        assert_eq!(parse_one(&refused), Parameter::ErrorCauseIndication { correlation: 9, causes });
        round_trip(&refused);
    }
}
