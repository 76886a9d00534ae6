//! The container image: the command, root certificates and nothing else, for all platforms in one file of the form
//! that the OCI image specification describes (`oci-archive:` of podman and skopeo; `docker load`).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::archive::{compressed, sha256, tar};
use super::command::{command_for, licences_into};
use super::platform::Platform;
use super::{Release, VERSION, copied, created, emptied, file_error, written};

/// The user that the command runs as: nobody that a host is likely to have.
const USER: &str = "65532:65532";
/// The largest size of the image for one platform in bytes, as it is sent.
const MAX_IMAGE_BYTES: u64 = 25 * 1000 * 1000;
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A file of an image, called by its checksum.
struct Blob {
    digest: String,
    size: u64,
}

/// Makes the image.
pub(super) fn make(release: &Release) -> Result<(), String> {
    let layout = emptied(&release.stage.join("image"))?;
    let mut manifests = Vec::new();
    for platform in &release.platforms {
        manifests.push(manifest(release, platform, &layout)?);
    }
    let index = json!({ "schemaVersion": 2, "manifests": manifests });
    written(&layout.join("index.json"), index.to_string())?;
    written(&layout.join("oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    let into = release.out.join(format!("eyas-{VERSION}.oci.tar"));
    tar(release, &layout, &["blobs", "index.json", "oci-layout"], &into)
}

/// Writes the layer, the configuration and the manifest for a platform; returns the manifest's row of the index.
fn manifest(release: &Release, platform: &Platform, layout: &Path) -> Result<Value, String> {
    let packed = layer(release, platform)?;
    let contents = fs::read(&packed).map_err(|error| file_error(&packed, &error))?;
    let contents_digest = digest(&contents);
    compressed(&[&packed])?;
    let layer = add(layout, &read(&packed.with_extension("tar.gz"))?)?;
    if layer.size > MAX_IMAGE_BYTES {
        let most = MAX_IMAGE_BYTES / 1_000_000;
        return Err(format!(
            "the image for {} has {} bytes, more than {most} MB",
            platform.arch, layer.size
        ));
    }
    let config = json!({
        "architecture": platform.deb,
        "os": "linux",
        "config": {
            "User": USER,
            "Env": ["PATH=/usr/bin", "HOME=/var/lib/eyas", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
            "Entrypoint": ["/usr/bin/eyas"],
            "WorkingDir": "/var/lib/eyas",
            "Labels": {
                "org.opencontainers.image.title": "eyas",
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.revision": release.commit,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [contents_digest] },
    });
    let config = add(layout, config.to_string().as_bytes())?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": config.digest,
            "size": config.size,
        },
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
            "digest": layer.digest,
            "size": layer.size,
        }],
    });
    let manifest = add(layout, manifest.to_string().as_bytes())?;
    Ok(json!({
        "mediaType": MANIFEST,
        "digest": manifest.digest,
        "size": manifest.size,
        "platform": { "architecture": platform.deb, "os": "linux" },
        "annotations": { "org.opencontainers.image.ref.name": VERSION },
    }))
}

/// Packs the only layer.
fn layer(release: &Release, platform: &Platform) -> Result<PathBuf, String> {
    let root = emptied(&release.stage.join(format!("image-{}", platform.arch)))?;
    copied(&command_for(release, platform)?, &root.join("usr/bin/eyas"))?;
    let certificates = release.tools.root_certificates()?;
    copied(&certificates, &root.join("etc/ssl/certs/ca-certificates.crt"))?;
    licences_into(&created(&root.join("usr/share/doc/eyas"))?)?;
    created(&root.join("var/lib/eyas"))?;
    created(&root.join("tmp"))?;
    let packed = release.stage.join(format!("layer-{}.tar", platform.arch));
    tar(release, &root, &["etc", "usr"], &packed)?;
    append(
        release,
        &root,
        &packed,
        "var/lib/eyas",
        &["--owner=65532", "--group=65532", "--mode=0700"],
    )?;
    append(release, &root, &packed, "tmp", &["--owner=0", "--group=0", "--mode=1777"])?;
    Ok(packed)
}

/// Appends a directory that has an owner or permissions of its own.
fn append(
    release: &Release,
    root: &Path,
    packed: &Path,
    entry: &str,
    options: &[&str],
) -> Result<(), String> {
    let mut tar =
        crate::run::command("tar", &["--format=ustar", "--numeric-owner", "--no-recursion"]);
    tar.args(options).arg(format!("--mtime=@{}", release.time));
    crate::run::check(tar.arg("-C").arg(root).arg("-rf").arg(packed).arg(entry))
}

/// Adds a file to the image.
fn add(layout: &Path, content: &[u8]) -> Result<Blob, String> {
    let digest = digest(content);
    let name = digest.trim_start_matches("sha256:");
    written(&layout.join("blobs/sha256").join(name), content)?;
    Ok(Blob { digest, size: content.len() as u64 })
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", sha256(content))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| file_error(path, &error))
}
