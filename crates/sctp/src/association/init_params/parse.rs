//! Parsing and validation of a peer's INIT or INIT ACK (RFC 9260 §3.3.2, §3.3.3, §5.1.2).

use alloc::vec::Vec;
use bytes::Bytes;
use core::{net::IpAddr, time::Duration};

use super::{ERROR_DETECTION_LOWER_LAYER, InitParams};
use crate::association::addresses;
use crate::auth::AuthOffer;
use crate::config::AssociationConfig;
use crate::counters::EndpointCounters;
use crate::endpoint::AgreedExtensions;
use crate::identifier::VerificationTag;
use crate::wire::parameter::SupportedAddressTypes;
use crate::wire::{ChunkType, ErrorCause, InitChunk, Parameter, ParameterType};

/// The minimum receive window of a peer (RFC 9260 §3.3.2, §3.3.3).
pub(crate) const MIN_WINDOW: u32 = 1500;

/// The maximum number of unknown parameters that are reported back, so that a response stays small.
const MAX_REPORTED: usize = 8;

/// The maximum length in bytes of a reported parameter.
const MAX_REPORTED_BYTES: usize = 64;

/// The maximum length in bytes of the values that the AUTH key is derived from.
const MAX_AUTHENTICATION_BYTES: usize = 600;

/// A parsed INIT or INIT ACK.
#[derive(Debug)]
pub(crate) struct ParsedInit {
    pub(crate) params: InitParams,
    /// The state cookie of an INIT ACK.
    pub(crate) cookie: Option<Bytes>,
    /// The requested extension of the cookie's lifetime.
    pub(crate) preserve: Duration,
    /// The address types that its sender can use; all if it does not state them.
    pub(crate) types: SupportedAddressTypes,
    /// Whether I-DATA must not be used although its sender offers it: the sender supports
    /// FORWARD-TSN but not I-FORWARD-TSN, which goes with both (RFC 8260 §2.3.1). That is the case
    /// for Linux, which numbers fragments differently.
    pub(crate) lacks_i_forward_tsn: bool,
    /// Unknown parameters whose type requests a report, each with type and length.
    pub(crate) unrecognized: Vec<Bytes>,
}

/// Why it is refused.
#[derive(Debug)]
pub(crate) enum InitRefusal {
    /// It contains no tag for a response.
    NoTag,
    /// Refused with an ABORT.
    Abort(ErrorCause),
}

impl InitRefusal {
    /// Returns the refusal of an INIT ACK without a cookie (RFC 9260 §3.3.10.2).
    pub(crate) fn missing_cookie() -> Self {
        let types = Bytes::copy_from_slice(&ParameterType::STATE_COOKIE.0.to_be_bytes());
        Self::Abort(ErrorCause::MissingMandatoryParameter { types })
    }
}

impl ParsedInit {
    /// Parses an INIT or INIT ACK from `source`.
    pub(crate) fn parse(
        init: &InitChunk,
        source: IpAddr,
        config: &AssociationConfig,
        counters: &mut EndpointCounters,
    ) -> Result<Self, InitRefusal> {
        if init.initiate_tag == VerificationTag::ZERO {
            counters.malformed_chunks += 1;
            return Err(InitRefusal::NoTag);
        }
        let has_streams = init.outbound_streams > 0 && init.inbound_streams > 0;
        if !has_streams || init.a_rwnd < MIN_WINDOW {
            counters.malformed_chunks += 1;
            return Err(InitRefusal::Abort(ErrorCause::InvalidMandatoryParameter));
        }
        let mut parsed = ParsedParameters::default();
        for parameter in init.parameters.iter() {
            if !parsed.add(parameter, config.max_peer_addresses)? {
                break;
            }
        }
        let limit = config.max_peer_addresses;
        counters.addresses_ignored += parsed.surplus;
        let listed = parsed.listed.iter().copied();
        let offers = parsed.offers;
        let mut params = InitParams {
            tag: init.initiate_tag,
            window: init.a_rwnd,
            outbound: init.outbound_streams,
            inbound: init.inbound_streams,
            initial_tsn: init.initial_tsn,
            addresses: addresses::filter_listed(listed, source, limit, counters),
            authentication: authentication_of(init),
            offers,
        };
        let both = offers.interleaving && offers.partial_reliability;
        let lacks_i_forward_tsn = both && !parsed.lists_i_forward_tsn;
        params.offers.interleaving &= !lacks_i_forward_tsn;
        // AUTH requires a random value and an algorithm (RFC 4895 §6.1), ASCONF requires AUTH.
        params.offers.authentication &= params.authentication.is_some();
        params.offers.dynamic_addresses &= params.offers.authentication;
        Ok(Self {
            params,
            cookie: parsed.cookie,
            preserve: parsed.preserve,
            types: parsed.types.unwrap_or(SupportedAddressTypes::ALL),
            lacks_i_forward_tsn,
            unrecognized: parsed.unrecognized,
        })
    }
}

/// The parameters read so far.
#[derive(Default)]
struct ParsedParameters {
    listed: Vec<IpAddr>,
    surplus: u64,
    offers: AgreedExtensions,
    cookie: Option<Bytes>,
    preserve: Duration,
    types: Option<SupportedAddressTypes>,
    /// Whether I-FORWARD-TSN was listed.
    lists_i_forward_tsn: bool,
    unrecognized: Vec<Bytes>,
}

impl ParsedParameters {
    /// Processes one parameter; returns whether to continue with the next one.
    fn add(&mut self, parameter: Parameter, max_addresses: usize) -> Result<bool, InitRefusal> {
        match parameter {
            // More than are kept, as some of them may be filtered out.
            Parameter::Address(_) if self.listed.len() >= 2 * max_addresses => self.surplus += 1,
            Parameter::Address(address) => self.listed.push(address),
            Parameter::StateCookie(cookie) => {
                self.cookie.get_or_insert(cookie);
            }
            Parameter::CookiePreservative { increment } => {
                self.preserve = Duration::from_millis(increment.into());
            }
            Parameter::HostNameAddress(_) => {
                let parameter = parameter.to_bytes();
                return Err(InitRefusal::Abort(ErrorCause::UnresolvableAddress { parameter }));
            }
            Parameter::SupportedAddressTypes(types) => self.types = Some(types),
            Parameter::EcnCapable => self.offers.ecn = true,
            Parameter::ForwardTsnSupported => self.offers.partial_reliability = true,
            Parameter::ZeroChecksumAcceptable { error_detection_method } => {
                self.offers.zero_checksum |= error_detection_method == ERROR_DETECTION_LOWER_LAYER;
            }
            Parameter::SupportedExtensions(types) => {
                self.offers.add_extensions(&types);
                self.lists_i_forward_tsn |= types.contains(&ChunkType::I_FORWARD_TSN.0);
            }
            Parameter::Malformed { .. } => {
                return Err(InitRefusal::Abort(ErrorCause::violation("malformed parameter")));
            }
            Parameter::Unknown(unknown) => {
                let action = unknown.action();
                let fits = unknown.value.len() <= MAX_REPORTED_BYTES;
                if action.reports() && fits && self.unrecognized.len() < MAX_REPORTED {
                    self.unrecognized.push(unknown.whole());
                }
                return Ok(!action.stops());
            }
            // Parameters without meaning in this chunk or to this side.
            _ => {}
        }
        Ok(true)
    }
}

/// Returns what the sender requires to be authenticated (RFC 4895 §3), unless that is excessively
/// long.
fn authentication_of(init: &InitChunk) -> Option<AuthOffer> {
    let offer = AuthOffer::from_parameters(&init.parameters)?;
    (offer.len() <= MAX_AUTHENTICATION_BYTES).then(|| offer.detached())
}
