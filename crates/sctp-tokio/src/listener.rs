//! Accepts associations at one SCTP port: inside UDP, over raw IP, or through the kernel.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;

use eyas_sctp::config::{AssociationConfig, EndpointConfig};
use eyas_sctp::counters::EndpointCounters;
use rustls::server::danger::ClientCertVerifier;

use super::SctpAssociation;
use super::carrier::{
    Claim, DirectAccess, ENCAPSULATION_PORT, Wire, direct_access, owner_of_udp_port,
};
use super::connector::{PORT_TRIES, over_dtls, over_dtls_paths};
use super::dtls::DtlsIdentity;
use super::kernel::KernelListener;
use super::own::OwnAssociation;
use super::shared_endpoint::{EndpointHandle, ReaderGuard};
use super::task::{self, Homing};

/// The addresses and transports of an SCTP listener.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SctpListenParameters {
    /// The addresses. Their port is the SCTP port and must be the same for all. `[::]` alone serves
    /// IPv4 too. All of them are announced to peers; an unspecified address stands for all
    /// addresses of this host, including those that are added or removed later
    /// ([`AssociationConfig::auto_asconf`]).
    pub addresses: Vec<SocketAddr>,
    /// The UDP port for SCTP over UDP (RFC 6951), usually 9899. 0 chooses a free port, `None`
    /// disables it.
    pub encapsulation_port: Option<u16>,
    /// Whether to serve SCTP directly over IP.
    pub over_ip: SctpOverIp,
    /// The identity for SCTP over DTLS on the same UDP port (RFC 8261). `None` disables it.
    pub dtls: Option<DtlsIdentity>,
    /// The verifier of the certificates that clients inside DTLS must have, as rustls has it. It gets
    /// the end-entity certificate alone. Associations then have a session for each path, and as many
    /// paths as without DTLS. `None` asks clients for no certificates.
    pub dtls_clients: Option<Arc<dyn ClientCertVerifier>>,
    /// The configuration of the associations.
    pub association: AssociationConfig,
}

impl SctpListenParameters {
    /// Serves SCTP over UDP, at the default UDP port, and directly over IP, at this address.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            addresses: vec![address],
            encapsulation_port: Some(ENCAPSULATION_PORT),
            over_ip: SctpOverIp::Must,
            dtls: None,
            dtls_clients: None,
            association: AssociationConfig::default(),
        }
    }
}

/// Whether SCTP is served directly over IP: through the kernel if it has SCTP, and otherwise by
/// eyas itself, which requires privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SctpOverIp {
    /// Never.
    No,
    /// If possible.
    #[default]
    IfPossible,
    /// Always: it is an error if it is not possible.
    Must,
}

/// Accepts associations. Dropping it stops accepting; accepted associations stay open.
#[derive(Debug)]
pub struct SctpListener {
    unprotected: EndpointHandle,
    /// Traffic inside DTLS has its own endpoint, so it never mixes with unencrypted traffic.
    protected: Option<EndpointHandle>,
    /// Accepts what arrives directly over IP if the kernel provides SCTP.
    kernel: Option<KernelListener>,
    port: u16,
    /// Claims to the port over raw IP, held until the listener is dropped.
    _claims: Vec<Claim>,
}

impl SctpListener {
    /// Binds the sockets. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If a socket cannot be opened: the port is taken, or privileges are missing.
    pub fn bind(parameters: &SctpListenParameters) -> io::Result<Self> {
        let addresses = socket_addresses(&parameters.addresses);
        let mut wires = match parameters.encapsulation_port {
            Some(port) => udp(&addresses, port)?,
            None => Vec::new(),
        };
        let mut protected = Vec::new();
        if let Some(identity) = &parameters.dtls {
            for wire in &mut wires {
                let verifier = parameters.dtls_clients.clone();
                protected.push(wire.share_with_dtls(identity.clone(), verifier)?);
            }
        }
        let mut port = parameters.addresses.first().map_or(0, SocketAddr::port);
        if port == 0 {
            port = wires.first().map_or(0, |wire| wire.local().port());
        }
        let (mut kernel, mut claims) = (None, Vec::new());
        match (parameters.over_ip, direct_access()) {
            (SctpOverIp::No, _) | (SctpOverIp::IfPossible, Err(_)) => {}
            (_, Ok(DirectAccess::Kernel)) => {
                let listener = listen_through_kernel(parameters, port)?;
                port = listener.port();
                kernel = Some(listener);
            }
            (_, Ok(DirectAccess::Raw)) => {
                for address in &addresses {
                    wires.push(Wire::raw_at(*address)?);
                    let claim = || Claim::acquire(address.ip(), port);
                    claims.extend((port != 0).then(claim).transpose()?);
                }
            }
            (SctpOverIp::Must, Err(why)) => {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
        }
        if (wires.is_empty() && kernel.is_none()) || port == 0 {
            let what = "neither SCTP over UDP nor SCTP directly over IP is requested";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut config = EndpointConfig::default();
        config.listen_port = Some(port);
        config.association = parameters.association.clone();
        let mut inside_dtls = config.clone();
        let homing = match parameters.dtls_clients {
            None => {
                inside_dtls.association = over_dtls(&config.association);
                Homing::Single
            }
            Some(_) => {
                inside_dtls.association = over_dtls_paths(&config.association);
                Homing::Multi
            }
        };
        let unprotected = task::start(config, wires, Homing::Multi, None)?;
        let protected = match protected.is_empty() {
            true => None,
            false => {
                let reader = Some(ReaderGuard::new(&unprotected));
                Some(task::start(inside_dtls, protected, homing, reader)?)
            }
        };
        Ok(Self { unprotected, protected, kernel, port, _claims: claims })
    }

    /// Returns the SCTP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the UDP port for SCTP over UDP, if that is served.
    pub fn encapsulation_port(&self) -> Option<u16> {
        let mut ports = self.unprotected.0.wires.iter().map(|wire| wire.local().port());
        ports.find(|port| *port != 0)
    }

    /// Returns whether SCTP is served directly over IP.
    pub fn is_direct(&self) -> bool {
        self.kernel.is_some() || self.unprotected.0.wires.iter().any(Wire::is_shared)
    }

    /// Waits for the next association opened by a peer. Cancel-safe.
    pub async fn accept(&self) -> SctpAssociation {
        let shared = &self.unprotected.0;
        let accepted = poll_fn(|cx| shared.poll_accept(cx).map_or(Poll::Pending, Poll::Ready));
        let through_kernel = async {
            match &self.kernel {
                Some(kernel) => kernel.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            id = accepted => SctpAssociation::new(OwnAssociation { shared: Arc::clone(shared), id }),
            association = through_kernel => association,
        }
    }

    /// Waits for the next association opened by a peer inside DTLS; never returns if DTLS is not
    /// served. Cancel-safe.
    pub async fn accept_dtls(&self) -> SctpAssociation {
        let Some(EndpointHandle(shared)) = &self.protected else {
            return std::future::pending().await;
        };
        let id = poll_fn(|cx| shared.poll_accept(cx).map_or(Poll::Pending, Poll::Ready)).await;
        SctpAssociation::new(OwnAssociation { shared: Arc::clone(shared), id })
    }

    /// Uses another certificate and key for the DTLS sessions that begin from now on; those that
    /// there are go on. Without DTLS it has no effect.
    pub fn replace_identity(&self, identity: &DtlsIdentity) {
        for sessions in self.unprotected.0.wires.iter().filter_map(Wire::dtls_sessions) {
            sessions.replace_identity(identity.clone());
        }
    }

    /// Returns the number of associations, accepted or not, with or without DTLS. Those of the
    /// kernel's SCTP are not counted.
    pub fn associations(&self) -> usize {
        let endpoints = std::iter::once(&self.unprotected).chain(&self.protected);
        endpoints.map(|endpoint| endpoint.0.lock().endpoint.associations().len()).sum()
    }

    /// Returns the number of DTLS sessions, with or without an association.
    #[cfg(test)]
    pub(super) fn sessions(&self) -> usize {
        self.unprotected
            .0
            .wires
            .iter()
            .filter_map(Wire::dtls_sessions)
            .map(|sessions| sessions.count())
            .sum()
    }

    /// Returns the protocol's counters. The kernel's SCTP is not included.
    pub fn counters(&self) -> EndpointCounters {
        self.unprotected.0.lock().endpoint.counters()
    }
}

/// Returns the addresses to open sockets at: `[::]` represents both families.
fn socket_addresses(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut addresses = addresses.to_vec();
    if let [only] = addresses[..]
        && only.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    {
        addresses.insert(0, SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), only.port()));
    }
    addresses
}

/// Opens the kernel's listener, at the same port as SCTP inside UDP.
fn listen_through_kernel(
    parameters: &SctpListenParameters,
    port: u16,
) -> io::Result<KernelListener> {
    let mut addresses = parameters.addresses.clone();
    addresses.iter_mut().for_each(|address| address.set_port(port));
    KernelListener::bind(&addresses, &parameters.association)
}

/// Returns the error that the port for SCTP inside UDP is in use.
fn taken(port: u16) -> io::Error {
    let owner = owner_of_udp_port(port).unwrap_or_else(|| "another program".to_owned());
    let what = format!("UDP port {port} is taken by {owner}");
    io::Error::new(io::ErrorKind::AddrInUse, what)
}

/// Opens a UDP socket at each address, all with the same port; 0 selects one that is free at all of
/// them.
fn udp(addresses: &[SocketAddr], port: u16) -> io::Result<Vec<Wire>> {
    let bind_all = || -> io::Result<Vec<Wire>> {
        let mut wires: Vec<Wire> = Vec::with_capacity(addresses.len());
        for address in addresses {
            let mut address = *address;
            address.set_port(wires.first().map_or(port, |first| first.local().port()));
            wires.push(Wire::udp(address)?);
        }
        Ok(wires)
    };
    let mut tries = if port == 0 { PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        match bind_all() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => match port {
                // The port that was free at the first address is taken at another one.
                0 if tries > 0 => {}
                0 => return Err(error),
                port => return Err(taken(port)),
            },
            outcome => return outcome,
        }
    }
}
