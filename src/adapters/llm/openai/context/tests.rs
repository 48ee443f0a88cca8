use super::*;

fn identity() -> Identity {
    Identity { provider: "here".into(), model: "m".into(), endpoint: "http://here".into() }
}

/// What is learnt from a refusal of a prompt of about 4,500 tokens and an answer of 1,000.
fn learnt(words: &str) -> (Option<TooLong>, Option<u64>, Option<f64>) {
    let context = Context::default();
    let refusal = context.refused(words, 4_000, 1_000, &identity());
    let known = context.0.lock();
    (refusal, known.size().map(|size| size.tokens), known.ratio)
}

#[test]
fn the_size_and_the_count_are_read_in_the_words_of_many_servers() {
    for (words, size, count) in [
        // vLLM
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5500 tokens (4500 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
            4_096,
            Some(4_500),
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 4096 tokens and your request has 4500 input tokens (1000 > 4096 - 4500).",
            4_096,
            Some(4_500),
        ),
        ("The decoder prompt (length 4500) is longer than the maximum model length of 4096.", 4_096, Some(4_500)),
        // llama.cpp
        (
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4500,"n_ctx":4096}}"#,
            4_096,
            Some(4_500),
        ),
        // llama-cpp-python
        ("Requested tokens (4500) exceed context window of 4096", 4_096, Some(4_500)),
        // LM Studio
        (
            r#"{"error":"Trying to keep the first 4500 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}"#,
            4_096,
            Some(4_500),
        ),
        (
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 4500>= n_ctx: 4096)",
            4_096,
            Some(4_500),
        ),
        // OpenAI
        (
            "This model's maximum context length is 4096 tokens. However, your messages resulted in 4500 tokens.",
            4_096,
            Some(4_500),
        ),
        // SGLang
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5500 tokens: 4500 tokens from the input messages and 1000 tokens for the completion.",
            4_096,
            Some(4_500),
        ),
        ("The input (4500 tokens) is longer than the model's context length (4096 tokens).", 4_096, Some(4_500)),
        // TGI
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4500 `inputs` tokens and 1000 `max_new_tokens`",
            4_096,
            Some(4_500),
        ),
        // Anthropic
        ("prompt is too long: 4500 tokens > 4096 maximum", 4_096, Some(4_500)),
        (
            "input length and `max_tokens` exceed context limit: 4500 + 1000 > 4096, decrease input length or `max_tokens`",
            4_096,
            Some(4_500),
        ),
        // Gemini
        ("The input token count (4500) exceeds the maximum number of tokens allowed (4096).", 4_096, Some(4_500)),
        // Mistral
        (
            "Prompt contains 4500 tokens and 0 draft tokens, too large for model with 4096 maximum context length",
            4_096,
            Some(4_500),
        ),
        // Cohere
        ("too many tokens: total number of tokens in the prompt cannot exceed 4096 - received 4500", 4_096, Some(4_500)),
        // AI Studio by a proxy
        ("Cannot truncate to 4096, required 4500: text:4491, control:9", 4_096, Some(4_500)),
        // vLLM, newer
        (
            "This model's maximum context length is 4096 tokens. However, your request has 4500 input tokens. Please reduce the length of the input messages. (parameter=input_tokens, value=4500)",
            4_096,
            Some(4_500),
        ),
        // DashScope
        ("Range of input length should be [1, 4096]", 4_096, None),
        // xAI
        ("This model's maximum prompt length is 4096 but the request contains 4500 tokens.", 4_096, Some(4_500)),
        // Fireworks
        ("The prompt is too long: 4500, model maximum context length: 4096", 4_096, Some(4_500)),
        // OpenRouter
        (
            "This endpoint's maximum context length is 4096 tokens. However, you requested about 5500 tokens (4500 of text input, 1000 in the output).",
            4_096,
            Some(4_500),
        ),
        // Moonshot
        ("Invalid request: Your request exceeded model token limit: 4096 (requested: 5500)", 4_096, Some(5_500)),
        // Groq
        (
            "Request too large for model `m` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 7123, please reduce your message size",
            6_000,
            Some(7_123),
        ),
    ] {
        let (refusal, learnt_size, ratio) = learnt(words);

        assert_eq!(refusal, Some(TooLong::Prompt), "{words}");
        assert_eq!(learnt_size, Some(size), "{words}");
        assert_eq!(ratio.map(|ratio| (ratio * 4_000.0).round() as u64), count, "{words}");
    }
}

#[test]
fn without_a_number_the_next_prompt_is_shorter() {
    for words in [
        "input is too long for requested model",
        "Prompt exceeds maximum context length",
        r#"{"code":"context_length_exceeded","status":400}"#,
    ] {
        let context = Context::default();
        assert_eq!(context.refused(words, 4_000, 1_000, &identity()), Some(TooLong::Prompt), "{words}");

        let room = context.prompt_room(1_000).expect("it is known");

        assert!((2_000..=3_000).contains(&room), "{room}");
    }
}

#[test]
fn other_refusals_teach_nothing() {
    for words in ["max_tokens must be less than 4096", "Invalid API key", "model `gpt` does not exist", "no such file"] {
        let context = Context::default();

        assert_eq!(context.refused(words, 4_000, 1_000, &identity()), None, "{words}");
        assert_eq!(context.prompt_room(1_000), None);
    }
}

#[test]
fn a_prompt_that_leaves_room_for_an_answer_is_asked_again_with_a_shorter_one() {
    let context = Context::default();
    let words = "maximum context length is 4096 tokens. However, you requested 6000 tokens (2000 in the messages, 4000 in the completion)";

    let refusal = context.refused(words, 2_000, 4_000, &identity());

    let Some(TooLong::Answer(limit)) = refusal else { panic!("{refusal:?}") };
    assert!((1_800..=2_096).contains(&limit), "{limit}");
    assert_eq!(context.answer_limit(2_000, 4_000), limit);
    assert!(context.prompt_room(4_000).is_some_and(|room| (3_000..3_500).contains(&room)));
}

#[test]
fn counts_that_stay_the_same_show_that_prompts_are_cut() {
    for prompts in [[5_000, 5_040, 5_080], [5_000, 4_700, 5_100]] {
        let context = Context::default();
        for estimate in prompts {
            context.answered(estimate, Some(2_048), &identity());
        }

        let room = context.prompt_room(1_000).expect("it is known");

        assert!((1_000..1_800).contains(&room), "{room}");
    }
}

#[test]
fn prompts_that_count_less_than_shorter_ones_are_cut() {
    let context = Context::default();
    // A server that cuts prompts to half of its context of 4,096 tokens, and shorter ones between them.
    for (estimate, counted) in [(3_971, 3_971), (5_194, 2_050), (3_500, 3_500), (7_050, 2_050), (3_600, 3_600), (8_517, 2_050)] {
        assert_eq!(context.prompt_room(1_000), None);
        context.answered(estimate, Some(counted), &identity());
    }

    let room = context.prompt_room(1_000).expect("it is known");
    assert!((1_000..1_800).contains(&room), "{room}");
}

#[test]
fn counts_of_whole_prompts_teach_no_size() {
    let context = Context::default();
    for (estimate, counted) in [(5_000, 5_100), (5_010, 5_108), (5_020, 5_115), (5_020, 5_115), (900, 1_000), (5_040, 5_130)] {
        context.answered(estimate, Some(counted), &identity());
    }
    // Two characters of other scripts are often fewer tokens than we estimate.
    for (estimate, counted) in [(6_000, 3_000), (6_020, 3_011), (6_050, 3_024), (6_060, 3_029)] {
        context.answered(estimate, Some(counted), &identity());
    }

    assert_eq!(context.prompt_room(1_000), None);
}

#[test]
fn silence_after_a_long_prompt_makes_the_next_one_shorter_and_is_forgotten_if_it_lasts() {
    let context = Context::default();
    context.answered(1_000, None, &identity());
    assert!(!context.was_silent(1_000, 1_000, &identity()));

    assert!(context.was_silent(4_000, 1_000, &identity()));
    let room = context.prompt_room(1_000).expect("it is known");
    assert!((2_000..=3_000).contains(&room), "{room}");

    assert!(!context.was_silent(1_100, 1_000, &identity()));
    assert_eq!(context.prompt_room(1_000), None);
}

#[test]
fn a_size_of_a_list_is_known_until_a_refusal_tells_another() {
    let context = Context::default();
    context.is_listed(8_192, &identity());
    context.is_listed(2_048, &identity());
    assert!(context.in_words().expect("a sentence").contains("8192"));

    context.refused("n_ctx: 4096", 5_000, 1_000, &identity());

    assert!(context.in_words().expect("a sentence").contains("4096"));
    let vast = Context::default();
    vast.is_listed(131_072, &identity());
    assert_eq!(vast.in_words(), None);
}
