//! Why the value of a flag is refused. clap adds the value and the flag.

use eyas::race::candidate::Transport;
use eyas::race::target::TargetError;
use eyas_emulator::units::ParseAmountError;

/// The error of parsing the value of a flag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    /// It has not this form.
    #[error("expected {0}")]
    Form(&'static str),
    /// A part of it, or all, is not of this kind.
    #[error("{part:?} is not {kind}; expected {form}")]
    Part { part: String, kind: &'static str, form: &'static str },
    /// It has the form, but makes no sense.
    #[error("{reason}; expected {form}")]
    Senseless { reason: &'static str, form: &'static str },
    #[error("longer than ten years")]
    LongerThanTenYears,
    #[error(
        "no such transport; the transports are {}",
        Transport::ALL.map(Transport::name).join(", ")
    )]
    UnknownTransport,
    #[error("no such group; the groups are X25519MLKEM768, X25519, P-256, P-384")]
    UnknownGroup,
    /// The zone of an address does not exist here.
    #[error(transparent)]
    Zone(TargetError),
    #[error("{reason}; expected a URL such as https://dns.example/dns-query")]
    Resolver { reason: String },
    /// The text of the error from the system.
    #[error("cannot resolve {name}: {cause}")]
    Unresolved { name: String, cause: String },
    #[error("{0} has no address of this host")]
    NotOfThisHost(String),
    #[error("more than {0} addresses")]
    ManyAddresses(u32),
    #[error(transparent)]
    Amount(#[from] ParseAmountError),
}

impl ValueError {
    /// For `map_err`: a part that is not of this kind, where this form was expected.
    pub(super) fn part(part: &str, kind: &'static str, form: &'static str) -> Self {
        Self::Part { part: part.to_owned(), kind, form }
    }

    /// Returns what is wrong with an address: its zone, or its form.
    pub(super) fn address(cause: TargetError, otherwise: Self) -> Self {
        match cause {
            TargetError::Scope(_) | TargetError::Interface(_) => Self::Zone(cause),
            _ => otherwise,
        }
    }
}
