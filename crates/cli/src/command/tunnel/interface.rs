//! The interface whose packets go through a tunnel.

use eyas_relay::device::DeviceHandle;
use eyas_tunnel::{InterfaceConfig, TunnelInterface};
use ipnet::IpNet;

use super::NoticePrinter;
use crate::failure::{Failure, FailureKind};
use crate::flags::TunFlags;

/// The minimum MTU of IPv6 (RFC 8200 §5).
const MIN_IPV6_MTU: u16 = 1280;

/// Creates the interface, if requested.
pub(super) fn create(
    flags: &TunFlags,
    printer: NoticePrinter,
) -> Result<Option<TunnelInterface>, Failure> {
    let Some(name) = &flags.tun else { return Ok(None) };
    let config = InterfaceConfig {
        name: name.clone(),
        addresses: flags.tun_address.clone(),
        networks: flags.tun_route.clone(),
        mtu: flags.tun_mtu,
    };
    check(&config)?;
    let device = device(&config)?;
    let failed = |cause| Failure::new(FailureKind::Listen, format!("cannot use {name}: {cause}"));
    let text = description(&config);
    let interface = TunnelInterface::new(device, config).map_err(failed)?;
    printer.info("interface", text);
    Ok(Some(interface))
}

/// Describes the interface in words.
pub(super) fn description(config: &InterfaceConfig) -> String {
    let addresses: Vec<_> = config.addresses.iter().map(IpNet::to_string).collect();
    format!("the interface {} has {}, MTU {}", config.name, addresses.join(" and "), config.mtu)
}

/// Waits until the interface is removed; forever if there is none.
pub(super) async fn until_removed(interface: Option<&TunnelInterface>) -> Failure {
    let Some(interface) = interface else { return std::future::pending().await };
    interface.gone().await;
    let name = &interface.config().name;
    Failure::new(FailureKind::Listen, format!("the interface {name} was removed"))
}

fn check(config: &InterfaceConfig) -> Result<(), Failure> {
    let usage = |text: String| Err(Failure::new(FailureKind::Usage, text));
    let all = || config.addresses.iter().chain(&config.networks);
    let limit = InterfaceConfig::MAX_ADDRESSES;
    if config.addresses.len() > limit {
        return usage(format!("an interface has {limit} addresses at most"));
    }
    if config.mtu < MIN_IPV6_MTU && all().any(|network| network.addr().is_ipv6()) {
        return usage(format!("IPv6 needs an MTU of {MIN_IPV6_MTU} at least (RFC 8200 §5)"));
    }
    match config.networks.iter().find(|network| network.prefix_len() == 0) {
        Some(all) => usage(format!(
            "--tun-route {all} would lead the packets of the tunnel itself into the tunnel"
        )),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn device(config: &InterfaceConfig) -> Result<DeviceHandle, Failure> {
    let plain = |networks: &[IpNet]| {
        networks.iter().map(|network| (network.addr(), network.prefix_len())).collect()
    };
    let networks: Vec<_> = config.networks.iter().map(IpNet::trunc).collect();
    let setup = eyas_emulator::InterfaceSetup {
        name: config.name.clone(),
        addresses: plain(&config.addresses),
        routes: plain(&networks),
        mtu: config.mtu,
    };
    setup.create().map_err(|cause| Failure::new(FailureKind::Listen, cause.to_string()))
}

#[cfg(not(target_os = "linux"))]
fn device(_: &InterfaceConfig) -> Result<DeviceHandle, Failure> {
    Err(crate::command::absent::failure("eyas tunnel --tun", crate::command::absent::TUN))
}
