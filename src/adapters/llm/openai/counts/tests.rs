use super::*;

/// The usage that a report means: all input tokens, those read from a cache, those written to one, all output tokens, thoughts.
type Meant = (u64, Option<u64>, Option<u64>, u64, Option<u64>);

#[test]
fn each_shape_of_cached_tokens_is_counted_once() {
    // OpenAI, vLLM: the details are part of the whole, and may be null.
    let whole = r#""prompt_tokens": 150383, "completion_tokens": 304, "total_tokens": 150687"#;
    let details = r#""prompt_tokens_details": {"text_tokens": null, "cached_tokens": 149936}, "completion_tokens_details": {"audio_tokens": null, "reasoning_tokens": 15}"#;
    assert_eq!(meant(&format!("{{{whole}, {details}}}")), (150_383, Some(149_936), None, 304, Some(15)));
    let null = r#""prompt_tokens_details": null, "completion_tokens_details": {"reasoning_tokens": null}"#;
    assert_eq!(meant(&format!("{{{whole}, {null}}}")), (150_383, None, None, 304, None));

    // OpenRouter also reports written tokens.
    let routed = r#"{"prompt_tokens": 10339, "completion_tokens": 60, "total_tokens": 10399, "cost": 0.01,
        "prompt_tokens_details": {"cached_tokens": 10318, "cache_write_tokens": 0, "audio_tokens": 0}}"#;
    assert_eq!(meant(routed), (10_339, Some(10_318), Some(0), 60, None));

    let deepseek =
        r#"{"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}"#;
    assert_eq!(meant(deepseek), (100, Some(64), None, 5, None));
    assert_eq!(meant(r#"{"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 64}"#), (100, Some(64), None, 5, None));
    let other_protocol = r#"{"input_tokens": 100, "output_tokens": 9, "total_tokens": 109,
        "input_tokens_details": {"cached_tokens": 64}, "output_tokens_details": {"reasoning_tokens": 4}}"#;
    assert_eq!(meant(other_protocol), (100, Some(64), None, 9, Some(4)));
}

#[test]
fn anthropics_count_of_a_prompt_leaves_out_cached_tokens() {
    let bare = r#"{"input_tokens": 7, "output_tokens": 50, "cache_read_input_tokens": 9842, "cache_creation_input_tokens": 151}"#;
    assert_eq!(meant(bare), (10_000, Some(9_842), Some(151), 50, None));

    // Gateways that only rename the two counts. The parts are larger than the whole, or only the total includes them.
    let renamed =
        r#"{"prompt_tokens": 7, "completion_tokens": 50, "cache_read_input_tokens": 9842, "cache_creation_input_tokens": 151}"#;
    assert_eq!(meant(renamed), (10_000, Some(9_842), Some(151), 50, None));
    let summed = r#"{"prompt_tokens": 900, "completion_tokens": 50, "total_tokens": 1050, "cache_read_input_tokens": 100}"#;
    assert_eq!(meant(summed), (1_000, Some(100), None, 50, None));

    // LiteLLM adds them up, and repeats them under both names.
    let added = r#"{"prompt_tokens": 10000, "completion_tokens": 50, "total_tokens": 10050, "cache_read_input_tokens": 9842,
        "cache_creation_input_tokens": 151, "prompt_tokens_details": {"cached_tokens": 9842, "cache_creation_tokens": 151}}"#;
    assert_eq!(meant(added), (10_000, Some(9_842), Some(151), 50, None));
    let zero = r#"{"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}"#;
    assert_eq!(meant(zero), (20, Some(0), Some(0), 5, None));
}

#[test]
fn thoughts_are_part_of_the_output_whether_or_not_the_count_includes_them() {
    let counts = |more: &str| meant(&format!(r#"{{"prompt_tokens": 32, {more}}}"#));

    // OpenAI.
    let included = r#""completion_tokens": 100, "total_tokens": 132, "completion_tokens_details": {"reasoning_tokens": 94}"#;
    assert_eq!(counts(included), (32, None, None, 100, Some(94)));
    // xAI.
    let added = r#""completion_tokens": 9, "total_tokens": 135, "completion_tokens_details": {"reasoning_tokens": 94}"#;
    assert_eq!(counts(added), (32, None, None, 103, Some(94)));
    let without_total = r#""completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 94}"#;
    assert_eq!(counts(without_total), (32, None, None, 103, Some(94)));
    // A proxy for Gemini whose answer was nothing but thoughts.
    let nothing_else = r#""completion_tokens": 0, "total_tokens": 92, "completion_tokens_details": {"reasoning_tokens": 60}"#;
    assert_eq!(counts(nothing_else), (32, None, None, 60, Some(60)));
    // Google's own endpoint for OpenAI's protocol.
    assert_eq!(counts(r#""completion_tokens": 424, "total_tokens": 1028"#), (32, None, None, 996, Some(572)));
    assert_eq!(counts(r#""completion_tokens": 7, "total_tokens": 30"#), (32, None, None, 7, None), "a total that is too small");
    // Google's names.
    let google = r#"{"promptTokenCount": 1000, "candidatesTokenCount": 50, "thoughtsTokenCount": 20, "totalTokenCount": 1070, "cachedContentTokenCount": 900}"#;
    assert_eq!(meant(google), (1_000, Some(900), None, 70, Some(20)));
}

#[test]
fn impossible_counts_are_ignored_and_never_added() {
    let parts = |part: &str| {
        let (input, read, written, output, thoughts) = meant(&format!(
            r#"{{"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {{"cached_tokens": {part}, "cache_write_tokens": {part}}},
                "completion_tokens_details": {{"reasoning_tokens": {part}}}}}"#
        ));
        assert!((input, output) == (100, 20) || thoughts.is_some_and(|thoughts| thoughts > 20), "{part}");
        (read, written)
    };

    assert_eq!(parts("-1"), (None, None));
    assert_eq!(parts("\"many\""), (None, None));
    assert_eq!(parts("[1]"), (None, None));
    assert_eq!(parts("\"12\""), (Some(12), Some(12)));
    assert_eq!(parts("12.4"), (Some(12), Some(12)));
    // Larger parts are cut where the usage is limited by the text of the call.
    assert_eq!(parts("1e300"), (Some(u64::MAX), Some(u64::MAX)));
    let usage = counts(r#"{"prompt_tokens": 1, "cache_read_input_tokens": 1e300, "cache_creation_input_tokens": 1e300}"#);
    assert_eq!(usage.prompt_tokens(), Some(u64::MAX));
    assert_eq!(meant("{}"), (5, None, None, 2, None), "the estimate");
    assert!(Counts::read(serde_json::from_str("[]").unwrap()).is_none());
}

#[test]
fn counts_that_are_spread_over_chunks_are_put_together() {
    let first = counts(r#"{"input_tokens": 7, "output_tokens": 1, "cache_read_input_tokens": 93}"#);
    let last = counts(r#"{"output_tokens": 40}"#);

    let usage = last.after(first).or(TokenUsage::new(5, 2));

    assert_eq!((usage.input_tokens, usage.cache_read_tokens, usage.output_tokens), (100, Some(93), 40));
}

fn counts(json: &str) -> Counts {
    Counts::read(serde_json::from_str(json).expect("JSON")).expect("an object")
}

fn meant(json: &str) -> Meant {
    let usage = counts(json).or(TokenUsage::new(5, 2));
    (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens, usage.reasoning_tokens)
}
