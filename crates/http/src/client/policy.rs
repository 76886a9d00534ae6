//! How HTTP/3 and the older versions are tried.

/// How a client tries HTTP/3 and the older versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpPolicy {
    /// HTTP/3 races HTTP over TCP; `Alt-Svc` fields are ignored.
    #[default]
    Race,
    /// RFC 7838 only, as browsers used to do: TCP first; once an `Alt-Svc` field has named an
    /// alternative, the next request uses it.
    AltSvc,
    /// One candidate after another: QUIC first, then TCP if QUIC failed.
    Serial,
    /// The race, and alternatives from `Alt-Svc` fields in addition.
    RaceAltSvc,
}

impl HttpPolicy {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::Race, Self::AltSvc, Self::Serial, Self::RaceAltSvc];

    /// Returns the name used on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::AltSvc => "alt-svc",
            Self::Serial => "serial",
            Self::RaceAltSvc => "race+alt-svc",
        }
    }

    /// Returns the policy with this [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    pub(super) const fn uses_alt_svc(self) -> bool {
        matches!(self, Self::AltSvc | Self::RaceAltSvc)
    }
}

impl std::fmt::Display for HttpPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
