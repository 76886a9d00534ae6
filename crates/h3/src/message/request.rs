//! The head of a request (RFC 9114 §4.3.1, §4.4; RFC 8441 §4 and RFC 9220 for extended CONNECT).

use super::Content;
use super::characters::{is_scheme, is_token, is_visible};
use super::fault::{MessageFault, PseudoField};
use super::fields::FieldRules;

/// What a recipient of requests has allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// Whether its SETTINGS_ENABLE_CONNECT_PROTOCOL is 1, so that a request may have `:protocol`
    /// (RFC 9220 §3).
    pub extended_connect: bool,
}

/// The head of a well-formed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// `:method`.
    pub method: &'a [u8],
    /// `:scheme`; `None` for CONNECT without `:protocol`.
    pub scheme: Option<&'a [u8]>,
    /// `:authority`.
    pub authority: Option<&'a [u8]>,
    /// `:path`; `None` for CONNECT without `:protocol`.
    pub path: Option<&'a [u8]>,
    /// `:protocol`, of an extended CONNECT request.
    pub protocol: Option<&'a [u8]>,
    /// The Host field.
    pub host: Option<&'a [u8]>,
    /// What follows the head.
    pub content: Content,
}

/// The pseudo-header fields and Host, as far as they have been there.
#[derive(Default)]
struct Collected<'a> {
    method: Option<&'a [u8]>,
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    protocol: Option<&'a [u8]>,
    host: Option<&'a [u8]>,
    rules: FieldRules,
}

/// Checks the fields of a request's head.
///
/// # Errors
/// The first rule that they break.
pub fn check_request<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    options: RequestOptions,
) -> Result<RequestHead<'a>, MessageFault> {
    let mut collected = Collected::default();
    let mut may_be_pseudo = true;
    for (name, value) in fields {
        if name.first() == Some(&b':') {
            if !may_be_pseudo {
                return Err(MessageFault::PseudoFieldAfterFields);
            }
            collected.add_pseudo_field(name, value)?;
            continue;
        }
        may_be_pseudo = false;
        collected.rules.check(name, value)?;
        if name == b"host" && collected.host.replace(value).is_some() {
            return Err(MessageFault::HostRepeated);
        }
    }
    collected.into_head(options)
}

impl<'a> Collected<'a> {
    fn add_pseudo_field(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), MessageFault> {
        let field = PseudoField::from_name(name).ok_or(MessageFault::PseudoFieldUnknown)?;
        let (slot, is_valid) = match field {
            PseudoField::Method => (&mut self.method, is_token(value)),
            PseudoField::Scheme => (&mut self.scheme, is_scheme(value)),
            PseudoField::Authority => (&mut self.authority, is_visible(value)),
            PseudoField::Path => (&mut self.path, is_visible(value)),
            PseudoField::Protocol => (&mut self.protocol, is_token_or_versioned(value)),
            PseudoField::Status => return Err(MessageFault::PseudoFieldOfOtherKind(field)),
        };
        if slot.replace(value).is_some() {
            return Err(MessageFault::PseudoFieldRepeated(field));
        }
        if is_valid { Ok(()) } else { Err(MessageFault::PseudoFieldInvalid(field)) }
    }

    fn into_head(self, options: RequestOptions) -> Result<RequestHead<'a>, MessageFault> {
        let missing = MessageFault::PseudoFieldMissing;
        let method = self.method.ok_or(missing(PseudoField::Method))?;
        let is_connect = method == b"CONNECT";
        if self.protocol.is_some() && !(is_connect && options.extended_connect) {
            return Err(MessageFault::ProtocolNotAllowed);
        }
        match (is_connect, self.protocol) {
            (true, None) => self.check_connect()?,
            (_, Some(_)) if self.authority.is_none() => {
                return Err(missing(PseudoField::Authority));
            }
            _ => self.check_target(method)?,
        }
        let content = match (is_connect, self.rules.content_length) {
            (true, _) => Content::Tunnel,
            (false, Some(length)) => Content::Length(length),
            (false, None) => Content::Any,
        };
        Ok(RequestHead {
            method,
            scheme: self.scheme,
            authority: self.authority,
            path: self.path,
            protocol: self.protocol,
            host: self.host,
            content,
        })
    }

    /// "The :scheme and :path pseudo-header fields are omitted. The :authority pseudo-header field
    /// contains the host and port to connect to" (RFC 9114 §4.4).
    fn check_connect(&self) -> Result<(), MessageFault> {
        if self.scheme.is_some() {
            return Err(MessageFault::PseudoFieldInConnect(PseudoField::Scheme));
        }
        if self.path.is_some() {
            return Err(MessageFault::PseudoFieldInConnect(PseudoField::Path));
        }
        let missing = MessageFault::PseudoFieldMissing(PseudoField::Authority);
        match self.authority.ok_or(missing)? {
            b"" => Err(MessageFault::AuthorityMissing),
            authority if has_user_information(authority) => Err(MessageFault::UserInformation),
            _ => self.check_host(),
        }
    }

    /// Checks scheme, authority and path of any other request.
    fn check_target(&self, method: &[u8]) -> Result<(), MessageFault> {
        let missing = MessageFault::PseudoFieldMissing;
        let scheme = self.scheme.ok_or(missing(PseudoField::Scheme))?;
        let path = self.path.ok_or(missing(PseudoField::Path))?;
        self.check_host()?;
        let is_http = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
        if !is_http {
            return Ok(());
        }
        // "If the :scheme pseudo-header field identifies a scheme that has a mandatory authority
        // component (including "http" and "https"), the request MUST contain either an :authority
        // pseudo-header field or a Host header field. If these fields are present, they MUST NOT be
        // empty" (RFC 9114 §4.3.1).
        let named = [self.authority, self.host];
        if named == [None, None] || named.contains(&Some(b"")) {
            return Err(MessageFault::AuthorityMissing);
        }
        if self.authority.is_some_and(has_user_information) {
            return Err(MessageFault::UserInformation);
        }
        match path {
            b"" => Err(MessageFault::PathEmpty),
            b"*" if method == b"OPTIONS" => Ok(()),
            b"*" => Err(MessageFault::PathAsterisk),
            [b'/', ..] => Ok(()),
            _ => Err(MessageFault::PseudoFieldInvalid(PseudoField::Path)),
        }
    }

    /// "If both fields are present, they MUST contain the same value" (RFC 9114 §4.3.1). Names of hosts
    /// are the same in upper and lower case (RFC 3986 §3.2.2).
    fn check_host(&self) -> Result<(), MessageFault> {
        match (self.authority, self.host) {
            (Some(authority), Some(host)) if !authority.eq_ignore_ascii_case(host) => {
                Err(MessageFault::AuthorityDiffersFromHost)
            }
            _ => Ok(()),
        }
    }
}

/// "The authority MUST NOT include the deprecated userinfo subcomponent for URIs of scheme "http" or
/// "https"" (RFC 9114 §4.3.1).
fn has_user_information(authority: &[u8]) -> bool {
    authority.contains(&b'@')
}

/// Upgrade tokens are tokens, with a version perhaps (RFC 9110 §7.8).
fn is_token_or_versioned(protocol: &[u8]) -> bool {
    let mut parts = protocol.splitn(2, |&byte| byte == b'/');
    parts.all(is_token)
}
