//! A peer's INIT or INIT ACK, read and judged (RFC 9260 §3.3.2, §3.3.3, §5.1.2).

use alloc::vec::Vec;
use bytes::Bytes;
use core::{net::IpAddr, time::Duration};

use super::{ERROR_DETECTION_BELOW, InitParams};
use crate::association::addresses;
use crate::auth::AuthOffer;
use crate::config::AssociationConfig;
use crate::counters::Counters;
use crate::endpoint::Agreed;
use crate::identifier::VerificationTag;
use crate::wire::parameter::SupportedAddressTypes;
use crate::wire::{Cause, ChunkType, InitChunk, Parameter, ParameterType};

/// The least window that an association can work with (RFC 9260 §3.3.2, §3.3.3).
pub(crate) const LEAST_WINDOW: u32 = 1500;

/// The most unknown parameters that are reported back, so that an answer stays small.
const MAX_REPORTED: usize = 8;

/// The most bytes of one of them.
const MAX_REPORTED_BYTES: usize = 64;

/// The most bytes of the values that go into the key of AUTH.
const MAX_AUTHENTICATION_BYTES: usize = 600;

/// What an INIT or INIT ACK holds.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) params: InitParams,
    /// Of an INIT ACK.
    pub(crate) cookie: Option<Bytes>,
    /// By how much the cookie is to live longer.
    pub(crate) preserve: Duration,
    /// The kinds of addresses that its sender can use; all of them if it does not say.
    pub(crate) types: SupportedAddressTypes,
    /// Whether I-DATA, which it offers, is not to be used with its sender: it takes FORWARD-TSN,
    /// but not I-FORWARD-TSN, which belongs to both (RFC 8260 §2.3.1). Such is Linux, which numbers
    /// fragments in another way.
    pub(crate) lacks_skipping: bool,
    /// Parameters that are not known and whose type says to report them; with type and length.
    pub(crate) unrecognized: Vec<Bytes>,
}

/// Why no association comes of it.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It names no tag that an answer could carry.
    NoTag,
    /// Its sender is told.
    Abort(Cause),
}

impl Refusal {
    /// An INIT ACK without a cookie (RFC 9260 §3.3.10.2).
    pub(crate) fn missing_cookie() -> Self {
        let types = Bytes::copy_from_slice(&ParameterType::STATE_COOKIE.0.to_be_bytes());
        Self::Abort(Cause::MissingMandatoryParameter { types })
    }
}

impl Reading {
    /// Reads what came from `source`.
    pub(crate) fn of(
        init: &InitChunk,
        source: IpAddr,
        config: &AssociationConfig,
        counters: &mut Counters,
    ) -> Result<Self, Refusal> {
        if init.initiate_tag == VerificationTag::ZERO {
            counters.malformed_chunks += 1;
            return Err(Refusal::NoTag);
        }
        let has_streams = init.outbound_streams > 0 && init.inbound_streams > 0;
        if !has_streams || init.a_rwnd < LEAST_WINDOW {
            counters.malformed_chunks += 1;
            return Err(Refusal::Abort(Cause::InvalidMandatoryParameter));
        }
        let mut gathered = Gathered::default();
        for parameter in init.parameters.iter() {
            if !gathered.take(parameter, config.max_peer_addresses)? {
                break;
            }
        }
        let limit = config.max_peer_addresses;
        counters.addresses_ignored += gathered.surplus;
        let listed = gathered.listed.iter().copied();
        let offers = gathered.offers;
        let mut params = InitParams {
            tag: init.initiate_tag,
            window: init.a_rwnd,
            outbound: init.outbound_streams,
            inbound: init.inbound_streams,
            initial_tsn: init.initial_tsn,
            addresses: addresses::sift(listed, source, limit, counters),
            authentication: authentication_of(init),
            offers,
        };
        let both = offers.interleaving && offers.partial_reliability;
        let lacks_skipping = both && !gathered.skips_interleaved;
        params.offers.interleaving &= !lacks_skipping;
        // AUTH needs a random value and an algorithm (RFC 4895 §6.1), ASCONF needs AUTH.
        params.offers.authentication &= params.authentication.is_some();
        params.offers.dynamic_addresses &= params.offers.authentication;
        Ok(Self {
            params,
            cookie: gathered.cookie,
            preserve: gathered.preserve,
            types: gathered.types.unwrap_or(SupportedAddressTypes::ALL),
            lacks_skipping,
            unrecognized: gathered.unrecognized,
        })
    }
}

/// What the parameters said so far.
#[derive(Default)]
struct Gathered {
    listed: Vec<IpAddr>,
    surplus: u64,
    offers: Agreed,
    cookie: Option<Bytes>,
    preserve: Duration,
    types: Option<SupportedAddressTypes>,
    /// Whether I-FORWARD-TSN was listed.
    skips_interleaved: bool,
    unrecognized: Vec<Bytes>,
}

impl Gathered {
    /// Takes one parameter; says whether to go on with the next one.
    fn take(&mut self, parameter: Parameter, max_addresses: usize) -> Result<bool, Refusal> {
        match parameter {
            // A few more than are kept, as some of them may be no use.
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
                return Err(Refusal::Abort(Cause::UnresolvableAddress { parameter }));
            }
            Parameter::SupportedAddressTypes(types) => self.types = Some(types),
            Parameter::EcnCapable => self.offers.ecn = true,
            Parameter::ForwardTsnSupported => self.offers.partial_reliability = true,
            Parameter::ZeroChecksumAcceptable { error_detection_method } => {
                self.offers.zero_checksum |= error_detection_method == ERROR_DETECTION_BELOW;
            }
            Parameter::SupportedExtensions(types) => {
                self.offers.take_extensions(&types);
                self.skips_interleaved |= types.contains(&ChunkType::I_FORWARD_TSN.0);
            }
            Parameter::Malformed { .. } => {
                return Err(Refusal::Abort(Cause::violation("malformed parameter")));
            }
            Parameter::Unknown(unknown) => {
                let action = unknown.action();
                let fits = unknown.value.len() <= MAX_REPORTED_BYTES;
                if action.reports() && fits && self.unrecognized.len() < MAX_REPORTED {
                    self.unrecognized.push(unknown.whole());
                }
                return Ok(!action.stops());
            }
            // Of no meaning here, or of none to us.
            _ => {}
        }
        Ok(true)
    }
}

/// What its sender wants to have authenticated (RFC 4895 §3), unless that is more than anybody has
/// to say.
fn authentication_of(init: &InitChunk) -> Option<AuthOffer> {
    let offer = AuthOffer::from_parameters(&init.parameters)?;
    (offer.len() <= MAX_AUTHENTICATION_BYTES).then(|| offer.detached())
}
