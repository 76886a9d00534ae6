//! A choice between a built-in algorithm and one supplied by the caller.

use alloc::sync::Arc;
use core::fmt;

/// A built-in algorithm, by its kind, or the caller's own, by its factory.
///
/// ```
/// use eyas_sctp::config::{AssociationConfig, CongestionControlKind};
///
/// let mut config = AssociationConfig::default();
/// config.congestion_control = CongestionControlKind::Bbr.into();
/// ```
pub enum AlgorithmSelection<K, F: ?Sized> {
    /// A built-in algorithm.
    BuiltIn(K),
    /// The caller's own.
    Custom(Arc<F>),
}

impl<K, F: ?Sized> From<K> for AlgorithmSelection<K, F> {
    fn from(kind: K) -> Self {
        Self::BuiltIn(kind)
    }
}

impl<K: Default, F: ?Sized> Default for AlgorithmSelection<K, F> {
    fn default() -> Self {
        Self::BuiltIn(K::default())
    }
}

impl<K: Clone, F: ?Sized> Clone for AlgorithmSelection<K, F> {
    fn clone(&self) -> Self {
        match self {
            Self::BuiltIn(kind) => Self::BuiltIn(kind.clone()),
            Self::Custom(factory) => Self::Custom(Arc::clone(factory)),
        }
    }
}

/// Custom selections are equal if they share the same factory.
impl<K: PartialEq, F: ?Sized> PartialEq for AlgorithmSelection<K, F> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BuiltIn(one), Self::BuiltIn(other)) => one == other,
            (Self::Custom(one), Self::Custom(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl<K: fmt::Debug, F: ?Sized + fmt::Debug> fmt::Debug for AlgorithmSelection<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(kind) => kind.fmt(f),
            Self::Custom(factory) => factory.fmt(f),
        }
    }
}
