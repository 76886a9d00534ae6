//! Where a query goes. Pure.

/// Whom a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum NameOwner {
    /// The public DNS.
    Public,
    /// The network, whose own server may be the only one that knows the name.
    Network,
    /// The protocol itself, by which a client learns about its network. Such a query tells nobody what its user wants.
    Protocol,
}

/// Whether queries are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum EncryptionMode {
    #[default]
    Off,
    Auto,
    Required,
}

/// What is known of the encrypted resolver of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ResolverState {
    /// It is still looked for, for longer than a query waits.
    Sought,
    /// There is none, or none that can be used, or it did not answer of late.
    Absent,
    /// It is there.
    Found {
        /// Whether it has proved who it is.
        is_verified: bool,
    },
}

/// Where a query goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum QueryWay {
    /// To the server, unencrypted.
    Clear,
    /// To its encrypted resolver.
    Encrypted,
    /// Nowhere.
    Refused,
}

impl EncryptionMode {
    /// Returns whether a query about such a name depends on what is known of an encrypted resolver.
    pub(in super::super) const fn asks_resolver(self, owner: NameOwner) -> bool {
        match (self, owner) {
            (Self::Off, _) | (_, NameOwner::Protocol) | (Self::Auto, NameOwner::Network) => false,
            (Self::Auto, NameOwner::Public)
            | (Self::Required, NameOwner::Public | NameOwner::Network) => true,
        }
    }

    /// Returns where a query about such a name goes.
    pub(in super::super) const fn way(self, owner: NameOwner, resolver: ResolverState) -> QueryWay {
        if !self.asks_resolver(owner) {
            return QueryWay::Clear;
        }
        match (self, resolver) {
            (Self::Required, ResolverState::Found { is_verified: true }) => QueryWay::Encrypted,
            (Self::Required, _) => QueryWay::Refused,
            (_, ResolverState::Found { .. }) => QueryWay::Encrypted,
            (_, ResolverState::Sought | ResolverState::Absent) => QueryWay::Clear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNERS: [NameOwner; 3] = [NameOwner::Public, NameOwner::Network, NameOwner::Protocol];
    const STATES: [ResolverState; 4] = [
        ResolverState::Sought,
        ResolverState::Absent,
        ResolverState::Found { is_verified: false },
        ResolverState::Found { is_verified: true },
    ];

    #[test]
    fn no_name_of_a_user_leaks_where_encryption_is_required() {
        for (owner, state) in
            OWNERS.into_iter().flat_map(|owner| STATES.map(|state| (owner, state)))
        {
            let way = EncryptionMode::Required.way(owner, state);
            let is_proved = state == ResolverState::Found { is_verified: true };
            match owner {
                NameOwner::Protocol => assert_eq!(way, QueryWay::Clear),
                _ if is_proved => assert_eq!(way, QueryWay::Encrypted),
                _ => assert_eq!(way, QueryWay::Refused, "{owner:?} {state:?}"),
            }
        }
    }

    #[test]
    fn nothing_fails_where_encryption_is_only_wished_for() {
        for (owner, state) in
            OWNERS.into_iter().flat_map(|owner| STATES.map(|state| (owner, state)))
        {
            assert_eq!(EncryptionMode::Off.way(owner, state), QueryWay::Clear);
            let is_found = matches!(state, ResolverState::Found { .. });
            let expected = match owner {
                NameOwner::Public if is_found => QueryWay::Encrypted,
                _ => QueryWay::Clear,
            };
            assert_eq!(EncryptionMode::Auto.way(owner, state), expected, "{owner:?} {state:?}");
        }
    }
}
