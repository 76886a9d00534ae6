//! The options of an endpoint.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use eyas::{
    EchChoice, EncryptedDnsPolicy, MemoryStore, Resolver, SecurityParameters,
    certificates_from_pem, private_key_from_encrypted_pem, private_key_from_pem,
    race::memory::MemoryConfig,
};
use eyas_sctp_tokio::protocol::config::{AssociationConfig, MultipathConfig};

use crate::{
    call::{ffi_call, release},
    code::Code,
    error::Failure,
    pointer::{DataPointer, OutPointer, TextPointer, required_handle, return_handle},
};

/// The options of an endpoint. To be used by one thread at a time.
#[derive(Default)]
pub struct EndpointOptions {
    security: SecurityParameters,
    memory: MemoryOption,
    resolver: Option<SocketAddr>,
    encrypted_dns: EncryptedDnsPolicy,
    known: Vec<(String, u16, Vec<IpAddr>)>,
    mptcp: bool,
    local_addresses: Vec<IpAddr>,
    sctp_udp_port: Option<u16>,
    sctp_local_addresses: Vec<IpAddr>,
    sctp_multipath: bool,
}

/// Where what races learn is stored.
#[derive(Default)]
enum MemoryOption {
    #[default]
    Volatile,
    Disabled,
    File(PathBuf),
}

impl EndpointOptions {
    pub(crate) fn build(&self) -> Result<eyas::Endpoint, Failure> {
        let resolver = self.resolver.map_or_else(Resolver::system, Resolver::server);
        let mut resolver = resolver.with_encrypted_dns(self.encrypted_dns);
        for (host, port, addresses) in &self.known {
            resolver = resolver.overriding(host, *port, addresses.clone());
        }
        let memory = match &self.memory {
            MemoryOption::Volatile => MemoryStore::in_memory(MemoryConfig::default()),
            MemoryOption::Disabled => MemoryStore::none(),
            MemoryOption::File(path) => MemoryStore::open(path),
        };
        let mut builder = eyas::Endpoint::builder()
            .security(self.security.clone())
            .resolver(resolver)
            .memory(memory)
            .mptcp(self.mptcp)
            .local_addresses(self.local_addresses.clone())
            .sctp_local_addresses(self.sctp_local_addresses.clone())
            .sctp_association(association(self.sctp_multipath));
        if let Some(port) = self.sctp_udp_port {
            builder = builder.sctp_encapsulation_port(port);
        }
        Ok(builder.build()?)
    }

    fn change(&mut self, change: impl FnOnce(SecurityParameters) -> SecurityParameters) {
        self.security = change(std::mem::take(&mut self.security));
    }
}

/// The configuration of associations.
pub(crate) fn association(multipath: bool) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.multipath = multipath.then(MultipathConfig::default);
    config
}

/// Parses an IP address.
pub(crate) fn address(text: TextPointer<'_>) -> Result<IpAddr, Failure> {
    let text = text.read("address")?;
    text.parse().map_err(|_| {
        Failure::invalid(format_args!(
            "{text:?} is not an IP address; write 192.0.2.1 or 2001:db8::1"
        ))
    })
}

/// Creates options with the defaults. The caller must free them with eyas_endpoint_options_free.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_new(
    options: OutPointer<'_, *mut EndpointOptions>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        return_handle(options.required("options")?, EndpointOptions::default());
        Ok(())
    })
}

/// Stores what races learn in this SQLite file, which is created if necessary, readable by its
/// owner only; several processes can share it. eyas_memory_warnings_json returns problems with the
/// file.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_memory_file(
    options: Option<&mut EndpointOptions>,
    path: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        options.memory = MemoryOption::File(path.read("path")?.into());
        Ok(())
    })
}

/// Stores what races learn in memory, as long as the endpoint exists, or nowhere.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_memory(
    options: Option<&mut EndpointOptions>,
    remember: bool,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let memory = if remember { MemoryOption::Volatile } else { MemoryOption::Disabled };
        required_handle(options, "options")?.memory = memory;
        Ok(())
    })
}

/// Trusts only the certificates of this PEM text, in place of the platform's. They are copied.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_roots(
    options: Option<&mut EndpointOptions>,
    pem: DataPointer<'_>,
    size: usize,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let roots = certificates_from_pem(pem.read(size, "pem")?)?;
        required_handle(options, "options")?.change(|security| security.with_roots(roots));
        Ok(())
    })
}

/// Also trusts the certificates of this PEM text. They are copied.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_add_roots(
    options: Option<&mut EndpointOptions>,
    pem: DataPointer<'_>,
    size: usize,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        for root in certificates_from_pem(pem.read(size, "pem")?)? {
            options.change(|security| security.with_added_root(root));
        }
        Ok(())
    })
}

/// Presents this certificate chain to servers that request one: PEM, end-entity certificate first,
/// and its key. Both are copied.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_client_certificate(
    options: Option<&mut EndpointOptions>,
    chain_pem: DataPointer<'_>,
    chain_size: usize,
    key_pem: DataPointer<'_>,
    key_size: usize,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        let chain = certificates_from_pem(chain_pem.read(chain_size, "chain_pem")?)?;
        let key = private_key_from_pem(key_pem.read(key_size, "key_pem")?)?;
        options.change(|security| security.with_client_certificate(chain, key));
        Ok(())
    })
}

/// Does the same with a key that this passphrase decrypts: PKCS #8 with PBES2, or OpenSSL's format
/// before it. EYAS_TLS means that the passphrase is wrong, or that the encryption is not supported;
/// the message then has the command that converts the key.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_encrypted_client_certificate(
    options: Option<&mut EndpointOptions>,
    chain_pem: DataPointer<'_>,
    chain_size: usize,
    key_pem: DataPointer<'_>,
    key_size: usize,
    passphrase: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        let chain = certificates_from_pem(chain_pem.read(chain_size, "chain_pem")?)?;
        let key = key_pem.read(key_size, "key_pem")?;
        let key = private_key_from_encrypted_pem(key, passphrase.read("passphrase")?)?;
        options.change(|security| security.with_client_certificate(chain, key));
        Ok(())
    })
}

/// Sets how the ClientHello is encrypted (ECH, RFC 9849): "auto" (the default: where records have the
/// keys), "off", "require", or with the keys of "ecl:BASE64".
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_ech(
    options: Option<&mut EndpointOptions>,
    setting: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        let text = setting.read("setting")?;
        let setting: EchChoice =
            text.parse().map_err(|cause| Failure::invalid(format_args!("{text:?}: {cause}")))?;
        options.change(|security| security.with_ech(setting));
        Ok(())
    })
}

/// Sets whether queries to name servers are encrypted (RFC 9462): "system" (the default: as the system
/// does), "auto" where they offer it, "require", or "off".
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_encrypted_dns(
    options: Option<&mut EndpointOptions>,
    setting: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        let text = setting.read("setting")?;
        options.encrypted_dns =
            text.parse().map_err(|cause| Failure::invalid(format_args!("{text:?}: {cause}")))?;
        Ok(())
    })
}

/// Uses this DNS server, such as "192.0.2.53:53", instead of the system's.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_dns_server(
    options: Option<&mut EndpointOptions>,
    server: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        let text = server.read("server")?;
        options.resolver = Some(text.parse().map_err(|_| {
            Failure::invalid(format_args!(
                "{text:?} is not the address and port of a DNS server; write 192.0.2.53:53"
            ))
        })?);
        Ok(())
    })
}

/// Uses this address for `host` at `port` without asking DNS. Further calls for the same host and
/// port add addresses.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_add_host(
    options: Option<&mut EndpointOptions>,
    host: TextPointer<'_>,
    port: u16,
    address: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        let (host, address) = (host.read("host")?, self::address(address)?);
        let known = options.known.iter_mut().find(|known| known.0 == host && known.1 == port);
        match known {
            Some((_, _, addresses)) => addresses.push(address),
            None => options.known.push((host.to_owned(), port, vec![address])),
        }
        Ok(())
    })
}

/// Uses MPTCP where TCP is requested; it falls back by itself. Off by default.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_mptcp(
    options: Option<&mut EndpointOptions>,
    mptcp: bool,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        required_handle(options, "options")?.mptcp = mptcp;
        Ok(())
    })
}

/// Adds a local address that connections leave from. The default is the choice of the routing
/// table.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_add_local_address(
    options: Option<&mut EndpointOptions>,
    address: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let address = self::address(address)?;
        required_handle(options, "options")?.local_addresses.push(address);
        Ok(())
    })
}

/// Sets the peer's UDP port for SCTP over UDP (RFC 6951). The default is 9899.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_sctp_udp_port(
    options: Option<&mut EndpointOptions>,
    port: u16,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        required_handle(options, "options")?.sctp_udp_port = Some(port);
        Ok(())
    })
}

/// Adds a local address that SCTP associations use and announce to their peers. The default is all
/// suitable ones.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_add_sctp_local_address(
    options: Option<&mut EndpointOptions>,
    address: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let address = self::address(address)?;
        required_handle(options, "options")?.sctp_local_addresses.push(address);
        Ok(())
    })
}

/// Sends new data of SCTP associations over all their paths at once instead of over one. Off by
/// default.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_set_sctp_multipath(
    options: Option<&mut EndpointOptions>,
    multipath: bool,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        required_handle(options, "options")?.sctp_multipath = multipath;
        Ok(())
    })
}

/// Frees options; NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_endpoint_options_free(options: Option<Box<EndpointOptions>>) {
    release(options);
}
