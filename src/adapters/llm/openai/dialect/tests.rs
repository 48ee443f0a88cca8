use super::*;

fn dialect() -> Dialect {
    Dialect::of(Identity { provider: "p".into(), model: "m".into(), endpoint: "http://here".into() })
}

/// The parameters of the first attempt for a vote.
fn first(dialect: &Dialect) -> Parameters {
    dialect.first(Form::Schema, 2_000).parameters
}

/// Follows refusals until the endpoint accepts, and returns what it accepted.
fn follow(
    dialect: &Dialect,
    wanted: Form,
    accepts: impl Fn(&Parameters) -> Result<(), (u16, &'static str)>,
) -> Option<Parameters> {
    let mut attempt = dialect.first(wanted, 2_000);
    attempt.parameters.tools = false;
    follow_from(attempt, dialect, accepts)
}

fn follow_from(
    mut attempt: Attempt,
    dialect: &Dialect,
    accepts: impl Fn(&Parameters) -> Result<(), (u16, &'static str)>,
) -> Option<Parameters> {
    for _ in 0..10 {
        match accepts(&attempt.parameters) {
            Ok(()) => {
                dialect.worked(&attempt);
                return Some(attempt.parameters);
            }
            Err((status, refusal)) => attempt = dialect.next(&attempt, Some(status).filter(|status| *status != 200), refusal)?,
        }
    }
    panic!("attempts without end");
}

/// What an endpoint refuses, in what words, and what is learnt of it.
#[test]
fn refusals_of_many_servers_are_understood_and_learnt() {
    let cases: &[(u16, &'static str, Lesson)] = &[
        // OpenAI.
        (
            400,
            r#"{"error":{"message":"Your organization must be verified to stream this model.","param":"stream","code":"unsupported_value"}}"#,
            Lesson::Stream,
        ),
        (
            400,
            r#"{"error":{"message":"Unsupported value: 'stream' does not support true with this model.","param": "stream"}}"#,
            Lesson::Stream,
        ),
        (
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            Lesson::MaxTokens,
        ),
        (400, "Unsupported value: 'temperature' does not support 0.2 with this model.", Lesson::Temperature),
        (400, "max_tokens is too large: 2000. This model supports at most 1024 completion tokens.", Lesson::LongAnswers),
        // Gateways.
        (501, "streaming is not implemented", Lesson::Stream),
        (500, "Streaming is not supported by this backend", Lesson::Stream),
        (403, "streaming is not allowed for this key", Lesson::Stream),
        // Older servers.
        (400, "Unrecognized request argument supplied: stream_options", Lesson::StreamOptions),
        (422, r#"{"detail":[{"loc":["body","stream_options"],"msg":"extra fields not permitted"}]}"#, Lesson::StreamOptions),
        // LM Studio, OpenRouter, DeepSeek, vLLM, llama.cpp.
        (400, "'response_format.type' must be 'json_schema' or 'text'", Lesson::Schema),
        (404, "No endpoints found that support response_format", Lesson::Schema),
        (400, "This response_format type is unavailable now", Lesson::Schema),
        (500, "The guided decoding backend failed", Lesson::Schema),
        (400, "failed to parse grammar", Lesson::Schema),
        (400, "bad request", Lesson::Schema),
        (500, "Internal Server Error", Lesson::Schema),
        // Models that read only text.
        (404, "No endpoints found that support image input", Lesson::Pictures),
        (400, "Invalid content type. image_url is only supported by certain models.", Lesson::Pictures),
        (500, "image input is not supported - hint: you may need to provide the mmproj", Lesson::Pictures),
        (400, "messages[1].content must be a string", Lesson::Pictures),
        // Models and servers without tools: Ollama, vLLM, llama.cpp, OpenRouter.
        (400, "registry.ollama.ai/library/gemma:2b does not support tools", Lesson::Tools),
        (400, "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set", Lesson::Tools),
        (500, "tools param requires --jinja flag", Lesson::Tools),
        (500, "Cannot use tools with stream", Lesson::Tools),
        (404, "No endpoints found that support tool use.", Lesson::Tools),
        // Templates.
        (400, "Jinja Exception: System role not supported", Lesson::System),
        (500, r#"{"error":{"code":500,"message":"System role not supported","type":"server_error"}}"#, Lesson::System),
        (200, "Conversation roles must alternate user/assistant/user/assistant/...", Lesson::System),
        (400, "Developer instruction is not enabled for models/gemma-3-27b-it", Lesson::System),
        (400, "Only user and assistant roles are supported!", Lesson::System),
        (422, r#"{"detail":[{"msg":"Input should be 'user' or 'assistant'","input":"system"}]}"#, Lesson::System),
    ];
    for (status, refusal, lesson) in cases {
        let dialect = dialect();
        let is_plain = |parameters: &Parameters| match lesson {
            Lesson::Stream => !parameters.stream,
            Lesson::StreamOptions => !parameters.stream_options,
            Lesson::MaxTokens => parameters.completion_tokens,
            Lesson::LongAnswers => parameters.limit <= SHORT_ANSWER,
            Lesson::Temperature => !parameters.temperature,
            Lesson::System => !parameters.system,
            Lesson::Schema => parameters.form <= Form::Object,
            Lesson::Json => parameters.form == Form::Text,
            Lesson::Pictures => !parameters.pictures,
            Lesson::Tools => !parameters.tools,
        };

        let mut attempt = dialect.first(Form::Schema, 2_000);
        attempt.parameters.tools = *lesson == Lesson::Tools;
        let accepts = |parameters: &Parameters| if is_plain(parameters) { Ok(()) } else { Err((*status, *refusal)) };
        let accepted = follow_from(attempt, &dialect, accepts);

        assert!(accepted.is_some(), "{status} {refusal}");
        assert!(is_plain(&first(&dialect)), "{status} {refusal} is learnt");
        assert_eq!(dialect.lessons(), BTreeSet::from([*lesson]), "{status} {refusal}");
        assert_eq!(dialect.in_words().len(), 1);
    }
}

#[test]
fn other_refusals_teach_nothing() {
    for (status, refusal, wanted) in [
        (401, "response_format", Form::Schema),
        (429, "response_format", Form::Schema),
        (402, "Insufficient Balance", Form::Schema),
        (404, "no such model", Form::Schema),
        (503, "Loading model", Form::Schema),
        (502, "upstream connect error", Form::Schema),
        (400, "maximum context length exceeded", Form::Text),
        (500, "the stream was closed by the upstream", Form::Text),
        (400, "response_format", Form::Text),
        (400, "bad request", Form::Text),
    ] {
        let dialect = dialect();

        let accepted = follow(&dialect, wanted, |_| Err((status, refusal)));

        assert_eq!(accepted, None, "{status} {refusal}");
        assert!(dialect.lessons().is_empty(), "{status} {refusal}");
    }
}

#[test]
fn several_refusals_are_followed_in_turn() {
    let dialect = dialect();

    let accepted = follow(&dialect, Form::Schema, |parameters| match parameters {
        Parameters { stream_options: true, .. } => Err((400, "unknown argument stream_options")),
        Parameters { completion_tokens: false, .. } => Err((400, "Use 'max_completion_tokens' instead")),
        Parameters { form: Form::Schema, .. } => Err((400, "json_schema is unknown")),
        Parameters { form: Form::Object, .. } => Err((400, "bad request")),
        Parameters { system: true, .. } => Err((500, "Jinja Exception")),
        _ => Ok(()),
    });

    let plain = Parameters {
        stream: true,
        stream_options: false,
        completion_tokens: true,
        limit: 2_000,
        temperature: true,
        system: false,
        pictures: true,
        tools: false,
        form: Form::Text,
    };
    assert_eq!((accepted, first(&dialect)), (Some(plain), Parameters { tools: true, ..plain }));
}

#[test]
fn what_did_not_help_is_not_learnt() {
    let dialect = dialect();

    let accepted = follow(&dialect, Form::Schema, |_| Err((400, "bad request")));

    assert_eq!(accepted, None);
    assert_eq!(first(&dialect).form, Form::Schema);
}

#[test]
fn one_bad_generation_is_asked_for_in_plain_words_and_teaches_nothing() {
    let failed = r#"{"error":{"message":"Failed to validate JSON.","code":"json_validate_failed","failed_generation":"YES"}}"#;
    let dialect = dialect();

    let accepted = follow(&dialect, Form::Schema, |parameters| match parameters.form {
        Form::Text => Ok(()),
        _ => Err((400, failed)),
    });

    assert_eq!(accepted.map(|parameters| parameters.form), Some(Form::Text));
    assert_eq!(first(&dialect).form, Form::Schema);
}

#[test]
fn a_server_that_fails_does_not_lose_a_form_that_it_has_accepted() {
    let dialect = dialect();
    follow(&dialect, Form::Schema, |_| Ok(()));

    let accepted = follow(&dialect, Form::Schema, |_| Err((500, "oops")));

    assert_eq!((accepted, first(&dialect).form), (None, Form::Schema));
}

#[test]
fn a_limit_that_only_this_prompt_or_this_moment_makes_too_high_is_lowered_once() {
    for (status, refusal) in [
        (
            400,
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (3000 in the messages, 2000 in the completion).",
        ),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"),
        (
            402,
            "This request requires more credits, or fewer max_tokens. You requested up to 2000 tokens, but can only afford 1234.",
        ),
        (413, "Request too large for model in organization on tokens per minute (TPM): Limit 6000, Requested 7200"),
    ] {
        let dialect = dialect();

        let accepted = follow(&dialect, Form::Text, |parameters| match parameters.limit {
            ..=SHORT_ANSWER => Ok(()),
            _ => Err((status, refusal)),
        });

        assert!(accepted.is_some(), "{status} {refusal}");
        assert_eq!(first(&dialect).limit, 2_000, "{status} {refusal}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_day_everything_is_tried_again() {
    let dialect = dialect();
    follow(&dialect, Form::Schema, |parameters| if parameters.stream { Err((400, "streaming is unsupported")) } else { Ok(()) });

    tokio::time::advance(LEARNT_FOR - Duration::from_secs(1)).await;
    let before = first(&dialect).stream;
    tokio::time::advance(Duration::from_secs(1)).await;

    assert_eq!((before, first(&dialect).stream), (false, true));
    assert!(dialect.in_words().is_empty());
}

#[test]
fn users_of_one_model_learn_together() {
    let dialects = Dialects::default();
    let identity = |model: &str| Identity { provider: "p".into(), model: model.into(), endpoint: "http://here".into() };
    let of = |model| dialects.of("http://here/v1".to_owned(), &identity(model));
    follow(&of("m"), Form::Schema, |parameters| if parameters.system { Err((400, "system role")) } else { Ok(()) });

    assert_eq!((first(&of("m")).system, first(&of("other")).system), (false, true));
}
