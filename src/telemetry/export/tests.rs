use super::*;

#[test]
fn an_invalid_endpoint_is_an_error_that_names_it() {
    let plan = ExportPlan::to("not a url");

    let error = plan.provider("salon", 1, &Ledger::default()).map(drop).expect_err("the URL is invalid");

    assert!(error.to_string().starts_with("spans cannot be exported to not a url (OTEL_EXPORTER_OTLP_ENDPOINT or"), "{error}");
}

#[test]
fn an_hour_without_a_collector_is_two_lines_of_log() {
    let mut losses = Losses::default();
    let now = Instant::now();
    let at = |secs| now + Duration::from_secs(secs);

    let down: Vec<_> = (1..=720).filter_map(|export| losses.update(export, at(export * 5))).collect();
    let up: Vec<_> = (721..=1_440).filter_map(|export| losses.update(720, at(export * 5))).collect();

    assert_eq!(down, [Change::Begin]);
    assert_eq!(up, [Change::End]);
    assert_eq!(losses.update(721, at(7_300)), Some(Change::Begin), "new losses are reported again");
    assert_eq!(Losses::default().update(0, now), None);
}

#[test]
fn the_standard_sampler_variable_sets_the_exported_share() {
    let sampled = |sampler, arg| {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        plan(&[endpoint, ("OTEL_TRACES_SAMPLER", sampler), ("OTEL_TRACES_SAMPLER_ARG", arg)])
    };
    let ratio = |sampler, arg| sampled(sampler, arg).expect("spans are exported").sample_ratio;

    assert_eq!(sampled("always_off", ""), None);
    assert_eq!(sampled("parentbased_always_off", ""), None);
    assert_eq!(ratio("always_on", ""), Some(1.0));
    assert_eq!(ratio("traceidratio", "0.25"), Some(0.25));
    assert_eq!(ratio("parentbased_traceidratio", "0.5"), Some(0.5));
    assert_eq!(ratio("traceidratio", ""), Some(1.0));
    for (sampler, arg) in [("jaeger_remote", ""), ("traceidratio", "often"), ("traceidratio", "7")] {
        let plan = sampled(sampler, arg).expect("spans are exported");
        assert_eq!((plan.sample_ratio, plan.unknown_sampler.as_deref()), (None, Some(sampler)));
    }
}

#[test]
fn an_endpoint_is_shown_without_its_secrets() {
    let shown = |endpoint: &str| Target::new(Signal::Spans, endpoint).shown_endpoint();

    assert_eq!(shown("https://ana:secret@host:4318/v1/traces?key=secret#x"), "https://host:4318/v1/traces");
    assert_eq!(shown("http://127.0.0.1:4318/v1/traces"), "http://127.0.0.1:4318/v1/traces");
    assert_eq!(shown("ana:secret@host"), "host");
    assert!(!format!("{:?}", ExportPlan::to("https://ana:secret@host")).contains("secret"));
    for endpoint in
        ["http://ana:sec/secret@host:4318/v1", "http://ana:secret?x@host", "http://ana:secret#x@host", "http://h/?k=secret@x"]
    {
        assert!(!shown(endpoint).contains("secret"), "{}", shown(endpoint));
    }
}

fn plan(variables: &[(&str, &str)]) -> Option<ExportPlan> {
    let variables: Vec<_> = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ExportPlan::from_variables(|name| variables.iter().find(|(each, _)| each == name).map(|(_, value)| value.clone()))
}
