//! In which order HTTP/3 and the older versions are tried.

/// How a client comes to a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpPolicy {
    /// HTTP/3 races HTTP over TCP; `Alt-Svc` fields are not used.
    #[default]
    Race,
    /// RFC 7838 alone, as browsers did it: TCP first; once an `Alt-Svc` field has named an
    /// alternative, the next request goes there.
    AltSvc,
    /// One candidate after another: QUIC first, TCP when it has failed.
    Serial,
    /// The race, with the alternatives of `Alt-Svc` fields beside it.
    RaceAltSvc,
}

impl HttpPolicy {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Race, Self::AltSvc, Self::Serial, Self::RaceAltSvc];

    /// The name used on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::AltSvc => "alt-svc",
            Self::Serial => "serial",
            Self::RaceAltSvc => "race+alt-svc",
        }
    }

    /// The policy of that [name](Self::name).
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
