//! The peer to reach, and how.

use std::time::Duration;

use eyas::{
    Preconnection, Security, Target as Wanted, TargetHost, Transport,
    race::{candidate::AddressFamily, policy::Policy},
    zone::parse_host,
};

use crate::{
    call::{ffi_call, release},
    code::Code,
    endpoint::Endpoint,
    error::Failure,
    pointer::{OutPointer, TextPointer, required_handle, return_handle},
};

/// The version of HTTP for a single byte stream.
const HTTP_1: &str = "http/1.1";

/// The peer to reach, and how. To be used by one thread at a time; races keep copies of it.
pub struct Target {
    host: TargetHost,
    /// Whether its name was given with a dot at the end.
    absolute: bool,
    port: u16,
    policy: Policy,
    security: Security,
    alpn: Vec<String>,
    asks_https_records: bool,
    certificate_host: Option<TargetHost>,
    sctp_udp_port: Option<u16>,
}

impl Target {
    pub(crate) fn preconnection(&self, endpoint: &Endpoint) -> Result<Preconnection, Failure> {
        let policy = self.policy.clone().validated().map_err(Failure::invalid)?;
        let target = self.race_target(policy.transports.clone());
        let mut preconnection = endpoint.inner()?.preconnection(target).policy(policy);
        if let Some(host) = &self.certificate_host {
            preconnection = preconnection.certificate_for(host.clone());
        }
        if let Some(port) = self.sctp_udp_port {
            preconnection = preconnection.sctp_encapsulation_port(port);
        }
        Ok(preconnection)
    }

    fn race_target(&self, transports: Vec<Transport>) -> Wanted {
        let (host, port, alpn) = (self.host.clone(), self.port, self.alpn.clone());
        let wanted = if self.asks_https_records {
            let alpn = if alpn.is_empty() { vec![HTTP_1.to_owned()] } else { alpn };
            Wanted { security: self.security, ..Wanted::https(host, port).with_alpn(alpn) }
        } else {
            Wanted::plain(host, port, transports, self.security).with_alpn(alpn)
        };
        Wanted { absolute: self.absolute, ..wanted }
    }
}

pub(crate) fn host(text: TextPointer<'_>, what: &str) -> Result<TargetHost, Failure> {
    parse_host(text.read(what)?).map_err(Failure::invalid)
}

/// Parses a transport by its name in JSON.
pub(crate) fn transport(name: &str) -> Result<Transport, Failure> {
    Transport::from_name(name).ok_or_else(|| {
        let known = Transport::ALL.map(Transport::name).join(", ");
        Failure::invalid(format_args!("{name:?} is not a transport; there are {known}"))
    })
}

/// Parses transports such as "quic,tcp".
pub(crate) fn transports(text: TextPointer<'_>) -> Result<Vec<Transport>, Failure> {
    let names = text.read("transports")?.split(',');
    names.map(|name| transport(name.trim())).collect()
}

/// Creates a target. The caller must free it with eyas_target_free. `host` is a DNS name or an IP
/// address; no search list applies to a name with a dot at the end. By default QUIC is raced against
/// TCP, with TLS, without ALPN, for at most 30 seconds.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_new(
    host: TextPointer<'_>,
    port: u16,
    target: OutPointer<'_, *mut Target>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = target.null_place("target")?;
        let host = host.read("host")?;
        let target = Target {
            absolute: host.ends_with('.'),
            host: parse_host(host).map_err(Failure::invalid)?,
            port,
            policy: Policy::default(),
            security: Security::Tls,
            alpn: Vec::new(),
            asks_https_records: false,
            certificate_host: None,
            sctp_udp_port: None,
        };
        return_handle(place, target);
        Ok(())
    })
}

/// Sets the allowed transports, most preferred first, such as "quic,mptcp,tcp": tcp, mptcp, quic,
/// sctp (over IP) and sctp-udp (over UDP). All others are prohibited.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_set_transports(
    target: Option<&mut Target>,
    transports: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let target = required_handle(target, "target")?;
        let policy = Policy { transports: self::transports(transports)?, ..target.policy.clone() };
        target.policy = policy.validated().map_err(Failure::invalid)?;
        Ok(())
    })
}

/// Makes this transport the most preferred one, and allows it.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_prefer(
    target: Option<&mut Target>,
    transport: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let transports = &mut required_handle(target, "target")?.policy.transports;
        let wanted = self::transport(transport.read("transport")?)?;
        transports.retain(|other| *other != wanted);
        transports.insert(0, wanted);
        Ok(())
    })
}

/// Prohibits this transport. It is an error to race to a target that allows none.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_prohibit(
    target: Option<&mut Target>,
    transport: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let transports = &mut required_handle(target, "target")?.policy.transports;
        let prohibited = self::transport(transport.read("transport")?)?;
        transports.retain(|other| *other != prohibited);
        Ok(())
    })
}

/// Sets the security: "tls", or "none", which QUIC does not support. A race never weakens it.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_set_security(
    target: Option<&mut Target>,
    security: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let target = required_handle(target, "target")?;
        let name = security.read("security")?;
        target.security = match Security::from_name(name) {
            Some(security @ (Security::None | Security::Tls)) => security,
            _ => {
                let why = format_args!("{name:?} is not a security for a target: use tls or none");
                return Err(Failure::invalid(why));
            }
        };
        Ok(())
    })
}

/// Adds an application protocol to offer (ALPN), less preferred than those added before.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_add_alpn(
    target: Option<&mut Target>,
    protocol: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let target = required_handle(target, "target")?;
        target.alpn.push(alpn(protocol)?);
        Ok(())
    })
}

/// Checks a protocol name, which has 1 to 255 octets (RFC 7301 §3.1).
pub(crate) fn alpn(protocol: TextPointer<'_>) -> Result<String, Failure> {
    let protocol = protocol.read("protocol")?;
    match protocol.len() {
        1..=255 => Ok(protocol.to_owned()),
        length => {
            Err(Failure::invalid(format_args!("a protocol has 1 to 255 octets, not {length}")))
        }
    }
}

/// Asks for the HTTPS records of the host (RFC 9460), as browsers do, and follows them: to other names, ports and
/// addresses, and only over transports for which the records offer one of the application protocols. The program then
/// speaks HTTP over TLS: with the protocols of eyas_target_add_alpn, or http/1.1 if there are none. Over QUIC that is
/// "h3", which needs more than the single byte stream that a connection is here.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_ask_https_records(
    target: Option<&mut Target>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        required_handle(target, "target")?.asks_https_records = true;
        Ok(())
    })
}

/// Sets the host for which the peer's certificate must be valid, if that is not the target's.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_set_certificate_host(
    target: Option<&mut Target>,
    host: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let host = self::host(host, "host")?;
        required_handle(target, "target")?.certificate_host = Some(host);
        Ok(())
    })
}

/// Sets the deadline of the race, in milliseconds. The default is 30,000.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_set_deadline(
    target: Option<&mut Target>,
    milliseconds: u32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let target = required_handle(target, "target")?;
        let deadline = Duration::from_millis(milliseconds.into());
        let policy = Policy { deadline, ..target.policy.clone() };
        target.policy = policy.validated().map_err(Failure::invalid)?;
        Ok(())
    })
}

/// Uses only addresses of this family: 4 or 6. The default, 0, means both.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_set_family(
    target: Option<&mut Target>,
    family: i32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let target = required_handle(target, "target")?;
        target.policy.only_family = match family {
            0 => None,
            4 => Some(AddressFamily::V4),
            6 => Some(AddressFamily::V6),
            other => {
                let why = format_args!("{other} is not an address family: use 4, 6, or 0 for both");
                return Err(Failure::invalid(why));
            }
        };
        Ok(())
    })
}

/// Sets the peer's UDP port for SCTP over UDP. The default is that of the endpoint.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_set_sctp_udp_port(
    target: Option<&mut Target>,
    port: u16,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        required_handle(target, "target")?.sctp_udp_port = Some(port);
        Ok(())
    })
}

/// Frees a target; NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_target_free(target: Option<Box<Target>>) {
    release(target);
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;

    #[test]
    fn a_dot_at_the_end_makes_a_name_absolute() {
        for (host, absolute) in [(c"a.test", false), (c"a.test.", true), (c"192.0.2.1", false)] {
            let mut place = MaybeUninit::uninit();
            let code = eyas_target_new(
                TextPointer::from(host),
                443,
                OutPointer::from_place(&mut place),
                OutPointer::null(),
            );
            assert_eq!(code, crate::code::EYAS_OK);
            // SAFETY: the call has succeeded, so it has set its place, which we own.
            let mut target = unsafe { Box::from_raw(place.assume_init()) };
            for asks in [false, true] {
                target.asks_https_records = asks;
                let wanted = target.race_target(vec![Transport::Tcp]);
                assert_eq!(wanted.absolute, absolute, "{host:?}");
                assert!(!wanted.host.to_string().ends_with('.'), "it is no part of SNI");
            }
        }
    }
}
