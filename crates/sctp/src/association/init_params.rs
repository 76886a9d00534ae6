//! What one side states in its INIT or INIT ACK (RFC 9260 §3.3.2, §3.3.3).

mod parse;

use alloc::vec::Vec;
use bytes::Bytes;
use core::{net::IpAddr, time::Duration};

use crate::auth::AuthOffer;
use crate::config::OfferedExtensions;
use crate::endpoint::AgreedExtensions;
use crate::identifier::VerificationTag;
use crate::serial::Tsn;
use crate::wire::parameter::SupportedAddressTypes;
use crate::wire::{ChunkType, InitChunk, Parameter, Parameters};

pub(crate) use parse::{InitRefusal, MIN_WINDOW, ParsedInit};

/// The error detection method of RFC 9653 §3 that stands for integrity protection by a lower layer:
/// DTLS.
const ERROR_DETECTION_LOWER_LAYER: u32 = 1;

/// The contents of one side's INIT or INIT ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InitParams {
    /// The tag that packets to this side must carry.
    pub(crate) tag: VerificationTag,
    /// Its receive window in bytes.
    pub(crate) window: u32,
    /// Streams it wants to send on.
    pub(crate) outbound: u16,
    /// Streams it allows the other side to send on.
    pub(crate) inbound: u16,
    /// The TSN of its first chunk of data.
    pub(crate) initial_tsn: Tsn,
    /// Its further addresses, filtered.
    pub(crate) addresses: Vec<IpAddr>,
    /// The extensions that it offers.
    pub(crate) offers: AgreedExtensions,
    /// What it requires to be authenticated, and how.
    pub(crate) authentication: Option<AuthOffer>,
}

impl InitParams {
    /// The parameters of a peer before its INIT ACK.
    pub(crate) fn unknown() -> Self {
        Self {
            tag: VerificationTag::ZERO,
            window: 0,
            outbound: 0,
            inbound: u16::MAX,
            initial_tsn: Tsn(0),
            addresses: Vec::new(),
            offers: AgreedExtensions::default(),
            authentication: None,
        }
    }

    /// Returns the INIT chunk for a peer at an IPv4 or IPv6 address.
    pub(crate) fn to_init(&self, preserve: Duration, ipv4: bool) -> InitChunk {
        let mut parameters = self.parameters();
        if !preserve.is_zero() {
            let increment = u32::try_from(preserve.as_millis()).unwrap_or(u32::MAX);
            parameters.push(Parameter::CookiePreservative { increment });
        }
        parameters.extend(self.address_types(ipv4).map(Parameter::SupportedAddressTypes));
        self.chunk(parameters)
    }

    /// Returns the INIT ACK chunk.
    pub(crate) fn to_init_ack(&self, cookie: Bytes, unrecognized: Vec<Bytes>) -> InitChunk {
        let mut parameters = alloc::vec![Parameter::StateCookie(cookie)];
        parameters.extend(self.parameters());
        parameters.extend(unrecognized.into_iter().map(Parameter::Unrecognized));
        self.chunk(parameters)
    }

    /// Returns the address types that this side can use, for a peer at an IPv4 or IPv6 address. The
    /// parameter is omitted by a host with a single address and by one that can use both types:
    /// that is what its absence means (RFC 9260 §3.3.2.1.5), and pion drops an INIT with this
    /// parameter, as it does one that lists addresses.
    fn address_types(&self, ipv4: bool) -> Option<SupportedAddressTypes> {
        if self.addresses.is_empty() {
            return None;
        }
        // A host that lists addresses of one family may still use the other.
        let listed = |v4: bool| self.addresses.iter().any(|address| address.is_ipv4() == v4);
        let types =
            SupportedAddressTypes { ipv4: ipv4 || listed(true), ipv6: !ipv4 || listed(false) };
        (types != SupportedAddressTypes::ALL).then_some(types)
    }

    fn chunk(&self, parameters: Vec<Parameter>) -> InitChunk {
        InitChunk {
            initiate_tag: self.tag,
            a_rwnd: self.window,
            outbound_streams: self.outbound,
            inbound_streams: self.inbound,
            initial_tsn: self.initial_tsn,
            parameters: parameters.into_iter().collect::<Parameters>(),
        }
    }

    fn parameters(&self) -> Vec<Parameter> {
        let mut parameters: Vec<Parameter> =
            self.addresses.iter().map(|address| Parameter::Address(*address)).collect();
        let offers = self.offers;
        if offers.ecn {
            parameters.push(Parameter::EcnCapable);
        }
        if offers.partial_reliability {
            parameters.push(Parameter::ForwardTsnSupported);
        }
        if offers.zero_checksum {
            let error_detection_method = ERROR_DETECTION_LOWER_LAYER;
            parameters.push(Parameter::ZeroChecksumAcceptable { error_detection_method });
        }
        let extensions = offers.extensions();
        if !extensions.is_empty() {
            parameters.push(Parameter::SupportedExtensions(extensions.into()));
        }
        if let Some(offer) = &self.authentication {
            parameters.extend(offer.parameters());
        }
        parameters
    }
}

impl AgreedExtensions {
    /// Returns the chunk types for Supported Extensions (RFC 5061 §4.2.7).
    fn extensions(self) -> Vec<u8> {
        let mut types = Vec::new();
        let mut list = |offered: bool, chunks: &[ChunkType]| {
            if offered {
                types.extend(chunks.iter().map(|chunk| chunk.0));
            }
        };
        list(self.partial_reliability, &[ChunkType::FORWARD_TSN]);
        list(self.reconfiguration, &[ChunkType::RE_CONFIG]);
        list(self.dynamic_addresses, &[ChunkType::ASCONF, ChunkType::ASCONF_ACK]);
        list(self.authentication, &[ChunkType::AUTH]);
        list(self.nr_sack, &[ChunkType::NR_SACK]);
        list(self.interleaving, &[ChunkType::I_DATA]);
        list(self.interleaving && self.partial_reliability, &[ChunkType::I_FORWARD_TSN]);
        types
    }

    /// Adds the extensions whose chunk types a Supported Extensions parameter lists.
    fn add_extensions(&mut self, types: &[u8]) {
        let has = |chunk: ChunkType| types.contains(&chunk.0);
        self.partial_reliability |= has(ChunkType::FORWARD_TSN);
        self.reconfiguration |= has(ChunkType::RE_CONFIG);
        self.dynamic_addresses |= has(ChunkType::ASCONF) && has(ChunkType::ASCONF_ACK);
        self.authentication |= has(ChunkType::AUTH);
        self.nr_sack |= has(ChunkType::NR_SACK);
        self.interleaving |= has(ChunkType::I_DATA);
    }

    /// Returns the extensions that both `self` and `other` have.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            interleaving: self.interleaving && other.interleaving,
            partial_reliability: self.partial_reliability && other.partial_reliability,
            reconfiguration: self.reconfiguration && other.reconfiguration,
            dynamic_addresses: self.dynamic_addresses && other.dynamic_addresses,
            authentication: self.authentication && other.authentication,
            nr_sack: self.nr_sack && other.nr_sack,
            ecn: self.ecn && other.ecn,
            zero_checksum: self.zero_checksum && other.zero_checksum,
        }
    }

    /// Encodes the extensions as one bit each, for the cookie.
    pub(crate) fn bits(self) -> u8 {
        u8::from(self.interleaving)
            | u8::from(self.partial_reliability) << 1
            | u8::from(self.reconfiguration) << 2
            | u8::from(self.dynamic_addresses) << 3
            | u8::from(self.authentication) << 4
            | u8::from(self.nr_sack) << 5
            | u8::from(self.ecn) << 6
            | u8::from(self.zero_checksum) << 7
    }

    /// The inverse of [`Self::bits`].
    pub(crate) fn from_bits(bits: u8) -> Self {
        let has = |shift: u8| bits >> shift & 1 == 1;
        Self {
            interleaving: has(0),
            partial_reliability: has(1),
            reconfiguration: has(2),
            dynamic_addresses: has(3),
            authentication: has(4),
            nr_sack: has(5),
            ecn: has(6),
            zero_checksum: has(7),
        }
    }
}

impl From<OfferedExtensions> for AgreedExtensions {
    /// Returns what a side with this configuration offers. ASCONF is never offered without AUTH
    /// (RFC 5061 §4.2.7).
    fn from(extensions: OfferedExtensions) -> Self {
        Self {
            interleaving: extensions.interleaving,
            partial_reliability: extensions.partial_reliability,
            reconfiguration: extensions.reconfiguration,
            dynamic_addresses: extensions.dynamic_addresses,
            authentication: extensions.authentication || extensions.dynamic_addresses,
            nr_sack: extensions.nr_sack,
            ecn: extensions.ecn,
            zero_checksum: extensions.zero_checksum,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use core::time::Duration;

    use super::InitParams;
    use crate::endpoint::AgreedExtensions;
    use crate::wire::Parameter;
    use crate::wire::parameter::SupportedAddressTypes;

    fn types(addresses: Vec<IpAddr>) -> Option<SupportedAddressTypes> {
        let own = InitParams { addresses, ..InitParams::unknown() };
        let init = own.to_init(Duration::ZERO, true);
        init.parameters.iter().find_map(|parameter| match parameter {
            Parameter::SupportedAddressTypes(types) => Some(types),
            _ => None,
        })
    }

    //= rfc8261 §6.1
    //# INIT lists neither addresses nor types
    #[test]
    fn only_a_host_with_several_addresses_of_a_family_lists_them() {
        let (ipv4, ipv6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
        assert_eq!(types(Vec::new()), None);
        assert_eq!(types(alloc::vec![ipv6]), None);
        assert_eq!(types(alloc::vec![ipv4, ipv6]), None);
        let only_ipv4 = SupportedAddressTypes { ipv4: true, ipv6: false };
        assert_eq!(types(alloc::vec![ipv4]), Some(only_ipv4));
    }

    #[test]
    fn every_bit_stands_for_one_extension() {
        for bit in 0..8 {
            assert_eq!(AgreedExtensions::from_bits(1 << bit).bits(), 1 << bit);
        }
        let both =
            AgreedExtensions::from_bits(0b1010_1010).and(AgreedExtensions::from_bits(0b0110_0110));
        assert_eq!(both.bits(), 0b0010_0010);
    }
}
