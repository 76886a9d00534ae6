//! The state cookie (RFC 9260 §5.1.3): everything needed to create an association, signed, so that
//! no state is kept for a peer before it returns the cookie. It is as short as possible, because
//! with a forged source it is sent to a host that did not ask for it.

use alloc::{boxed::Box, vec::Vec};
use bytes::{Buf, BufMut, Bytes, BytesMut, TryGetError};
use core::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::random::RandomBytes;
use crate::association::init_params::InitParams;
use crate::auth::AuthOffer;
use crate::endpoint::AgreedExtensions;
use crate::identifier::VerificationTag;
use crate::serial::Tsn;
use crate::wire::Parameters;

/// The length of the signature before the cookie's contents: half of an HMAC-SHA-256 (RFC 2104 §5).
const SIGNATURE: usize = 16;

/// The bits of a cookie's creation time in microseconds, which wraps every twelve days.
const TIME_BITS: u32 = 40;

/// The maximum number of addresses of one side that a cookie can hold.
const MAX_ADDRESSES: usize = (u16::MAX >> 1) as usize;

/// The contents of a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CookieContents {
    /// When it was made; its age counts from here.
    pub(crate) created: Duration,
    /// How long it is valid.
    pub(crate) lifetime: Duration,
    /// The source of the INIT.
    pub(crate) remote: SocketAddr,
    /// The SCTP port that it was sent to.
    pub(crate) local_port: u16,
    /// The SCTP port that it was sent from.
    pub(crate) remote_port: u16,
    /// The tags of the existing association when the INIT arrived: ours, the peer's (RFC 9260
    /// §5.2.2). Zero if there was none.
    pub(crate) tie_tags: (u32, u32),
    /// The parameters of the peer's INIT.
    pub(crate) peer: InitParams,
    /// The parameters of our INIT ACK.
    pub(crate) own: InitParams,
}

/// Why a cookie is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadCookie {
    /// Not signed by us, or with a discarded key.
    Forged,
    /// Older than its lifetime.
    Stale {
        /// The age beyond its lifetime.
        by: Duration,
        cookie: Box<CookieContents>,
    },
}

/// The keys that sign cookies: the one in use, and the one before it.
pub(crate) struct CookieKeys {
    random: RandomBytes,
    current: Hmac<Sha256>,
    previous: Option<Hmac<Sha256>>,
    rotated_at: Duration,
    life: Duration,
}

impl core::fmt::Debug for CookieKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // The keys are a secret.
        f.debug_struct("CookieKeys").field("rotated_at", &self.rotated_at).finish_non_exhaustive()
    }
}

impl CookieKeys {
    pub(crate) fn new(mut random: RandomBytes, now: Duration, life: Duration) -> Self {
        let current = new_key(&mut random);
        Self { random, current, previous: None, rotated_at: now, life }
    }

    /// Replaces the current key after its lifetime. After a long pause both keys are replaced.
    fn rotate_keys(&mut self, now: Duration) {
        let age = now.saturating_sub(self.rotated_at);
        if age < self.life {
            return;
        }
        let new = new_key(&mut self.random);
        let old = core::mem::replace(&mut self.current, new);
        self.previous = (age < self.life.saturating_mul(2)).then_some(old);
        self.rotated_at = now;
    }

    /// Returns the signed cookie for an INIT ACK.
    pub(crate) fn seal(&mut self, now: Duration, cookie: &CookieContents) -> Bytes {
        self.rotate_keys(now);
        let mut out = BytesMut::with_capacity(256);
        out.put_bytes(0, SIGNATURE);
        cookie.write(&mut out);
        let signature = sign(&self.current, &out[SIGNATURE..]);
        out[..SIGNATURE].copy_from_slice(&signature);
        out.freeze()
    }

    /// Returns the contents of a returned cookie. Nothing in it is used before its signature has
    /// been verified. A stale one is distinguished because its sender has to be notified, and
    /// because it is still valid for the association that it created.
    pub(crate) fn open(
        &mut self,
        now: Duration,
        sealed: &Bytes,
    ) -> Result<CookieContents, BadCookie> {
        self.rotate_keys(now);
        if sealed.len() <= SIGNATURE {
            return Err(BadCookie::Forged);
        }
        let (signature, contents) = sealed.split_at(SIGNATURE);
        let is_valid = |key: &Hmac<Sha256>| {
            let mut mac = key.clone();
            mac.update(contents);
            mac.verify_truncated_left(signature).is_ok()
        };
        if !is_valid(&self.current) && !self.previous.as_ref().is_some_and(is_valid) {
            return Err(BadCookie::Forged);
        }
        let contents = sealed.slice(SIGNATURE..);
        let cookie = CookieContents::read(now, contents).map_err(|_| BadCookie::Forged)?;
        let age = now.saturating_sub(cookie.created);
        match age.checked_sub(cookie.lifetime).filter(|by| !by.is_zero()) {
            Some(by) => Err(BadCookie::Stale { by, cookie: Box::new(cookie) }),
            None => Ok(cookie),
        }
    }
}

fn new_key(random: &mut RandomBytes) -> Hmac<Sha256> {
    let mut key = [0; 64];
    random.fill(&mut key);
    Hmac::<Sha256>::new(&key.into())
}

fn sign(key: &Hmac<Sha256>, contents: &[u8]) -> [u8; SIGNATURE] {
    let mut mac = key.clone();
    mac.update(contents);
    let whole: [u8; 32] = mac.finalize().into_bytes().into();
    core::array::from_fn(|at| whole[at])
}

impl CookieContents {
    fn write(&self, out: &mut BytesMut) {
        out.put_uint(microseconds(self.created) % (1 << TIME_BITS), TIME_BITS as usize / 8);
        out.put_u32(u32::try_from(self.lifetime.as_millis()).unwrap_or(u32::MAX));
        put_address(out, self.remote.ip());
        out.put_u16(self.remote.port());
        out.put_u16(self.local_port);
        out.put_u16(self.remote_port);
        let has_tie_tags = self.tie_tags != (0, 0);
        out.put_u8(has_tie_tags.into());
        if has_tie_tags {
            out.put_u32(self.tie_tags.0);
            out.put_u32(self.tie_tags.1);
        }
        put_params(out, &self.peer);
        put_params(out, &self.own);
    }

    /// Parses a cookie that was written at `now` or before.
    fn read(now: Duration, mut from: Bytes) -> Result<Self, TryGetError> {
        let now = microseconds(now);
        let age = now.wrapping_sub(from.try_get_uint(TIME_BITS as usize / 8)?) % (1 << TIME_BITS);
        Ok(Self {
            created: Duration::from_micros(now.saturating_sub(age)),
            lifetime: Duration::from_millis(from.try_get_u32()?.into()),
            remote: SocketAddr::new(
                get_address(&mut from)?.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                from.try_get_u16()?,
            ),
            local_port: from.try_get_u16()?,
            remote_port: from.try_get_u16()?,
            tie_tags: match from.try_get_u8()? {
                0 => (0, 0),
                _ => (from.try_get_u32()?, from.try_get_u32()?),
            },
            peer: get_params(&mut from)?,
            own: get_params(&mut from)?,
        })
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Family (4, 6) and address.
fn put_address(out: &mut BytesMut, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => {
            out.put_u8(4);
            out.put_slice(&v4.octets());
        }
        IpAddr::V6(v6) => {
            out.put_u8(6);
            out.put_slice(&v6.octets());
        }
    }
}

/// `None` for family 0.
fn get_address(from: &mut Bytes) -> Result<Option<IpAddr>, TryGetError> {
    Ok(match from.try_get_u8()? {
        0 => None,
        4 => Some(Ipv4Addr::from(from.try_get_u32()?).into()),
        _ => Some(Ipv6Addr::from(from.try_get_u128()?).into()),
    })
}

fn put_params(out: &mut BytesMut, of: &InitParams) {
    out.put_u32(of.tag.0);
    out.put_u32(of.window);
    out.put_u16(of.outbound);
    out.put_u16(of.inbound);
    out.put_u32(of.initial_tsn.0);
    out.put_u8(of.offers.bits());
    // The number of addresses, and whether AUTH parameters follow them.
    let count = of.addresses.len().min(MAX_ADDRESSES);
    out.put_u16((count as u16) << 1 | u16::from(of.authentication.is_some()));
    for &address in of.addresses.iter().take(count) {
        put_address(out, address);
    }
    let Some(offer) = &of.authentication else { return };
    let authentication: Parameters = offer.parameters().collect();
    let authentication = authentication.as_bytes();
    // Parsed parameters of a peer are limited to far less than that.
    let length = u16::try_from(authentication.len()).unwrap_or(0);
    out.put_u16(length);
    out.put_slice(&authentication[..usize::from(length)]);
}

fn get_params(from: &mut Bytes) -> Result<InitParams, TryGetError> {
    let mut params = InitParams {
        tag: VerificationTag(from.try_get_u32()?),
        window: from.try_get_u32()?,
        outbound: from.try_get_u16()?,
        inbound: from.try_get_u16()?,
        initial_tsn: Tsn(from.try_get_u32()?),
        offers: AgreedExtensions::from_bits(from.try_get_u8()?),
        addresses: Vec::new(),
        authentication: None,
    };
    let header = from.try_get_u16()?;
    for _ in 0..header >> 1 {
        params.addresses.extend(get_address(from)?);
    }
    if header & 1 == 0 {
        return Ok(params);
    }
    let length = usize::from(from.try_get_u16()?);
    if length > from.len() {
        return Err(TryGetError { requested: length, available: from.len() });
    }
    // A copy: the association must not keep the packet of the cookie alive.
    let authentication = Bytes::copy_from_slice(&from.split_to(length));
    params.authentication = AuthOffer::from_parameters(&Parameters::from_bytes(authentication));
    Ok(params)
}

#[cfg(test)]
mod tests;
