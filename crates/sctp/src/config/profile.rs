//! Published sets of options, for reproducing published results.

use super::AssociationConfig;

mod pfldnet2010;

/// A published set of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MultipathProfile {
    /// Dreibholz, Seggelmann, Tüxen, Rathgeb: Transmission Scheduling Optimizations for Concurrent
    /// Multipath Transfer, PFLDNeT 2010. The paper leaves some options open; [`Self::choices`]
    /// gives the source of each.
    Pfldnet2010,
}

/// One choice of a profile, in readable form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProfileChoice {
    /// The name: an option of [`AssociationConfig`] or of [`super::MultipathConfig`], or a property of
    /// the application.
    pub name: &'static str,
    /// The value.
    pub value: &'static str,
    /// The source.
    pub source: &'static str,
    /// Whether it is supported only by a fit to the published results (printed as †).
    pub fitted: bool,
}

impl MultipathProfile {
    /// Sets the options of an association. Buffer sizes, numbers of streams and the stream mapping
    /// are left to the experiment.
    pub fn apply(self, config: &mut AssociationConfig) {
        match self {
            Self::Pfldnet2010 => pfldnet2010::apply(config),
        }
    }

    /// Returns all choices with their sources, including those that concern the application.
    #[must_use]
    pub const fn choices(self) -> &'static [ProfileChoice] {
        match self {
            Self::Pfldnet2010 => &pfldnet2010::CHOICES,
        }
    }
}

#[cfg(test)]
mod tests;
