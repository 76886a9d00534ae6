//! The options of a listener.

use std::net::{IpAddr, SocketAddr};

use eyas::{ListenParameters, ServerIdentity, Transport};

use crate::{
    call::{ffi_call, release},
    code::{Code, EYAS_TLS},
    endpoint_options,
    error::Failure,
    pointer::{DataPointer, OutPointer, TextPointer, required_handle, return_handle},
    target,
};

/// The options of a listener. To be used by one thread at a time.
pub struct ListenOptions {
    address: SocketAddr,
    transports: Vec<Transport>,
    identity: Option<ServerIdentity>,
    alpn: Vec<String>,
    sctp_udp_port: Option<u16>,
    sctp_addresses: Vec<IpAddr>,
    sctp_multipath: bool,
}

impl ListenOptions {
    pub(crate) fn parameters(&self) -> ListenParameters {
        let mut parameters = ListenParameters::new(self.address)
            .transports(self.transports.iter().copied())
            .with_alpn(self.alpn.clone())
            .sctp_addresses(self.sctp_addresses.clone())
            .sctp_association(endpoint_options::association(self.sctp_multipath));
        if let Some(identity) = &self.identity {
            parameters = parameters.security(identity.clone());
        }
        match self.sctp_udp_port {
            Some(port) => parameters.sctp_encapsulation_port(port),
            None => parameters,
        }
    }
}

/// Creates options for listening on this address and port, such as "127.0.0.1:0" or "[::]:4433".
/// The caller must free them with eyas_listen_options_free. Port 0 chooses a free port, the same
/// for all transports. The default is TCP without security.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen_options_new(
    address: TextPointer<'_>,
    options: OutPointer<'_, *mut ListenOptions>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = options.null_place("options")?;
        let text = address.read("address")?;
        let address = text.parse().map_err(|_| {
            Failure::invalid(format_args!(
                "{text:?} is not an address and port; write 127.0.0.1:0 or [::]:4433"
            ))
        })?;
        let options = ListenOptions {
            address,
            transports: vec![Transport::Tcp],
            identity: None,
            alpn: Vec::new(),
            sctp_udp_port: None,
            sctp_addresses: Vec::new(),
            sctp_multipath: false,
        };
        return_handle(place, options);
        Ok(())
    })
}

/// Sets the transports to serve, such as "quic,tcp".
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen_options_set_transports(
    options: Option<&mut ListenOptions>,
    transports: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        required_handle(options, "options")?.transports = target::transports(transports)?;
        Ok(())
    })
}

/// Serves over TLS with this certificate chain, end-entity certificate first, and its key, both
/// PEM. They are copied.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen_options_set_certificate(
    options: Option<&mut ListenOptions>,
    chain_pem: DataPointer<'_>,
    chain_size: usize,
    key_pem: DataPointer<'_>,
    key_size: usize,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        let chain = chain_pem.read(chain_size, "chain_pem")?;
        let key = key_pem.read(key_size, "key_pem")?;
        options.identity = Some(ServerIdentity::from_pem(chain, key)?);
        Ok(())
    })
}

/// Like eyas_listen_options_set_certificate, with a key that this passphrase decrypts, as in
/// eyas_endpoint_options_set_encrypted_client_certificate.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen_options_set_encrypted_certificate(
    options: Option<&mut ListenOptions>,
    chain_pem: DataPointer<'_>,
    chain_size: usize,
    key_pem: DataPointer<'_>,
    key_size: usize,
    passphrase: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        let chain = chain_pem.read(chain_size, "chain_pem")?;
        let (key, passphrase) =
            (key_pem.read(key_size, "key_pem")?, passphrase.read("passphrase")?);
        options.identity = Some(ServerIdentity::from_encrypted_pem(chain, key, passphrase)?);
        Ok(())
    })
}

/// Serves over TLS with a generated key and self-signed certificate for this DNS name or IP
/// address: for tests. Clients must trust the text of eyas_listen_options_certificate_pem.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen_options_set_self_signed(
    options: Option<&mut ListenOptions>,
    name: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let options = required_handle(options, "options")?;
        options.identity = Some(ServerIdentity::self_signed([name.read("name")?])?);
        Ok(())
    })
}

/// Returns the certificate that is served, PEM. The caller must free the text with eyas_text_free.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen_options_certificate_pem(
    options: Option<&ListenOptions>,
    text: OutPointer<'_, *mut std::ffi::c_char>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = text.required("text")?;
        let Some(identity) = &required_handle(options, "options")?.identity else {
            return Err(Failure::new(EYAS_TLS, "no certificate has been set"));
        };
        place.write(crate::json::c_string(identity.certificate_pem()?).into_raw());
        Ok(())
    })
}

/// Adds an application protocol (ALPN), less preferred than those added before.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen_options_add_alpn(
    options: Option<&mut ListenOptions>,
    protocol: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let protocol = target::alpn(protocol)?;
        required_handle(options, "options")?.alpn.push(protocol);
        Ok(())
    })
}

/// Sets the UDP port for SCTP over UDP (RFC 6951). The default is 9899; 0 chooses a free port.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen_options_set_sctp_udp_port(
    options: Option<&mut ListenOptions>,
    port: u16,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        required_handle(options, "options")?.sctp_udp_port = Some(port);
        Ok(())
    })
}

/// Adds a local address for SCTP, which is also announced to peers.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen_options_add_sctp_address(
    options: Option<&mut ListenOptions>,
    address: TextPointer<'_>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let address = endpoint_options::address(address)?;
        required_handle(options, "options")?.sctp_addresses.push(address);
        Ok(())
    })
}

/// Sends new data of SCTP associations over all their paths at once. Off by default.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_listen_options_set_sctp_multipath(
    options: Option<&mut ListenOptions>,
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
pub extern "C" fn eyas_listen_options_free(options: Option<Box<ListenOptions>>) {
    release(options);
}
