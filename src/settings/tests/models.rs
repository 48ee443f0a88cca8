//! Further models by name, and the companions that use them.

use secrecy::ExposeSecret as _;

use super::*;
use crate::domain::id::ModelName;

const FAST: &str = "[models.fast]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"small\"\n";

#[test]
fn a_further_model_does_not_change_the_two_roles() {
    let folder = Folder::with(&[
        ("default.toml", &format!("{FAST}max_concurrent = 3\n[models.pool]\nqueue_capacity = 7\n")),
        ("companions/ana.toml", "[model]\nside = \"fast\"\n"),
        ("companions/ben.toml", ""),
    ]);

    let loaded = folder.load().expect("nothing is wrong");

    let models = &loaded.settings.models;
    let names: Vec<ModelName> = models.names().collect();
    assert_eq!(names, ["main".into(), "side".into(), "fast".into()]);
    assert_eq!((models.named[&"fast".into()].max_concurrent, models.pool.queue_capacity), (Some(3), 7));
    assert_eq!((models.side.max_concurrent, models.pool.max_attempts), (8, 4));
    let chosen = |id: &str| {
        let model = &loaded.companions[&id.into()].model;
        (model.main.to_string(), model.side.to_string())
    };
    assert_eq!(chosen("ana"), ("main".to_owned(), "fast".to_owned()));
    assert_eq!(chosen("ben"), ("main".to_owned(), "side".to_owned()));
    assert!(!loaded.notes.iter().any(|note| note.contains("models.fast")), "{:?}", loaded.notes);
}

#[test]
fn limits_that_a_file_changes_are_known_with_their_places() {
    let folder =
        Folder::with(&[("default.toml", "[models.side]\ntimeout_secs = 15.0\nidle_timeout_secs = 9\nmax_concurrent = 3\n")]);

    let set = folder.load().expect("nothing is wrong").settings.set;

    let [(key, place)] = &set[..] else { panic!("{set:?}") };
    assert_eq!(*key, "models.side.idle_timeout_secs");
    assert!(place.ends_with("default.toml:3"), "{place}");
}

#[test]
fn an_unknown_model_is_reported_at_the_companions_file_with_the_known_ones() {
    let folder = Folder::with(&[
        ("default.toml", FAST),
        ("companions/ana.toml", "name = \"Ana\"\n[model]\nmain = \"fsat\"\nside = \"pool\"\n"),
        ("companions/ben.toml", "[model]\nmian = \"fast\"\n"),
    ]);

    assert_eq!(
        folder.problems(),
        [
            "companions/ana.toml:3: model.main = \"fsat\" is not a model; the models are: main, side, fast",
            "companions/ana.toml:4: model.side = \"pool\" is not a model; the models are: main, side, fast",
            "companions/ben.toml:2: model.mian is not a known key; did you mean main?",
        ]
    );
}

#[test]
fn a_model_timeout_longer_than_a_question_of_the_role_is_reported_with_both_values() {
    let slow = format!("{FAST}first_token_timeout_secs = 90.0\n");
    let fits = Folder::with(&[("default.toml", &slow), ("companions/ana.toml", "[model]\nmain = \"fast\"\n")]);
    let cut = Folder::with(&[("default.toml", &slow), ("companions/ana.toml", "[model]\nside = \"fast\"\n")]);
    let in_no_role = Folder::with(&[("default.toml", &format!("{FAST}idle_timeout_secs = 121.0\n"))]);

    assert!(fits.load().is_ok());
    assert_eq!(
        cut.problems(),
        ["companions/ana.toml:2: model.side = \"fast\" waits longer than its question may take: \
          models.fast.first_token_timeout_secs = 90, models.side.timeout_secs = 15; lower the first or raise the second"]
    );
    assert_eq!(
        in_no_role.problems(),
        ["default.toml:4: models.fast.idle_timeout_secs is 121, longer than a question may take in any role \
          (models.main.timeout_secs = 120, models.side.timeout_secs = 15); lower it or raise one of those"]
    );
}

#[test]
fn the_environment_sets_further_models_too() {
    let folder = Folder::empty()
        .variable("TERTULIA__MODELS__FAST__BASE_URL", "http://127.0.0.1:1/v1")
        .variable("TERTULIA__MODELS__FAST__MODEL", "small")
        .variable("TERTULIA__MODELS__FAST__API_KEY", "sk-1")
        .variable("TERTULIA__MODELS__FAST__MAX_CONCURRENT", "5")
        .variable("TERTULIA__MODELS__SLOW", "{ base_url = \"http://127.0.0.1:2/v1\", model = \"large\" }");

    let models = folder.load().expect("nothing is wrong").settings.models;

    let fast = &models.named[&"fast".into()];
    assert_eq!((fast.model.as_deref(), fast.max_concurrent), (Some("small"), Some(5)));
    assert_eq!(fast.api_key.as_ref().map(|key| key.expose_secret()), Some("sk-1"));
    assert_eq!(models.named[&"slow".into()].model.as_deref(), Some("large"));
}

#[test]
fn a_problem_with_a_further_model_is_reported_at_its_line() {
    let cases = [
        ("[models.fast]\nmodel = \"m\"\n", "default.toml:1: models.fast.base_url is missing; set the URL where \"m\" is served"),
        ("[models.fast]\ntimeout_secs = 3.0\n", "default.toml:2: models.fast.timeout_secs is not a known key"),
        ("[models.fast]\nmax_concurrent = \"3\"\n", "default.toml:2: models.fast.max_concurrent = \"3\" is not"),
        (
            "[models.Fast]\nbase_url = \"http://h/v1\"\nmodel = \"m\"\n",
            "default.toml:1: models.Fast is not a name of 1 to 32 letters",
        ),
        ("[models]\ncurency = \"EUR\"\n", "default.toml:2: models.curency is not a known key; did you mean currency?"),
        ("[models]\nfast = [1]\n", "default.toml:2: models.fast is not a known key"),
        ("[models.pool]\nbase_url = \"http://h/v1\"\n", "default.toml:2: models.pool.base_url is not a known key"),
        ("[models.currency]\nbase_url = \"http://h/v1\"\n", "default.toml:1: models.currency is not"),
    ];
    for (written, expected) in cases {
        let problems = Folder::with(&[("default.toml", written)]).problems();

        assert!(problems.iter().any(|problem| problem.starts_with(expected)), "{written}: {problems:#?}");
    }
}

#[test]
fn a_url_that_is_no_text_is_not_reported_as_missing_too() {
    for table in ["main", "fast"] {
        let written = format!("[models.{table}]\nbase_url = 7\nmodel = \"m\"\n");

        let problems = Folder::with(&[("default.toml", &written)]).problems();

        assert_eq!(problems, [format!("default.toml:2: models.{table}.base_url = 7 is not a text in quotes")]);
    }
}

#[test]
fn a_further_models_key_in_a_settings_file_is_rejected_and_not_shown() {
    let problems = Folder::with(&[("default.toml", &format!("{FAST}api_key = \"AbCdEf\"\n"))]).problems();

    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("default.toml:4: models.fast.api_key is a secret"), "{problems:?}");
    assert!(problems[0].contains("TERTULIA__MODELS__FAST__API_KEY") && !problems[0].contains("AbCdEf"), "{problems:?}");
}

#[test]
fn a_further_models_unreadable_key_file_keeps_a_server_from_starting() {
    let loaded = Folder::with(&[("default.toml", &format!("{FAST}api_key_file = \"/nowhere/key\"\n"))]).load();

    let problems = loaded.expect("each value is valid on its own").serve().expect_err("there is no key").0;

    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].message.starts_with("models.fast.api_key_file /nowhere/key cannot be read"), "{problems:?}");
}

#[test]
fn an_unreadable_file_of_authorities_keeps_a_server_from_starting() {
    let loaded = Folder::with(&[("default.toml", "[models]\nca_file = \"/nowhere/ca.pem\"\n")]).load();

    let problems = loaded.expect("the file may come later").serve().expect_err("there is no file").0;

    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].message.starts_with("models.ca_file /nowhere/ca.pem cannot be read"), "{problems:?}");
}

#[test]
fn a_further_model_that_no_companion_uses_is_noted() {
    let loaded = Folder::with(&[("default.toml", FAST)]).load().expect("nothing is wrong");

    assert_eq!(
        loaded.notes,
        ["models.fast: no companion uses it; name it in a companion's file ([model] main = \"fast\"), or remove it"]
    );
}
