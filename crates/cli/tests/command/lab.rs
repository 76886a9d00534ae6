//! `eyas lab`: a plan of our own, resumed, judged and reported.

use std::fs;
use std::path::Path;

use crate::stage::{Eyas, validate};

const PLAN: &str = "name = 'mine'\ntitle = 'Mine'\nabout = 'One path, two sizes.'\nruns = 2
time = { warm_up = '2 s', duration = '2 s' }
path.A = { rate = '10 Mbit/s', delay = '10 ms' }
association = { profile = 'pfldnet2010' }
sweep = { parameter = 'association.buffer', values = ['8 KiB', '64 KiB'] }
curve = [{ id = 'one' }]
figure = [{ title = 'Rate', measure = 'throughput' }]
[[claim]]
id = 'full'
text = 'It fills the path.'
published = '9.6 Mbit/s'
check = [{ value = 'throughput[one, 64 KiB]', at_least = 9.4 }]
";

fn lab(directory: &Path, line: &str) -> Eyas {
    Eyas::new(&format!("lab {line}")).arg("--out").arg(directory.join("out").display().to_string())
}

fn plan(directory: &Path, text: &str) -> String {
    let file = directory.join("mine.toml");
    fs::write(&file, text).expect("a plan");
    format!("run {}", file.display())
}

#[test]
fn a_plan_of_ones_own_is_run_judged_and_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = plan(directory.path(), PLAN);
    let object = lab(directory.path(), &line).arg("--json").run().exits(0).json();
    validate("lab", &object);
    assert_eq!(object["claims"][0]["accepted"], true, "{object:#}");
    assert_eq!(object["run"]["seeds"], serde_json::json!([1, 2]));
    let out = directory.path().join("out");
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("It fills the path.") && page.contains("<svg"));
    assert!(out.join("result.csv").exists());
    // The second time everything is found finished, and comes out the same.
    let again = lab(directory.path(), &line).run().exits(0).out;
    assert!(again.contains("accepted") && again.contains("report.html"), "{again}");
    fs::remove_file(out.join("report.html")).expect("removed");
    let report = format!("lab report {}", out.display());
    let reported = Eyas::new(&report).arg("--json").run().exits(0).json();
    assert_eq!(reported["points"], object["points"]);
    assert!(out.join("report.html").exists());
}

#[test]
fn a_refused_claim_fails_if_that_is_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = plan(directory.path(), &PLAN.replace("9.4", "11"));
    lab(directory.path(), &line).run().exits(0);
    let said = lab(directory.path(), &line).arg("--check").run().exits(112).err;
    assert!(said.contains("claim full"), "{said}");
}

#[test]
fn what_cannot_be_run_is_told_with_what_to_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let said = lab(directory.path(), "run cmt-dely").run().exits(2).err;
    assert!(said.contains("cmt-dely") && said.contains("cmt-delay"), "{said}");
    let line = plan(directory.path(), &PLAN.replace("sweep", "sweap"));
    let said = lab(directory.path(), &line).run().exits(2).err;
    assert!(said.contains("sweap") && said.contains("line 8"), "{said}");
    let said = Eyas::new("lab report").arg("/nowhere").run().exits(26).err;
    assert!(said.contains("eyas lab run"), "{said}");
}

#[test]
fn shipped_plans_are_listed_and_can_be_begun_with() {
    let object = Eyas::new("lab list").arg("--json").run().exits(0).json();
    validate("lab", &object);
    let names: Vec<&str> = object["plans"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|plan| plan["name"].as_str())
        .collect();
    assert!(names.contains(&"cmt-delay"), "{names:?}");
    assert!(Eyas::new("lab list").run().exits(0).out.contains("cmt-delay"));
    let text = Eyas::new("lab show cmt-delay").run().exits(0).out;
    assert!(text.contains("[[curve]]"), "{text}");
}
