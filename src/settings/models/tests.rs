use super::*;
use crate::samples::{models as defaults, named_model as named};

fn key_of(settings: &Models) -> String {
    settings.check().expect_err("a problem").key
}

#[test]
fn the_shipped_defaults_are_in_range_and_mean_rehearsal() {
    let settings = defaults();

    let checked = settings.check();

    assert_eq!(checked, Ok(()));
    assert!(settings.served(ModelRole::Side, &"side".into()).endpoint.is_none());
    assert!(settings.served(ModelRole::Main, &"main".into()).endpoint.is_none());
}

#[test]
fn one_endpoint_alone_serves_both_roles() {
    let mut settings = defaults();
    settings.main.base_url = Some("http://127.0.0.1:1/v1".into());
    settings.main.model = Some("m".into());

    let side = settings.served(ModelRole::Side, &"side".into());

    assert_eq!(settings.check(), Ok(()));
    assert_eq!(side.endpoint.and_then(|endpoint| endpoint.model.clone()).as_deref(), Some("m"));
    assert_eq!((side.table.as_str(), side.limits.timeout()), ("main", Duration::from_secs(15)));
}

#[test]
fn a_key_without_an_endpoint_is_a_problem() {
    let mut settings = defaults();
    settings.side.api_key = Some("sk-lonely".to_owned().into());

    let problem = settings.check().expect_err("a problem");

    assert_eq!(problem.key, "side.base_url");
    assert!(!problem.to_string().contains("sk-lonely"));
}

#[test]
fn a_url_of_another_scheme_or_with_a_secret_is_rejected() {
    let addresses =
        ["127.0.0.1:80", "ftp://host/v1", "http://", "http://user:key@host/v1", "http://host/v1?key=1", "http://host/v1#x", ""];

    let refused: Vec<bool> = addresses.iter().map(|address| parsed_base_url(address).is_err()).collect();

    assert_eq!(refused, [true; 7]);
}

#[test]
fn the_default_guild_share_is_half_of_all_calls() {
    let shares = [(8, None), (3, None), (1, None), (8, Some(2)), (4, Some(9))].map(|(all, set)| {
        let mut settings = defaults();
        (settings.side.max_concurrent, settings.side.guild_max_concurrent) = (all, set);
        settings.side.guild_share()
    });

    assert_eq!(shares, [4, 1, 1, 2, 9]);
}

#[test]
fn a_role_in_which_one_guild_may_use_all_calls_is_noted_with_the_remedy() {
    let mut settings = defaults();
    let shipped = settings.notes();
    settings.side.guild_max_concurrent = Some(8);
    settings.main.max_concurrent = 1;

    let notes = settings.notes();

    assert_eq!(shipped, [""; 0]);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("models.side: one guild may use all concurrent calls (8)"), "{}", notes[0]);
    assert!(notes[0].ends_with("set models.side.guild_max_concurrent to 4 or less"), "{}", notes[0]);
    assert!(
        notes[1].ends_with("raise models.main.max_concurrent if the endpoint can serve more calls at a time"),
        "{}",
        notes[1]
    );
}

#[test]
fn what_is_wrong_or_missing_names_its_key() {
    type Breaks = fn(&mut Models);
    let broken: [(Breaks, &str); 16] = [
        (|settings| settings.side.timeout_secs = f64::NAN, "side.timeout_secs"),
        (|settings| settings.main.first_token_timeout_secs = 121.0, "main.first_token_timeout_secs"),
        (|settings| settings.main.max_concurrent = 0, "main.max_concurrent"),
        (|settings| settings.pool.queue_capacity = 0, "pool.queue_capacity"),
        (|settings| settings.breaker.failures = 0, "breaker.failures"),
        (|settings| settings.rehearsal.pace = -1.0, "rehearsal.pace"),
        (|settings| settings.currency = "usd".into(), "currency"),
        (|settings| settings.main = priced(-1.0, 1.0), "main.input_price"),
        (|settings| settings.main = priced(1.0, f64::NAN), "main.output_price"),
        (|settings| settings.side = priced(0.0, 0.000_000_1), "side.output_price"),
        (|settings| settings.main = Endpoint { output_price: None, ..priced(1.0, 1.0) }, "main.output_price"),
        (|settings| settings.main = Endpoint { cache_read_price: Some(-0.1), ..priced(1.0, 1.0) }, "main.cache_read_price"),
        (|settings| settings.main = Endpoint { cache_write_price: Some(1e9), ..priced(1.0, 1.0) }, "main.cache_write_price"),
        (
            |settings| {
                let unpriced = Endpoint { input_price: None, output_price: None, ..priced(1.0, 1.0) };
                settings.main = Endpoint { cache_read_price: Some(0.1), ..unpriced };
            },
            "main.input_price",
        ),
        (|settings| settings.side = Endpoint { base_url: None, ..priced(1.0, 1.0) }, "side.base_url"),
        (|settings| settings.side = Endpoint { model: None, ..priced(1.0, 1.0) }, "side.model"),
    ];

    let keys = broken.map(|(breaks, _)| {
        let mut settings = defaults();
        breaks(&mut settings);
        key_of(&settings)
    });

    assert_eq!(keys.each_ref().map(String::as_str), broken.map(|(_, key)| key));
}

#[test]
fn a_timeout_longer_than_the_whole_question_names_timeout_secs() {
    let mut settings = defaults();
    settings.side.timeout_secs = 5.0;

    let problem = settings.check().expect_err("the timeout of the first token exceeds that of the question");

    assert_eq!(problem.key, "side.first_token_timeout_secs");
    assert_eq!(problem.message, "is 12, must be from 0.1 to 5, the value of timeout_secs in this table: change both together");
}

#[test]
fn a_key_is_read_from_its_file_and_never_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    std::fs::write(&path, "sk-from-file\n").expect("written");
    let mut settings = defaults();
    settings.main.api_key_file = Some(path);

    let key = settings.main.key().expect("readable").expect("a key");

    assert_eq!(key.expose_secret(), "sk-from-file");
    assert!(!format!("{key:?} {settings:?}").contains("sk-from-file"));
}

#[test]
fn a_key_file_with_more_than_a_key_is_rejected_without_showing_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    std::fs::write(&path, "sk-one\nsk-two\n").expect("written");
    let mut settings = defaults();
    settings.main.api_key_file = Some(path);

    let problem = settings.main.key().expect_err("refused");

    assert_eq!(problem.key, "api_key_file");
    assert!(!problem.to_string().contains("sk-"));
}

#[test]
fn whatever_serves_a_role_brings_its_price() {
    let prices = |settings: &Models| [ModelRole::Side, ModelRole::Main].map(|role| settings.price(role, &role.into()));
    let nothing = prices(&defaults());
    let mut settings = defaults();
    settings.main = priced(0.2, 0.8);
    let both = prices(&settings);
    settings.side = Endpoint { input_price: None, output_price: None, ..priced(1.0, 1.0) };
    let one = prices(&settings);
    let fast = NamedModel { input_price: Some(1.0), output_price: Some(2.0), cache_read_price: Some(0.1), ..named(1) };
    settings.named.insert("fast".into(), fast);

    let (free, price) = (Some(Price::free("USD")), Some(Price::per_million(0.2, 0.8, "USD")));
    assert_eq!(settings.check(), Ok(()));
    assert_eq!(nothing, [free.clone(), free], "rehearsal");
    assert_eq!(both, [price.clone(), price.clone()]);
    assert_eq!(one, [None, price.clone()]);
    assert_eq!(settings.price(ModelRole::Side, &"main".into()), price, "that of main, whatever it is asked for");
    let cached = Price::per_million(1.0, 2.0, "USD").with_cache(Some(0.1), None);
    assert_eq!(settings.price(ModelRole::Side, &"fast".into()), Some(cached));
}

#[test]
fn what_a_further_model_leaves_out_is_as_in_the_table_of_its_role() {
    let mut settings = defaults();
    settings.side.temperature = Some(0.2);
    settings.main.timeout_secs = 300.0;
    let model = NamedModel { max_concurrent: None, first_token_timeout_secs: Some(90.0), ..named(1) };
    settings.named.insert("fast".into(), model);

    let [side, main] = [ModelRole::Side, ModelRole::Main].map(|role| settings.served(role, &"fast".into()).limits.into_owned());
    let calls = [ModelRole::Side, ModelRole::Main].map(|role| settings.concurrency(role, &"fast".into()));

    assert_eq!((side.timeout_secs, side.first_token_timeout_secs, side.temperature), (15.0, 15.0, Some(0.2)));
    assert_eq!((main.timeout_secs, main.first_token_timeout_secs, main.temperature), (300.0, 90.0, None));
    assert_eq!(calls, [Concurrency { most: 8, guild_share: 4 }, Concurrency { most: 8, guild_share: 2 }]);
    assert_eq!(settings.check(), Ok(()));
}

#[test]
fn a_role_may_be_served_by_the_other_roles_model_in_its_own_time() {
    let mut settings = defaults();
    settings.main = Endpoint { max_concurrent: 3, ..priced(1.0, 1.0) };
    settings.side = Endpoint { model: Some("small".into()), timeout_secs: 15.0, ..priced(1.0, 1.0) };

    let served = settings.served(ModelRole::Side, &"main".into());

    assert_eq!((served.table.as_str(), served.limits.timeout_secs, served.limits.max_concurrent), ("main", 15.0, 3));
    assert_eq!(served.endpoint.and_then(|endpoint| endpoint.model.clone()).as_deref(), Some("m"));
}

#[test]
fn what_is_wrong_with_a_further_model_names_it() {
    let broken = [
        ("fast", NamedModel { base_url: None, ..named(1) }, "fast.base_url"),
        ("fast", NamedModel { base_url: None, model: None, ..named(1) }, "fast.base_url"),
        ("fast", NamedModel { model: None, ..named(1) }, "fast.model"),
        ("fast", named(0), "fast.max_concurrent"),
        ("fast", NamedModel { idle_timeout_secs: Some(0.0), ..named(1) }, "fast.idle_timeout_secs"),
        ("fast", NamedModel { input_price: Some(1.0), ..named(1) }, "fast.output_price"),
        ("Fast", named(1), "Fast"),
        ("very__fast", named(1), "very__fast"),
        ("", named(1), ""),
    ];
    for (name, model, key) in broken {
        let mut settings = defaults();
        settings.named.insert(name.into(), model);

        assert_eq!(key_of(&settings), key);
    }
}

fn priced(input: f64, output: f64) -> Endpoint {
    Endpoint {
        base_url: Some("http://127.0.0.1:1/v1".into()),
        model: Some("m".into()),
        input_price: Some(input),
        output_price: Some(output),
        ..defaults().main
    }
}

#[test]
fn a_file_of_authorities_must_hold_certificates() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |content: &[u8]| {
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, content).expect("written");
        Models { ca_file: Some(path), ..defaults() }.authorities().map(|found| found.len()).map_err(|problem| problem.to_string())
    };
    let authority: &[u8] = include_bytes!("../../http_client/tests/authority.pem");
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

    let two = read(&[b"A comment\r\n", authority, authority].concat());
    let failures = [&b""[..], b"sk-secret", b"\x30\x82\x01", broken.as_bytes(), b"-----BEGIN CERTIFICATE-----\n%\n"].map(read);
    let missing = Models { ca_file: Some("/nowhere/ca.pem".into()), ..defaults() }.authorities().map(drop);

    assert_eq!((two, defaults().authorities().map(|found| found.len())), (Ok(2), Ok(0)));
    for failure in failures {
        let failure = failure.expect_err("a problem");
        assert!(failure.starts_with("ca_file") && failure.contains("ca.pem") && failure.contains("certificate"), "{failure}");
        assert!(!failure.contains("secret"), "{failure}");
    }
    assert!(missing.expect_err("a problem").to_string().contains("/nowhere/ca.pem cannot be read"));
}
