//! The dashboards and alerts of `dashboards/`: they are complete, name existing metrics, and, against a real Prometheus, find series.

mod evening;
mod links;
mod prometheus;
mod running;
pub mod structure;

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// The path of a file in `dashboards/`.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards").join(name)
}

fn read(name: &str) -> String {
    let path = file(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All dashboards, with their file names.
fn boards() -> Vec<(String, Board)> {
    let folder = std::fs::read_dir(file("grafana")).expect("a folder of dashboards");
    let mut names: Vec<String> = folder.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    let board = |name: &String| serde_json::from_str(&read(&format!("grafana/{name}"))).unwrap_or_else(|e| panic!("{name}: {e}"));
    names.iter().map(|name| (name.clone(), board(name))).collect()
}

/// A dashboard as Grafana reads it. Fields that are not listed here are errors.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Board {
    uid: String,
    title: String,
    description: String,
    tags: Vec<String>,
    schema_version: u32,
    editable: bool,
    graph_tooltip: u8,
    refresh: String,
    time: Value,
    links: Vec<Value>,
    templating: Templating,
    panels: Vec<Panel>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Templating {
    list: Vec<Variable>,
}

#[derive(Debug, Deserialize)]
struct Variable {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    query: Value,
}

/// A panel, or the heading of a row.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Panel {
    id: u32,
    #[serde(rename = "type")]
    kind: String,
    title: String,
    description: Option<String>,
    grid_pos: GridPosition,
    datasource: Option<Value>,
    #[serde(default)]
    targets: Vec<Target>,
    field_config: Option<FieldConfig>,
    options: Option<Value>,
    transformations: Option<Value>,
    #[serde(default)]
    links: Vec<Link>,
    collapsed: Option<bool>,
    panels: Option<Vec<Value>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GridPosition {
    x: u32,
    y: u32,
    w: u32,
    h: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Target {
    ref_id: String,
    datasource: Value,
    expr: String,
    legend_format: String,
    instant: Option<bool>,
    range: Option<bool>,
    format: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldConfig {
    defaults: Defaults,
    overrides: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct Defaults {
    unit: String,
    thresholds: Option<Value>,
    #[serde(default)]
    links: Vec<Link>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Link {
    title: String,
    url: String,
    target_blank: bool,
}

impl Panel {
    fn is_row(&self) -> bool {
        self.kind == "row"
    }

    /// The links of the panel and of its series.
    fn all_links(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().chain(self.field_config.iter().flat_map(|config| &config.defaults.links))
    }
}
