//! `cargo xtask python`: builds the Python package, which includes the command, and tests it in an
//! environment that contains nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::run::{check, command, file_error, output, target, works, workspace};

/// The tool that builds wheels.
const MATURIN: &str = "maturin==1.16.0";
/// The package.
pub(crate) const PACKAGE: &str = "bindings/python";
/// Files copied into the wheel as they are: `scripts` below it are commands.
pub(crate) const DATA: &str = "bindings/python/eyas.data";
/// Checks that a Python can create environments and is new enough.
const IS_GOOD: &str = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))";
/// Prints the version of a Python, if it can create environments.
const WHICH: &str = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])";
/// The versions of Python that the wheel is for: 3.10 to 3.14.
const MINORS: std::ops::RangeInclusive<u32> = 10..=14;

/// Builds the wheel and, unless `--build` is given, tests it.
pub(crate) fn main(options: &[&str]) -> Result<(), String> {
    if options.iter().any(|option| !["--build", "--dev"].contains(option)) {
        return Err("python takes --build and --dev".into());
    }
    let Some(wheel) = wheel(options.contains(&"--dev"))? else { return Ok(()) };
    if options.contains(&"--build") {
        return Ok(());
    }
    let directory = target().join("python");
    test_in_empty_environment(&directory, &wheel)?;
    test(&directory, &wheel)?;
    test_niquests(&directory, &wheel)?;
    run_notebook(&directory)
}

/// Builds the wheel, without optimisation if `dev`; without the build tool, prints a message and returns `None`.
fn wheel(dev: bool) -> Result<Option<PathBuf>, String> {
    if !works("python3", &["-c", IS_GOOD]) {
        return Err("python3 is missing, older than 3.10, or has no venv".into());
    }
    let directory = target().join("python");
    let tools = environment(&directory.join("tools"))?;
    if let Err(why) = install(&tools, &[MATURIN]) {
        println!("SKIPPED: the package index has no maturin for this machine: {why}");
        return Ok(None);
    }
    let wheel = build(&tools, &directory.join("wheels"), dev)?;
    println!("the wheel is {}", wheel.display());
    Ok(Some(wheel))
}

/// Returns the interpreter of a virtual environment, which is created if it does not exist.
fn environment(directory: &Path) -> Result<PathBuf, String> {
    let python = directory.join("bin/python");
    if !python.exists() {
        check(command("python3", &["-m", "venv"]).arg(directory))?;
    }
    Ok(python)
}

/// Runs `pip install` with these arguments in an environment.
fn install(python: &Path, what: &[&str]) -> Result<(), String> {
    let args = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    check(command(&python.to_string_lossy(), &args).args(what))
}

/// Builds the command, which is part of the wheel, and then the wheel; returns the path of the wheel.
fn build(tools: &Path, wheels: &Path, dev: bool) -> Result<PathBuf, String> {
    let (profile, built) = if dev { ("dev", "debug") } else { ("release", "release") };
    check(&mut command("cargo", &["build", "--profile", profile, "--package", "eyas-cli"]))?;
    let scripts = workspace().join(DATA).join("scripts");
    fs::create_dir_all(&scripts).map_err(|error| file_error(&scripts, &error))?;
    let program = target().join(built).join("eyas");
    fs::copy(&program, scripts.join("eyas")).map_err(|error| file_error(&program, &error))?;
    // Only this wheel may be there afterwards.
    removed(wheels)?;
    let manifest = format!("{PACKAGE}/Cargo.toml");
    let args = ["-m", "maturin", "build", "--profile", profile, "--locked"];
    let mut maturin = command(&tools.to_string_lossy(), &args);
    check(maturin.args(["--manifest-path", &manifest]).arg("--out").arg(wheels))?;
    let entries = fs::read_dir(wheels).map_err(|error| file_error(wheels, &error))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut wheels_found =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "whl"));
    wheels_found.next().ok_or_else(|| format!("{} contains no wheel", wheels.display()))
}

/// Installs the wheel in an empty environment for each installed version of Python, and follows its README.
/// No other program can be found there, so no compiler either.
fn test_in_empty_environment(directory: &Path, wheel: &Path) -> Result<(), String> {
    let pythons = pythons();
    for minor in MINORS {
        let Some((_, python)) = pythons.iter().find(|(version, _)| *version == minor) else {
            println!("SKIPPED Python 3.{minor}: it is not installed here");
            continue;
        };
        let fresh = removed(&directory.join(format!("alone-3.{minor}")))?;
        check(command(&python.to_string_lossy(), &["-m", "venv"]).arg(&fresh))?;
        let run = |args: &[&str]| {
            let python = fresh.join("bin/python").to_string_lossy().into_owned();
            check(command(&python, args).env("PATH", fresh.join("bin")))
        };
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(&[&pip[..], &["--no-index", &wheel.to_string_lossy()]].concat())?;
        run(&["-B", &format!("{PACKAGE}/tests/fresh.py")])?;
    }
    Ok(())
}

/// Returns every Python in the path and in pyenv, with its minor version.
fn pythons() -> Vec<(u32, PathBuf)> {
    let mut candidates = vec![PathBuf::from("python3")];
    candidates.extend(MINORS.map(|minor| PathBuf::from(format!("python3.{minor}"))));
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv"));
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from).or(home);
    let versions = pyenv.and_then(|root| fs::read_dir(root.join("versions")).ok());
    let versions = versions.into_iter().flatten().flatten();
    candidates.extend(versions.map(|version| version.path().join("bin/python3")));
    let version = |python: PathBuf| {
        let output = output(&mut command(&python.to_string_lossy(), &["-c", WHICH])).ok()?;
        Some((output.trim().strip_prefix("3.")?.parse().ok()?, python))
    };
    candidates.into_iter().filter_map(version).collect()
}

/// Removes a directory, if it exists, and returns its path.
fn removed(directory: &Path) -> Result<PathBuf, String> {
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(|error| file_error(directory, &error))?;
    }
    Ok(directory.to_path_buf())
}

/// Installs the wheel into an empty environment and runs its tests.
fn test(directory: &Path, wheel: &Path) -> Result<(), String> {
    let python = environment(&removed(&directory.join("test"))?)?;
    install(&python, &[&wheel.to_string_lossy()])?;
    let tests = format!("{PACKAGE}/tests");
    install(&python, &["-r", &format!("{tests}/requirements.txt")])?;
    let run = |args: &[&str]| run_clean(&python, args);
    run_tests(&python, &tests)?;
    let cache = directory.join("mypy");
    let cache = cache.to_string_lossy();
    let mypy = ["-m", "mypy", "--strict", "--cache-dir", &cache];
    run(&[&mypy[..], &["-p", "eyas"]].concat())?;
    run(&[&mypy[..], &[&tests]].concat())?;
    run(&["-m", "mypy.stubtest", "eyas._native"])?;
    pyright(&python, &tests)
}

/// Runs the tests below a path.
fn run_tests(python: &Path, tests: &str) -> Result<(), String> {
    let settings = format!("{PACKAGE}/pyproject.toml");
    run_clean(python, &["-m", "pytest", "-q", "-c", &settings, "--rootdir", PACKAGE, tests])
}

fn run_clean(python: &Path, args: &[&str]) -> Result<(), String> {
    // A __pycache__ left over in the sources would interfere.
    check(command(&python.to_string_lossy(), args).env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Runs the tests with niquests separately, because it replaces a part of requests.
fn test_niquests(directory: &Path, wheel: &Path) -> Result<(), String> {
    let python = environment(&directory.join("niquests"))?;
    let tests = format!("{PACKAGE}/tests");
    let wheel = wheel.to_string_lossy();
    install(&python, &["--force-reinstall", "--no-deps", &wheel])?;
    install(&python, &["-r", &format!("{tests}/requirements-niquests.txt")])?;
    run_tests(&python, &format!("{tests}/test_niquests.py"))
}

/// Executes the notebook, which installs the wheel.
fn run_notebook(directory: &Path) -> Result<(), String> {
    let python = environment(&removed(&directory.join("notebook"))?)?;
    let tests = format!("{PACKAGE}/tests");
    install(&python, &["-r", &format!("{tests}/requirements-notebook.txt")])?;
    let runs = removed(&directory.join("notebook-runs"))?;
    let mut run = command(&python.to_string_lossy(), &["-B", &format!("{tests}/notebook.py")]);
    check(run.arg(directory.join("wheels")).arg(runs))
}

/// Runs the other type checker, which requires Node.
fn pyright(python: &Path, tests: &str) -> Result<(), String> {
    let is_there = works("node", &["--version"])
        && install(python, &["-r", &format!("{tests}/requirements-pyright.txt")]).is_ok()
        && works(&python.to_string_lossy(), &["-m", "pyright", "--version"]);
    if !is_there {
        println!("SKIPPED pyright: Node or the package is not available here");
        return Ok(());
    }
    let args = ["-m", "pyright", "--project", PACKAGE, "--pythonpath"];
    check(command(&python.to_string_lossy(), &args).arg(python))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_options_are_refused() {
        assert!(main(&["--fast"]).is_err_and(|why| why.contains("--build")));
    }
}
