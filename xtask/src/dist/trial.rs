//! Each package installed in a root that has nothing else, where the command then runs its demo and a race.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::platform::{OLDEST_GLIBC, Platform};
use super::{Release, VERSION, copied, created, emptied, file_error, written};
use crate::run::{check, command, output, works};
use crate::trial_server::TrialServer;

/// The program that runs another one in a root.
const CHROOT: &str = "/usr/sbin/chroot";
/// What a login gives.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Fetches a page with the Python package.
const FETCH_IN_PYTHON: &str = "import sys, eyas
response = eyas.get(sys.argv[1], verify=False)
print('eyas', eyas.__version__, response.http_version, 'over', response.info.transport)";
/// Fails unless a wheel has all that a Python for Windows needs: there is none here that could install it.
const WHEEL_FOR_WINDOWS: &str = "import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
module = wheel.read('eyas/_native.pyd')
wanted = [b'PyInit__native\\0', b'python3.dll\\0']
missing = [name for name in wanted if name not in module]
missing += {'eyas/__init__.py', 'eyas/py.typed'} - set(wheel.namelist())
missing += ['the command'] * (not any(name.endswith('scripts/eyas.exe') for name in wheel.namelist()))
sys.exit(f'not in the wheel for Windows: {missing}' if missing else 0)";

/// The archive: by the installer, into a root without any other file.
pub(super) fn archives(release: &Release) -> Result<(), String> {
    let platform = release.host()?;
    let root = emptied(&release.stage.join("root-archive"))?;
    let installer = release.out.join("install.sh");
    let mut install = command("sh", &[installer.as_os_str()]);
    check(install.arg("--from").arg(&release.out).arg("--to").arg(root.join("bin")))?;
    refuses_a_damaged_archive(release, platform, &installer)?;
    lists_its_crates(&root.join("bin/eyas"))?;
    created(&root.join("tmp"))?;
    in_root(&root, |arguments| chroot(&root, &[], "/bin/eyas", arguments))
}

/// Scanners find the crates that a program is made of in a section with this name.
fn lists_its_crates(program: &Path) -> Result<(), String> {
    let section = b".dep-v0";
    let content = fs::read(program).map_err(|error| file_error(program, &error))?;
    match content.windows(section.len()).any(|octets| octets == section) {
        true => Ok(()),
        false => Err(format!("{} does not list its crates", program.display())),
    }
}

/// A byte changed in the archive: the installer says so and installs nothing.
fn refuses_a_damaged_archive(
    release: &Release,
    platform: &Platform,
    installer: &Path,
) -> Result<(), String> {
    let damaged = emptied(&release.stage.join("damaged"))?;
    let name = format!("eyas-{VERSION}-{}-linux.tar.gz", platform.arch);
    copied(&release.out.join("SHA256SUMS"), &damaged.join("SHA256SUMS"))?;
    let archive = release.out.join(&name);
    let mut content = fs::read(&archive).map_err(|error| file_error(&archive, &error))?;
    if let Some(last) = content.last_mut() {
        *last ^= 1;
    }
    written(&damaged.join(&name), content)?;
    let into = damaged.join("bin");
    let mut install = command("sh", &[installer.as_os_str()]);
    let refused = output(install.arg("--from").arg(&damaged).arg("--to").arg(&into));
    match refused {
        Err(why) if why.contains("not what SHA256SUMS says") && !into.join("eyas").exists() => {
            Ok(())
        }
        Err(why) => Err(format!("the installer failed otherwise than by the checksum: {why}")),
        Ok(_) => Err("the installer took a damaged archive".into()),
    }
}

/// The packages of Debian and Fedora: installed, run and removed.
pub(super) fn system(release: &Release) -> Result<(), String> {
    let platform = release.host()?;
    debian(release, platform)?;
    fedora(release, platform)
}

fn debian(release: &Release, platform: &Platform) -> Result<(), String> {
    if !works("debootstrap", &["--version"]) {
        println!("SKIPPED the package of Debian: debootstrap is not installed");
        return Ok(());
    }
    let root = release.stage.join("root-debian");
    if !root.join("usr/bin/dpkg").exists() {
        let root = emptied(&root)?;
        check(command("debootstrap", &["--variant=minbase", "stable"]).arg(&root))?;
    }
    let package = format!("eyas_{VERSION}-1_{}.deb", platform.deb);
    copied(&release.out.join(&package), &root.join("tmp").join(&package))?;
    let before = every_file(&root)?;
    check(&mut chroot(&root, &[], "/usr/bin/dpkg", &["--install", &format!("/tmp/{package}")]))?;
    in_root(&root, |arguments| chroot(&root, &[], "/usr/bin/eyas", arguments))?;
    check(&mut chroot(&root, &[], "/usr/bin/dpkg", &["--purge", "eyas"]))?;
    nothing_remains(&before, &every_file(&root)?)
}

fn fedora(release: &Release, platform: &Platform) -> Result<(), String> {
    if !works("rpm", &["--version"]) || !works("busybox", &["true"]) {
        println!("SKIPPED the package of Fedora: rpm or busybox is not installed");
        return Ok(());
    }
    let root = emptied(&release.stage.join("root-rpm"))?;
    // The shell of the scripts; the command needs nothing.
    let busybox = output(&mut command("sh", &["-c", "command -v busybox"]))?;
    copied(Path::new(busybox.trim()), &root.join("bin/sh"))?;
    created(&root.join("tmp"))?;
    let rpm = |arguments: &[&str]| {
        let mut rpm = command("rpm", &["--root"]);
        rpm.arg(&root).args(["--dbpath", "/var/lib/rpm"]).args(arguments);
        check(&mut rpm)
    };
    rpm(&["--initdb"])?;
    let before = every_file(&root)?;
    let package = release.out.join(format!("eyas-{VERSION}-1.{}.rpm", platform.arch));
    // There is no package of busybox that could provide /bin/sh.
    rpm(&["--install", "--nodeps", &package.to_string_lossy()])?;
    in_root(&root, |arguments| chroot(&root, &[], "/usr/bin/eyas", arguments))?;
    rpm(&["--erase", "eyas"])?;
    nothing_remains(&before, &every_file(&root)?)
}

/// The image, as the user that it names.
pub(super) fn image(release: &Release) -> Result<(), String> {
    let platform = release.host()?;
    let image = release.out.join(format!("eyas-{VERSION}.oci.tar"));
    let layout = emptied(&release.stage.join("image-read"))?;
    check(command("tar", &["-xf"]).arg(&image).arg("-C").arg(&layout))?;
    if works("skopeo", &["--version"]) {
        let name = format!("oci:{}:{VERSION}", layout.display());
        check(&mut command("skopeo", &["inspect", "--override-arch", platform.deb, &name]))?;
    } else {
        println!("SKIPPED reading the image with skopeo: it is not installed");
    }
    let blob = |digest: &Value| {
        let digest = digest.as_str().unwrap_or_default().trim_start_matches("sha256:");
        layout.join("blobs/sha256").join(digest)
    };
    let index = object(&layout.join("index.json"))?;
    let rows = index["manifests"].as_array().cloned().unwrap_or_default();
    let own = rows.iter().find(|row| row["platform"]["architecture"] == platform.deb);
    let own = own.ok_or_else(|| format!("the image has nothing for {}", platform.deb))?;
    let manifest = object(&blob(&own["digest"]))?;
    let config = object(&blob(&manifest["config"]["digest"]))?;
    let root = emptied(&release.stage.join("root-image"))?;
    for layer in manifest["layers"].as_array().into_iter().flatten() {
        check(command("tar", &["-xzpf"]).arg(blob(&layer["digest"])).arg("-C").arg(&root))?;
    }
    let words = |list: &Value| {
        let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let (environment, entry) =
        (words(&config["config"]["Env"]), words(&config["config"]["Entrypoint"]));
    let user = config["config"]["User"].as_str().unwrap_or_default().to_owned();
    in_root(&root, |arguments| {
        let mut run = command("env", &["-i"]);
        run.args(&environment).args([CHROOT, &format!("--userspec={user}")]).arg(&root);
        run.args(&entry).args(arguments);
        run
    })
}

/// The packages of Node, without a registry.
pub(super) fn npm(release: &Release) -> Result<(), String> {
    let platform = release.host()?;
    let root = emptied(&release.stage.join("root-npm"))?;
    written(&root.join("package.json"), "{\"private\": true}\n")?;
    let of_platform = format!("eyas-linux-{}-{VERSION}.tgz", platform.node);
    let inside = |program: &str, arguments: &[&str]| {
        let mut run = command(program, arguments);
        run.current_dir(&root).env("HOME", &root).env("npm_config_cache", root.join("cache"));
        run
    };
    let install = ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"];
    let mut install = inside("npm", &install);
    check(
        install
            .args([of_platform, format!("eyas-{VERSION}.tgz")].map(|name| release.out.join(name))),
    )?;
    check(&mut inside("npx", &["--no-install", "eyas", "--version"]))?;
    let eyas = root.join("node_modules/.bin/eyas").to_string_lossy().into_owned();
    in_root(&root, |arguments| inside(&eyas, arguments))
}

/// The wheels, without an index, in an empty environment.
pub(super) fn wheels(release: &Release) -> Result<(), String> {
    let platform = release.host()?;
    let root = emptied(&release.stage.join("root-wheel"))?;
    check(command("python3", &["-m", "venv"]).arg(&root))?;
    let manylinux = format!("manylinux_{}_{}", OLDEST_GLIBC.replace('.', "_"), platform.arch);
    let wheel = wheel_for(release, &manylinux)?;
    let python = root.join("bin/python").to_string_lossy().into_owned();
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"];
    check(command(&python, &install).arg(&wheel))?;
    let eyas = root.join("bin/eyas").to_string_lossy().into_owned();
    in_root(&root, |arguments| command(&eyas, arguments))?;
    let server = TrialServer::start(&mut command(&eyas, &[] as &[&str]))?;
    check(&mut command(&python, &["-c", FETCH_IN_PYTHON, &server.url]))?;
    if release.has_windows() {
        let wheel = wheel_for(release, "win_amd64")?;
        check(release.tools.run_python(&["-c", WHEEL_FOR_WINDOWS]).arg(wheel))?;
    }
    Ok(())
}

/// Returns the wheel with a tag in its name.
fn wheel_for(release: &Release, tag: &str) -> Result<PathBuf, String> {
    let mut wheels = super::archive::files(&release.out)?.into_iter();
    let fits = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ending == "whl")
            && path.to_string_lossy().contains(tag)
    };
    wheels.find(fits).ok_or_else(|| format!("there is no wheel for {tag}"))
}

/// The sources of the Python package: pip builds the module from them, with the tools that are here.
pub(super) fn sdist(release: &Release) -> Result<(), String> {
    let root = emptied(&release.stage.join("root-sdist"))?;
    let install =
        ["-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--target"];
    let mut pip = release.tools.run_python(&install);
    release.tools.lend(&mut pip, release);
    check(pip.arg(&root).arg(release.out.join(format!("eyas-{VERSION}.tar.gz"))))?;
    let mut python =
        release.tools.run_python(&["-c", "import eyas; print('eyas', eyas.__version__)"]);
    check(python.env("PYTHONPATH", &root))
}

/// The C library: an example, which races against itself, compiled with what pkg-config says.
pub(super) fn library(release: &Release) -> Result<(), String> {
    let platform = release.host()?;
    let root = emptied(&release.stage.join("root-library"))?;
    let name = format!("libeyas-{VERSION}-{}-linux", platform.arch);
    let archive = release.out.join(format!("{name}.tar.gz"));
    check(command("tar", &["-xzf"]).arg(&archive).arg("-C").arg(&root))?;
    let library = root.join(name).join("lib");
    let mut described = command("pkg-config", &["--cflags", "--libs", "eyas"]);
    let flags = output(described.env("PKG_CONFIG_PATH", library.join("pkgconfig")))?;
    let program = root.join("echo");
    let mut cc = command("cc", &["crates/capi/examples/echo.c", "-o"]);
    check(cc.arg(&program).args(flags.split_whitespace()))?;
    check(command(&program.to_string_lossy(), &[] as &[&str]).env("LD_LIBRARY_PATH", &library))
}

/// Runs the demo and a race with a command that is installed; what is given starts it with arguments.
pub(super) fn in_root(root: &Path, eyas: impl Fn(&[&str]) -> Command) -> Result<(), String> {
    println!("in {}:", root.display());
    check(&mut eyas(&["--version"]))?;
    check(eyas(&["demo"]).stdout(Stdio::null()))?;
    let server = TrialServer::start(&mut eyas(&[]))?;
    check(&mut eyas(&["race", "--insecure", &server.url]))
}

/// Returns a command that runs in a root, with the environment of a login.
fn chroot(root: &Path, environment: &[&str], program: &str, arguments: &[&str]) -> Command {
    let mut run = command("env", &["-i", "HOME=/tmp", "LANG=C.UTF-8"]);
    run.arg(format!("PATH={PATH}")).args(environment);
    run.arg(CHROOT).arg(root).arg(program).args(arguments);
    run
}

/// Returns the paths of all files below a root, but those of package databases, logs and users.
fn every_file(root: &Path) -> Result<Vec<String>, String> {
    let list =
        output(command("find", &[] as &[&str]).arg(root).args(["-xdev", "-not", "-type", "d"]))?;
    let own = ["/var/lib/dpkg/", "/var/lib/rpm/", "/var/log/", "/tmp/"];
    // The user stays, and what adds it keeps the former lists of users.
    let is_backup = |path: &str| path.contains("/etc/") && path.ends_with('-');
    let kept = |path: &&str| !own.iter().any(|part| path.contains(part)) && !is_backup(path);
    Ok(list.lines().filter(kept).map(str::to_owned).collect())
}

/// Compares a root before and after a package was there.
fn nothing_remains(before: &[String], after: &[String]) -> Result<(), String> {
    let left: Vec<_> = after.iter().filter(|path| !before.contains(path)).cloned().collect();
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("the package left {}", left.join(", "))),
    }
}

fn object(path: &PathBuf) -> Result<Value, String> {
    let text = fs::read_to_string(path).map_err(|error| file_error(path, &error))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}
