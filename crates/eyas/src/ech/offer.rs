//! What an attempt offers, first and after a rejection (RFC 9849 §6.1, §6.1.6).
//!
//! The name of the server is sent in the clear only if ECH is off; if the server has no configurations that can be used
//! here; or if the server, with a certificate of its public name, says that it has turned ECH off. And never if ECH is
//! required.

use std::sync::{Mutex, PoisonError};

use eyas_race::candidate::Security;
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use rustls::client::{EchConfig, EchGreaseConfig, EchMode};
use rustls::crypto::hpke::HpkePublicKey;
use thiserror::Error;

use super::configs::rejection;
use super::hpke::GreaseSuite;
use super::{EchConfigList, EchOutcome, EchPolicy};

/// What a ClientHello offers.
#[derive(Clone, Debug, Default)]
pub(crate) enum EchOffer {
    /// Nothing: the name is in the clear.
    #[default]
    Nothing,
    /// An extension that looks like ECH, beside the name in the clear.
    Grease,
    /// The name is encrypted with a configuration of this list.
    Encrypted(Box<EchConfig>, EchConfigList),
}

impl EchOffer {
    /// Returns the same for rustls.
    pub(crate) fn mode(&self) -> Option<EchMode> {
        match self {
            Self::Nothing => None,
            Self::Grease => {
                // The key takes no part in it.
                let key = HpkePublicKey(vec![0; 32]);
                Some(EchMode::Grease(EchGreaseConfig::new(&GreaseSuite, key)))
            }
            Self::Encrypted(config, _) => Some(EchMode::Enable((**config).clone())),
        }
    }
}

/// How the clients of an endpoint use ECH.
#[derive(Clone, Debug, Default)]
pub(crate) struct EchParameters {
    pub(crate) policy: EchPolicy,
    /// The configurations of every server, instead of those of its record.
    pub(crate) given: Option<EchConfigList>,
}

impl EchParameters {
    /// Returns whether the configurations are those of records.
    pub(crate) fn wants_records(&self) -> bool {
        self.policy != EchPolicy::Off && self.given.is_none()
    }
}

/// What a server answered that did not accept ECH, and proved to be its public name: configurations for another attempt,
/// if it has any.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EchRejection(Option<EchConfigList>);

/// Why an attempt goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum EchFault {
    #[error(
        "the ECH configuration of its record is malformed, so its name is not sent in the clear either"
    )]
    Malformed,
    #[error("Encrypted ClientHello is required, and it has no configuration for it")]
    NotOffered,
    #[error("Encrypted ClientHello is required, and DTLS does not have it")]
    NoEchInDtls,
    #[error("its record asks for Encrypted ClientHello, which DTLS does not have")]
    EchAskedOfDtls,
    #[error("it has turned Encrypted ClientHello off, which is required")]
    TurnedOff,
    #[error("it does not accept the ECH configuration that was given")]
    Rejected,
    #[error(
        "it accepts neither the ECH configuration of its record nor the one that it sent instead"
    )]
    RejectedTwice,
}

/// Where an attempt stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EchStage {
    /// Nothing was rejected.
    #[default]
    First,
    /// The server has sent other configurations.
    Retry,
    /// The server has turned ECH off.
    TurnedOff,
}

/// ECH in one attempt, over the connections that it takes.
#[derive(Debug, Default)]
pub(crate) struct EchAttempt {
    policy: EchPolicy,
    offer: EchOffer,
    stage: EchStage,
    /// Whether the record has configurations, and none of a known kind.
    is_unknown: bool,
    rejection: Mutex<Option<EchRejection>>,
}

impl EchAttempt {
    /// Decides what a server is offered first whose record has these configurations, or none. GREASE needs a ClientHello
    /// of TLS 1.3 alone.
    pub(crate) fn begin(
        security: Security,
        record: Option<&[u8]>,
        parameters: &EchParameters,
        has_tls13_alone: bool,
    ) -> Result<Self, AttemptFailure> {
        let policy = parameters.policy;
        let wanted = match (security, policy) {
            (Security::None, _) | (_, EchPolicy::Off) => return Ok(Self::default()),
            (Security::Dtls, EchPolicy::Required) => return Err(EchFault::NoEchInDtls.into()),
            (Security::Dtls, EchPolicy::Auto) => {
                return match record {
                    Some(_) => Err(EchFault::EchAskedOfDtls.into()),
                    None => Ok(Self::default()),
                };
            }
            (Security::Tls, _) => match &parameters.given {
                Some(given) => Some(given.clone()),
                None => {
                    let record = record.map(EchConfigList::from_bytes).transpose();
                    record.map_err(|_| EchFault::Malformed)?
                }
            },
        };
        let usable = wanted.as_ref().and_then(EchConfigList::usable);
        let is_unknown = wanted.is_some() && usable.is_none();
        let offer = match (usable, wanted, policy) {
            (Some(config), Some(list), _) => EchOffer::Encrypted(Box::new(config), list),
            (_, _, EchPolicy::Required) => return Err(EchFault::NotOffered.into()),
            _ if has_tls13_alone => EchOffer::Grease,
            _ => EchOffer::Nothing,
        };
        Ok(Self { policy, offer, is_unknown, ..Self::default() })
    }

    pub(crate) fn offer(&self) -> &EchOffer {
        &self.offer
    }

    /// Takes note of the error that ended a handshake, if it is that of a server which did not accept ECH.
    pub(crate) fn observe(&self, error: &rustls::Error) {
        if let Some(configs) = rejection(error) {
            *self.lock() = Some(EchRejection(configs));
        }
    }

    /// Decides what follows the failure of a handshake: returns whether another connection is to be made, with what is
    /// offered now.
    pub(crate) fn advance(&mut self) -> Result<bool, AttemptFailure> {
        let Some(EchRejection(configs)) = self.lock().take() else { return Ok(false) };
        if self.stage != EchStage::First {
            // RFC 9849 §6.1.6: "Clients SHOULD NOT accept "retry_config" in response to a connection initiated in
            // response to a "retry_config"."
            return Err(EchFault::RejectedTwice.into());
        }
        let usable = configs.and_then(|list| Some((Box::new(list.usable()?), list)));
        (self.stage, self.offer) = match usable {
            Some((config, list)) => (EchStage::Retry, EchOffer::Encrypted(config, list)),
            None if self.policy == EchPolicy::Required => return Err(EchFault::TurnedOff.into()),
            // "If none of the values provided in "retry_configs" contains a supported version, [...] the client can regard
            // ECH as securely disabled by the server, and it SHOULD retry the handshake with a new transport connection
            // and ECH disabled."
            None => (EchStage::TurnedOff, EchOffer::Nothing),
        };
        Ok(true)
    }

    /// Ends the attempt after the failure of a handshake where no other connection can be made.
    pub(crate) fn end(&self) -> Result<(), AttemptFailure> {
        self.lock().take().map_or(Ok(()), |_| Err(EchFault::Rejected.into()))
    }

    /// Returns what became of ECH in a handshake that succeeded. TLS fails one in which it was not accepted.
    pub(crate) fn outcome(&self) -> Option<EchOutcome> {
        match &self.offer {
            EchOffer::Encrypted(_, list) => Some(EchOutcome::Accepted(list.clone())),
            EchOffer::Grease => Some(EchOutcome::Grease),
            EchOffer::Nothing if self.stage == EchStage::TurnedOff => Some(EchOutcome::TurnedOff),
            EchOffer::Nothing => None,
        }
    }

    /// Returns what is worth knowing about that.
    pub(crate) fn note(&self) -> Option<&'static str> {
        match self.stage {
            EchStage::First if self.is_unknown => Some(
                "its record has configurations for Encrypted ClientHello, of kinds that are not known here: its name \
                 went out in the clear",
            ),
            EchStage::First => None,
            EchStage::Retry => Some(
                "the server has replaced the configuration for Encrypted ClientHello that its record still has",
            ),
            EchStage::TurnedOff => Some(
                "the server has turned Encrypted ClientHello off, though its record still has it: its name went out in \
                 the clear",
            ),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<EchRejection>> {
        self.rejection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<EchFault> for AttemptFailure {
    fn from(fault: EchFault) -> Self {
        let reached = match fault {
            EchFault::TurnedOff | EchFault::Rejected | EchFault::RejectedTwice => {
                EvidenceLevel::Transport
            }
            _ => EvidenceLevel::Started,
        };
        Self::new(FailureCause::Ech, reached, fault.to_string())
    }
}

#[cfg(test)]
mod tests;
