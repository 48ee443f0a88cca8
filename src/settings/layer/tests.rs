use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Root {
    models: Models,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Models {
    side: Option<Endpoint>,
    main: Option<Endpoint>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Endpoint {
    base_url: String,
    model: String,
    api_key: Option<String>,
}

#[test]
fn one_source_may_add_what_another_leaves_out() {
    let mut layers = [
        file("default.toml", "models = {}"),
        file("local.toml", "[models.side]\nmodel = \"small\""),
        variables(&[("TERTULIA__MODELS__SIDE__BASE_URL", "http://127.0.0.1:11434/v1")]),
    ];

    let (root, problems) = read_all(&mut layers);

    let side = root.and_then(|root| root.models.side).expect("the table is complete");
    assert_eq!(problems, [] as [&str; 0]);
    assert_eq!((side.model.as_str(), side.base_url.as_str(), side.api_key), ("small", "http://127.0.0.1:11434/v1", None));
}

#[test]
fn each_problem_names_its_source_and_key_and_shows_no_secret() {
    let whole = "[models.main]\nmodel = \"small\"\nbase_url = \"http://one\"\n";
    let table = ("TERTULIA__MODELS__MAIN", r#"{ model = 7, base_url = "http://two" }"#);
    for (text, set, problem) in [
        ("\n[models.side]\nmodel = \"small\"".to_owned(), vec![], "local.toml:2: models.side.base_url is missing"),
        // The table in the variable replaces the whole table.
        (whole.to_owned(), vec![table], "TERTULIA__MODELS__MAIN: models.main.model is not a text in quotes"),
        (format!("{whole}api_key = 12345"), vec![], "local.toml:4: models.main.api_key is not a text in quotes"),
    ] {
        let (_, problems) = read_all(&mut [file("default.toml", "models = {}"), file("local.toml", &text), variables(&set)]);

        assert_eq!(problems, [problem]);
    }
}

#[test]
fn a_variable_with_too_many_parts_is_rejected_and_shown_in_part() {
    let mut problems = Vec::new();
    let deep = format!("TERTULIA__{}B", "A__".repeat(30_000));

    Layer::environment(&[(deep, "1".to_owned())], &mut problems);

    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().len() < 300 && problems[0].to_string().contains("is not named TERTULIA__SECTION__KEY"));
}

#[test]
fn a_variable_whose_table_is_incomplete_is_named() {
    let mut layers = [file("default.toml", "models = {}"), variables(&[("TERTULIA__MODELS__MAIN__MODEL", "large")])];

    let (root, problems) = read_all(&mut layers);

    assert!(root.is_some_and(|root| root.models.main.is_none()));
    assert_eq!(problems, ["TERTULIA__MODELS__MAIN__MODEL: models.main.base_url is missing"]);
}

#[test]
fn other_variables_and_empty_ones_are_ignored_and_no_value_is_listed() {
    let layer = variables(&[("PATH", "/bin"), ("TERTULIA_PROFILE", "night"), ("TERTULIA__GATE__MAX_BUFFER", "")]);

    assert_eq!(layer.title, None);
    let layer = variables(&[("TERTULIA__SERVER__ADMIN_TOKEN", "secret")]);
    assert_eq!(layer.title.as_deref(), Some("environment (TERTULIA__SERVER__ADMIN_TOKEN)"));
}

#[test]
fn debug_output_of_a_layer_does_not_show_its_values() {
    let layers = [file("a.toml", "token = \"secret\""), variables(&[("TERTULIA__SERVER__ADMIN_TOKEN", "secret")])];

    assert!(!format!("{layers:?}").contains("secret"));
}

fn file(name: &str, text: &str) -> Layer {
    Layer::file(name, text).expect("it is TOML")
}

fn variables(variables: &[(&str, &str)]) -> Layer {
    let variables: Vec<_> = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Layer::environment(&variables, &mut Vec::new())
}

/// Reads layers as `load` does: first each with those before it, then all of them.
fn read_all(layers: &mut [Layer]) -> (Option<Root>, Vec<String>) {
    let (mut problems, mut reported) = (Vec::new(), Vec::new());
    for upto in 2..=layers.len() {
        read_layers::<Root>(&mut layers[..upto], Completeness::Partial, |_| Vec::new(), &mut reported, &mut problems);
    }
    let root = read_layers(layers, Completeness::Complete, |_| Vec::new(), &mut reported, &mut problems);
    (root, problems.iter().map(ToString::to_string).collect())
}
