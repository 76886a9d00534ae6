//! The keys of a plan's file, and how the plan comes out of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::clients;
use super::extract::Extract;
use super::layers::{self, Layer};
use super::matrix::{ColumnText, Matrix};
use super::{Extent, Options, Plan, PlanError};
use crate::claim::{Claim, ClaimText, Judged};
use crate::measure::Measure;
use crate::situation::{
    AccessSetup, ApplicationSetup, AssociationSetup, Axis, EventSetup, Grid, Mode, Named,
    PathSetup, Point, RivalSetup, Setup, Situation, Times, live,
};
use crate::units::{self, Kind};

/// Everything that a file may hold. The parts of a situation are read here for the sake of
/// messages with lines; they are read again once all layers are on one another.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    kind: KindOfPlan,
    name: String,
    title: String,
    about: String,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default = "default_runs")]
    runs: u32,
    #[serde(rename = "live")]
    _live: Option<Table>,
    #[serde(rename = "mode")]
    _mode: Option<Mode>,
    #[serde(rename = "time")]
    _time: Option<Times>,
    #[serde(default, rename = "path")]
    _path: BTreeMap<String, PathSetup>,
    #[serde(default, rename = "access")]
    _access: AccessSetup,
    #[serde(default, rename = "association")]
    _association: AssociationSetup,
    #[serde(default, rename = "application")]
    _application: ApplicationSetup,
    #[serde(default, rename = "rival")]
    _rival: BTreeMap<String, RivalSetup>,
    #[serde(default, rename = "event")]
    _event: Vec<EventSetup>,
    sweep: Sweep,
    #[serde(default)]
    scene: Vec<Scene>,
    #[serde(default)]
    curve: Vec<Curve>,
    #[serde(default, rename = "clients")]
    _clients: Vec<String>,
    #[serde(default)]
    matrix: Vec<ColumnText>,
    #[serde(default)]
    figure: Vec<Figure>,
    #[serde(default)]
    table: Vec<PublishedTable>,
    #[serde(default)]
    claim: Vec<ClaimText>,
    judged: Option<Judged>,
    #[serde(default)]
    quick: Extract,
    #[serde(default)]
    standard: Extract,
}

impl File {
    /// What is different from the whole plan.
    fn extract(&self, extent: Extent) -> Option<&Extract> {
        match extent {
            Extent::Quick => Some(&self.quick),
            Extent::Standard => Some(&self.standard),
            Extent::Full => None,
        }
    }
}

/// Where a plan is run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindOfPlan {
    #[default]
    Simulated,
    Live,
}

fn default_runs() -> u32 {
    24
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sweep {
    parameter: String,
    label: Option<String>,
    values: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scene {
    id: String,
    label: Option<String>,
    #[serde(default)]
    set: Table,
    values: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Curve {
    id: String,
    label: Option<String>,
    #[serde(default)]
    set: Table,
    scenes: Option<Vec<String>>,
    values: Option<Vec<Value>>,
}

/// One picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Above the picture.
    pub title: String,
    /// What is drawn.
    pub measure: Measure,
    /// How.
    #[serde(default)]
    pub drawing: Drawing,
    /// At the axis; the measure's own name if it is not given.
    pub label: Option<String>,
    /// Below the picture.
    #[serde(default)]
    pub caption: String,
    /// The scenes that are drawn; all if none is named.
    #[serde(default)]
    pub scenes: Vec<String>,
    /// The curves that are drawn; all if none is named.
    #[serde(default)]
    pub curves: Vec<String>,
    /// Whether each scene gets a picture of its own.
    #[serde(default)]
    pub each_scene: bool,
    /// Whether the most that paths and buffer allow is drawn, too; of the curves that it allows
    /// most. Only where throughput is drawn.
    #[serde(default)]
    pub bound: bool,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drawing {
    /// A line for each curve, along the axis.
    #[default]
    Lines,
    /// A box for each point: 10th, 25th, 50th, 75th and 90th percentile and the largest of all
    /// trials. The statistic of the measure counts for nothing.
    Boxes,
    /// For each scene a group of bars, one for each curve, at the first place of the axis.
    Bars,
    /// A bar for each point: the median of its trials, with whiskers from the 10th to the 90th
    /// percentile. The statistic of the measure counts for nothing.
    Medians,
    /// For each point, how many trials of 100 were done by then. The statistic of the measure
    /// counts for nothing.
    Distribution,
}

/// A table of the publication, to be shown beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// Above the table.
    pub title: String,
    /// The curve that the publication measured.
    pub curve: String,
    /// The scene; empty if the plan has none.
    #[serde(default)]
    pub scene: String,
    /// Curves that are shown beside it.
    #[serde(default)]
    pub beside: Vec<String>,
    /// What is in the columns.
    pub measures: Vec<Measure>,
    /// The publication's rows.
    pub row: Vec<PublishedRow>,
}

/// A row of a publication's table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    /// Where on the axis, in its unit.
    pub x: f64,
    /// The numbers, in the order of the measures; shorter if the publication has none.
    #[serde(default)]
    pub published: Vec<f64>,
}

/// The keys that make a situation.
const SITUATION: [&str; 9] =
    ["live", "mode", "time", "path", "access", "association", "application", "rival", "event"];

pub(super) fn read(text: &str, options: &Options) -> Result<Plan, PlanError> {
    // First as it is, so that what is wrong in the file is told with its line.
    let _: File = toml::from_str(text).map_err(|error| PlanError(error.to_string()))?;
    let mut table: Table = toml::from_str(text).map_err(|error| PlanError(error.to_string()))?;
    let set =
        options.set.iter().map(|text| layers::parse_set(text)).collect::<Result<Vec<_>, _>>()?;
    for layer in &set {
        layers::merge(&mut table, &layer.table);
    }
    let published = clients::add(&mut table, &options.clients)?;
    let mut file: File =
        table.clone().try_into().map_err(|error| PlanError(format!("after --set: {error}")))?;
    check_set(&file, &set)?;
    // Who sets the axis has chosen the points.
    if set.iter().any(|layer| layer.key == "sweep.values") {
        file.quick.take_all_points();
        file.standard.take_all_points();
    }
    check_quick_and_standard(&file)?;
    let grid = Grid {
        points: points(&file, &table, &set, options)?,
        axis: axis(&file.sweep)?,
        scenes: scenes(&file),
        curves: file.curve.iter().map(|curve| named(&curve.id, &curve.label)).collect(),
        runs: runs(&file, options)?,
    };
    check_figures(&file.figure, &grid)?;
    let matrix = Matrix::of(&file.matrix, &published, &grid)?;
    file.judged.iter().try_for_each(Judged::check).map_err(PlanError)?;
    Ok(Plan {
        name: file.name,
        title: file.title,
        about: file.about,
        sources: file.sources,
        notes: file.notes,
        figures: file.figure,
        tables: file.table,
        matrix,
        claims: claims(file.claim, &grid)?,
        judged: file.judged,
        set: options.set.clone(),
        extent: options.extent,
        grid,
    })
}

/// How many runs each point gets.
fn runs(file: &File, options: &Options) -> Result<u32, PlanError> {
    let runs = match options.extent {
        Extent::Quick => file.quick.runs.unwrap_or(1),
        Extent::Standard => file.standard.runs.unwrap_or(file.runs),
        Extent::Full => file.runs,
    };
    match options.runs.unwrap_or(runs) {
        0 => Err(PlanError("runs must be at least 1".to_owned())),
        runs => Ok(runs),
    }
}

fn claims(texts: Vec<ClaimText>, grid: &Grid) -> Result<Vec<Claim>, PlanError> {
    let mut claims: Vec<Claim> = Vec::new();
    for text in texts {
        let claim = Claim::parse(text, grid).map_err(PlanError)?;
        if claims.iter().any(|other| other.id == claim.id) {
            let message = format!("claim {:?}: there is another one of this id", claim.id);
            return Err(PlanError(message));
        }
        claims.push(claim);
    }
    Ok(claims)
}

fn named(id: &str, label: &Option<String>) -> Named {
    Named { id: id.to_owned(), label: label.clone().unwrap_or_else(|| id.to_owned()) }
}

fn scenes(file: &File) -> Vec<Named> {
    match file.scene.is_empty() {
        true => vec![Named { id: String::new(), label: String::new() }],
        false => file.scene.iter().map(|scene| named(&scene.id, &scene.label)).collect(),
    }
}

/// What is set on the command line beats the rest, so it must not be what the axis shows.
fn check_set(file: &File, set: &[Layer]) -> Result<(), PlanError> {
    let swept = &file.sweep.parameter;
    match set.iter().find(|layer| layer.key == *swept) {
        None => Ok(()),
        Some(_) => Err(PlanError(format!(
            "--set {swept}: that is what this plan sweeps; give the values that it is to take, \
             --set 'sweep.values=[\"64 KiB\", \"128 KiB\"]'"
        ))),
    }
}

fn axis(sweep: &Sweep) -> Result<Axis, PlanError> {
    let kind = match sweep.values.first() {
        Some(first) => amount(first)?.1,
        None => return Err(PlanError("sweep.values is empty".to_owned())),
    };
    Ok(Axis {
        parameter: sweep.parameter.clone(),
        label: sweep.label.clone().unwrap_or_else(|| sweep.parameter.clone()),
        unit: kind.display_unit().0.to_owned(),
    })
}

/// A value of the axis in its display unit.
fn amount(value: &Value) -> Result<(f64, Kind), PlanError> {
    match value {
        Value::Integer(number) => Ok((*number as f64, Kind::Number)),
        Value::Float(number) => Ok((*number, Kind::Number)),
        Value::String(text) => {
            let (amount, kind) =
                units::parse_amount(text).map_err(|error| PlanError(format!("sweep: {error}")))?;
            Ok((amount / kind.display_unit().1, kind))
        }
        other => Err(PlanError(format!("sweep: {other} is neither a number nor an amount"))),
    }
}

fn points(
    file: &File,
    table: &Table,
    set: &[Layer],
    options: &Options,
) -> Result<Vec<Point>, PlanError> {
    check_identifiers(file)?;
    let base: Table = table
        .iter()
        .filter(|(key, _)| SITUATION.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let everywhere = Scene { id: String::new(), label: None, set: Table::new(), values: None };
    let scenes = match file.scene.is_empty() {
        true => std::slice::from_ref(&everywhere),
        false => file.scene.as_slice(),
    };
    let mut points = Vec::new();
    for scene in scenes {
        for curve in &file.curve {
            if curve.scenes.as_ref().is_some_and(|wanted| !wanted.contains(&scene.id)) {
                continue;
            }
            for value in values(file, scene, curve, options) {
                points.push(point(file, &base, (scene, curve), value, set, options)?);
            }
        }
    }
    let mut seen = BTreeSet::new();
    match points.iter().find(|point| !seen.insert(point.id.as_str())) {
        Some(twice) => Err(PlanError(format!("the point {} is there twice", twice.id))),
        None if points.is_empty() => Err(PlanError("no point is left to run".to_owned())),
        None => Ok(points),
    }
}

/// The values that a curve takes in a scene, of those that are run.
fn values<'a>(
    file: &'a File,
    scene: &'a Scene,
    curve: &'a Curve,
    options: &Options,
) -> Vec<&'a Value> {
    let all = curve.values.as_ref().or(scene.values.as_ref()).unwrap_or(&file.sweep.values);
    let extract = file.extract(options.extent);
    let runs_at = |extract: &Extract, value| extract.runs_at(&scene.id, &curve.id, value);
    all.iter().filter(|value| extract.is_none_or(|extract| runs_at(extract, value))).collect()
}

fn point(
    file: &File,
    base: &Table,
    (scene, curve): (&Scene, &Curve),
    value: &Value,
    set: &[Layer],
    options: &Options,
) -> Result<Point, PlanError> {
    let mut table = base.clone();
    let extract = file.extract(options.extent);
    if let Some(extract) = extract {
        layers::merge(&mut table, &extract.below());
    }
    layers::merge(&mut table, &scene.set);
    layers::merge(&mut table, &curve.set);
    if let Some(above) = extract.and_then(|extract| extract.above(&scene.id, &curve.id, value)) {
        layers::merge(&mut table, above);
    }
    layers::merge(&mut table, &layers::nest(&file.sweep.parameter, value.clone()));
    for layer in set.iter().filter(|layer| SITUATION.contains(&layer.first())) {
        layers::merge(&mut table, &layer.table);
    }
    let x = amount(value)?.0;
    let id = point_id(&scene.id, &curve.id, value);
    let refused = |cause: String| PlanError(format!("point {id}: {cause}"));
    let situation = situation(file.kind, table).map_err(refused)?;
    Ok(Point { x, scene: scene.id.clone(), curve: curve.id.clone(), situation, id })
}

fn situation(kind: KindOfPlan, mut table: Table) -> Result<Situation, String> {
    let words = |error: toml::de::Error| error.to_string();
    match kind {
        KindOfPlan::Simulated => {
            let setup: Setup = table.try_into().map_err(words)?;
            setup.check()?;
            Ok(Situation::Simulated(Box::new(setup)))
        }
        KindOfPlan::Live => {
            let live = table.remove("live").ok_or("a live plan needs a table [live]")?;
            if table.contains_key("mode") {
                return Err("mode is for simulated plans; a live one sends real packets".to_owned());
            }
            let setup: live::Setup = live.try_into().map_err(words)?;
            setup.check()?;
            Ok(Situation::Live(Box::new(setup)))
        }
    }
}

/// Letters, digits and what is safe in the name of a file.
fn point_id(scene: &str, curve: &str, value: &Value) -> String {
    let value = match value {
        Value::String(text) => text.replace(' ', "").replace('/', "p").replace('%', "pc"),
        other => other.to_string(),
    };
    let parts: Vec<&str> =
        [scene, curve, &value].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

fn check_identifiers(file: &File) -> Result<(), PlanError> {
    let scenes = file.scene.iter().map(|scene| ("scene", &scene.id));
    let curves = file.curve.iter().map(|curve| ("curve", &curve.id));
    let mut seen = BTreeSet::new();
    for (what, id) in scenes.chain(curves).chain([("name", &file.name)]) {
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        if id.is_empty() || !id.chars().all(fine) {
            let message = format!("{what} {id:?}: letters, digits, '-' and '.' alone, please");
            return Err(PlanError(message));
        }
        if !seen.insert((what, id)) {
            return Err(PlanError(format!("there are two {what}s {id:?}")));
        }
    }
    if file.curve.is_empty() {
        return Err(PlanError("there is no [[curve]]; give at least one".to_owned()));
    }
    for curve in &file.curve {
        let wanted = curve.scenes.iter().flatten();
        let unknown = |id: &&String| !file.scene.iter().any(|scene| scene.id == **id);
        if let Some(id) = wanted.into_iter().find(unknown) {
            return Err(PlanError(format!("curve {:?} names a scene {id:?}", curve.id)));
        }
    }
    Ok(())
}

fn check_quick_and_standard(file: &File) -> Result<(), PlanError> {
    let scenes: Vec<&str> = file.scene.iter().map(|scene| scene.id.as_str()).collect();
    let curves: Vec<&str> = file.curve.iter().map(|curve| curve.id.as_str()).collect();
    let own = file.scene.iter().map(|scene| &scene.values);
    let own = own.chain(file.curve.iter().map(|curve| &curve.values)).flatten().flatten();
    let values: Vec<&Value> = file.sweep.values.iter().chain(own).collect();
    file.quick.check("quick", &scenes, &curves, &values)?;
    file.standard.check("standard", &scenes, &curves, &values)
}

fn check_figures(figures: &[Figure], grid: &Grid) -> Result<(), PlanError> {
    for figure in figures {
        let known = |names: &[Named], id: &String| names.iter().any(|named| named.id == *id);
        let scene = figure.scenes.iter().find(|id| !known(&grid.scenes, id));
        let curve = figure.curves.iter().find(|id| !known(&grid.curves, id));
        if let Some(id) = scene.or(curve) {
            let title = &figure.title;
            return Err(PlanError(format!("figure {title:?}: there is no scene or curve {id:?}")));
        }
        if figure.bound && figure.measure != Measure::Throughput {
            let title = &figure.title;
            return Err(PlanError(format!("figure {title:?}: bound is one of throughput")));
        }
    }
    Ok(())
}
