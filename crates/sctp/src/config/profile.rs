//! Published sets of choices, so that published results can be had again.

use super::AssociationConfig;

mod pfldnet2010;

/// A published set of choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Dreibholz, Seggelmann, Tüxen, Rathgeb: Transmission Scheduling Optimizations for Concurrent
    /// Multipath Transfer, PFLDNeT 2010. The paper leaves some choices open; [`Self::choices`] says
    /// where each one is from.
    Pfldnet2010,
}

/// One choice of a profile, as a person may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// What is chosen: an option of [`AssociationConfig`] or of [`super::Multipath`], or what the
    /// application does.
    pub name: &'static str,
    /// What it is set to.
    pub value: &'static str,
    /// Where that is from.
    pub source: &'static str,
    /// Whether nothing but a fit to the published results speaks for it (printed as †).
    pub fitted: bool,
}

impl Profile {
    /// Sets the options of an association. Sizes of buffers, numbers of streams and the stream
    /// mapping are the experiment's and stay as they are.
    pub fn apply(self, config: &mut AssociationConfig) {
        match self {
            Self::Pfldnet2010 => pfldnet2010::apply(config),
        }
    }

    /// All that was chosen, also what is the application's to do, with its sources.
    #[must_use]
    pub const fn choices(self) -> &'static [Choice] {
        match self {
            Self::Pfldnet2010 => &pfldnet2010::CHOICES,
        }
    }
}

#[cfg(test)]
mod tests;
