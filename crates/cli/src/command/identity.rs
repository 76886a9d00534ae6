//! Who a server is: the certificate that the user gave, or one made on the spot and kept where asked.

use std::fs;
use std::io::Write;
use std::path::Path;

use eyas::{ServerIdentity, certificates_from_pem, is_self_signed_by_eyas};

use super::setting;
use crate::failure::{Failure, Kind};
use crate::output::WholeFile;

/// A chain and a key in PEM.
pub(super) fn given(cert: &Path, key: &Path) -> Result<ServerIdentity, Failure> {
    let (chain, key) = (setting::read(cert)?, setting::read(key)?);
    ServerIdentity::from_pem(&chain, &key).map_err(|cause| unusable(&cause))
}

/// A certificate for these names, made on the spot. Others can trust the one in `save`.
pub(super) fn made<N: Into<String>>(
    names: impl IntoIterator<Item = N>,
    save: Option<&Path>,
) -> Result<ServerIdentity, Failure> {
    let identity = ServerIdentity::self_signed(names).map_err(|cause| unusable(&cause))?;
    if let Some(path) = save {
        let pem = identity.certificate_pem().map_err(|cause| unusable(&cause))?;
        keep(&pem, path)?;
    }
    Ok(identity)
}

/// Writes a certificate to a file that is new, or held one of those that are made here: what else is
/// there, such as all that a machine trusts, is not made again in a moment.
fn keep(pem: &str, path: &Path) -> Result<(), Failure> {
    let name = path.display().to_string();
    if !may_be_replaced(path) {
        let text = format!("{name} is there, and is no certificate that eyas made");
        return Err(Failure::new(Kind::Write, text).hint("name another file, or remove that one"));
    }
    let mut file = WholeFile::create(path)?;
    file.write_all(pem.as_bytes()).map_err(|cause| Failure::write(&name, &cause))?;
    file.finish()
}

fn may_be_replaced(path: &Path) -> bool {
    match fs::metadata(path) {
        // What is no file is not replaced, and what cannot be looked at says so when written.
        Ok(there) if there.is_file() && there.len() > 0 => {}
        _ => return true,
    }
    let text = fs::read(path).unwrap_or_default();
    let alone = String::from_utf8_lossy(&text).matches("-----BEGIN").count() == 1;
    let certificates = certificates_from_pem(&text).unwrap_or_default();
    alone && certificates.iter().all(is_self_signed_by_eyas) && !certificates.is_empty()
}

fn unusable(cause: &eyas::Error) -> Failure {
    let cause = setting::what_is_wrong(cause);
    Failure::new(Kind::Identity, format!("cannot use the certificate or its key: {cause}"))
        .hint("leave out --cert and --key to have one made on the spot")
}
