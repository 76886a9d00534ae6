//! The files that a server loads at its start and again while it runs.

use std::path::PathBuf;
use std::time::SystemTime;

use eyas::ServerIdentity;
use eyas_gateway::Gateway;
use eyas_http::serve::{ClientCertificates, Running};

use super::failure;
use crate::command::{identity, setting};
use crate::failure::{Failure, FailureKind};
use crate::flags::ServeFlags;

/// Returns the files that are watched.
pub(super) fn watched(flags: &ServeFlags) -> Vec<PathBuf> {
    let files = flags.cert.iter().chain(&flags.key).chain(&flags.passphrase.pass_file);
    files.chain(&flags.client_ca).chain(&flags.upstream_cacert).cloned().collect()
}

/// Reads the certificates with their keys; none if they are to be generated.
pub(super) fn identities(flags: &ServeFlags) -> Result<Vec<ServerIdentity>, Failure> {
    if flags.cert.len() != flags.key.len() {
        let (certs, keys) = (flags.cert.len(), flags.key.len());
        let text =
            format!("there are {certs} --cert and {keys} --key: each certificate has its key");
        return Err(Failure::new(FailureKind::Usage, text).hint("list them in the same order"));
    }
    let pairs = flags.cert.iter().zip(&flags.key);
    pairs.map(|(cert, key)| identity::from_files(cert, key, &flags.passphrase)).collect()
}

/// Reads the authorities that issue certificates to clients.
pub(super) fn clients(flags: &ServeFlags) -> Result<Option<ClientCertificates>, Failure> {
    let Some(path) = &flags.client_ca else { return Ok(None) };
    setting::roots(path).map(|roots| Some(ClientCertificates::required(roots)))
}

/// Returns a warning for each certificate that has expired.
pub(super) fn expired(flags: &ServeFlags, identities: &[ServerIdentity]) -> Vec<String> {
    let now = SystemTime::now();
    let named = flags.cert.iter().zip(identities);
    let expired = named.filter_map(|(path, identity)| {
        let at = identity.expires().filter(|at| *at <= now)?;
        let at = humantime::format_rfc3339_seconds(at);
        Some(format!("the certificate {} expired at {at}: clients reject it", path.display()))
    });
    expired.collect()
}

/// Loads everything again. Each result says what was loaded, or why the former stays in use.
pub(super) fn load(
    flags: &ServeFlags,
    running: &Running,
    gateway: Option<&Gateway>,
) -> Vec<Result<String, Failure>> {
    let mut results = Vec::new();
    if !flags.cert.is_empty() {
        let loaded = identities(flags).and_then(|identities| {
            running.replace_identities(&identities).map_err(|cause| failure(&cause))?;
            Ok(identities)
        });
        results.push(loaded.map(|identities| {
            let names: Vec<_> = flags.cert.iter().map(|path| path.display().to_string()).collect();
            match expired(flags, &identities).is_empty() {
                true => format!("loaded {}", names.join(", ")),
                false => format!("loaded {}, though expired", names.join(", ")),
            }
        }));
    }
    if let Some(path) = &flags.client_ca {
        let loaded = clients(flags).and_then(|clients| match clients {
            Some(clients) => {
                running.replace_client_certificates(&clients).map_err(|cause| failure(&cause))
            }
            None => Ok(()),
        });
        results.push(loaded.map(|()| format!("loaded {}", path.display())));
    }
    if let (Some(path), Some(gateway)) = (&flags.upstream_cacert, gateway) {
        results.push(super::gateway::reload(gateway, path));
    }
    results
}
