//! Why a simulated set-up cannot be run, in the terms of a plan.

use eyas_emulator::MiddleboxSpecError;

/// Options of an association that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssociationSetupError {
    /// The scheduler goes by a value of each stream.
    #[error(
        "association.scheduler: priority and weighted-fair-queueing go by a value of each stream, which a plan \
         cannot give; take another one"
    )]
    Scheduler,
}

/// A path that cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathSetupError {
    /// There are two descriptions of its rate.
    #[error("give one of rate, trace")]
    RateAndTrace,
    /// Nothing would ever be sent.
    #[error("rate and back.rate must be above 0")]
    NoRate,
    /// A property that the way back cannot have apart.
    #[error(
        "back has rate, trace, delay, jitter, queue, framing, loss (with bit_errors), duplicate and reorder"
    )]
    Back,
    /// One of its middleboxes is invalid.
    #[error(transparent)]
    Middlebox(#[from] MiddleboxSpecError),
}

/// A set-up that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// There is no path, or there are too many.
    #[error("there must be 1 to {most} paths, [path.NAME]")]
    Paths {
        /// The maximum number.
        most: usize,
    },
    /// A path is invalid.
    #[error("path.{name}: {cause}")]
    Path {
        /// Its name.
        name: String,
        /// What is invalid.
        cause: PathSetupError,
    },
    /// A path is named that does not exist.
    #[error("{place} names path {name:?}; there are {known}")]
    UnknownPath {
        /// Where it is named.
        place: String,
        /// The name.
        name: String,
        /// The names of all paths.
        known: String,
    },
    /// The path through which another one leads has no link of its own.
    #[error("path.{name}.through names a path without its own link")]
    Through {
        /// The other one.
        name: String,
    },
    /// An association's options are invalid.
    #[error(transparent)]
    Association(#[from] AssociationSetupError),
    /// A rival has only a path that does not exist from the start.
    #[error("rival.{name} has only path {path:?}, which joins")]
    RivalJoins {
        /// The name of the rival.
        name: String,
        /// The path.
        path: String,
    },
    /// All paths of the association join later.
    #[error("the association needs a path that exists from the start")]
    AllJoin,
    /// The warm-up ends before the association has started.
    #[error("time.warm_up must be after time.start, which goes upwards")]
    WarmUp,
    /// Nothing is measured.
    #[error("time.duration must be above 0")]
    Duration,
    /// Messages have no possible size, or there is no stream.
    #[error("application.message must be 16 to 65536, streams above 0")]
    Message,
    /// There is no time between keystrokes.
    #[error("application.keystrokes must be above 0")]
    Keystrokes,
}

/// Random networks that cannot be drawn or simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RandomSetupError {
    #[error("random.{0} must go upwards from above 0")]
    Range(&'static str),
    #[error("random: lines must be 2 to 9, ratio above 0, loss not empty")]
    Lines,
    /// A drawn one is invalid.
    #[error(transparent)]
    Network(#[from] SetupError),
}
