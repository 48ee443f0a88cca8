mod adapting;
mod ends;

use axum::body::Body;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::fake::{Does, Fake, Then, done, error, piece, plain, stop, streamed, usage};
use super::*;
use crate::ports::language_model::{AnswerFormat, Media, Message, ModelRole, Part, Role, TokenUsage, Tool, ToolCall};
use crate::settings::samples::models as defaults;

fn endpoint(url: &str) -> Endpoint {
    let mut endpoint = defaults().main;
    endpoint.base_url = Some(url.to_owned());
    endpoint.model = Some("m".to_owned());
    endpoint.api_key = Some("sk-secret".to_owned().into());
    endpoint
}

fn model(endpoint: &Endpoint) -> OpenAi {
    OpenAi::new(endpoint, endpoint, &[]).expect("usable")
}

fn request() -> Request {
    let messages = Message::prompt("You are Mira.".to_owned(), "Bob: hi".to_owned());
    Request { messages, ..Request::new(ModelRole::Main, "home".into(), 50) }
}

async fn ask_once(does: Does) -> Result<Answer, NoAnswer> {
    let fake = Fake::new([does]).await;
    model(&endpoint(&fake.url)).ask(&request(), None).await
}

async fn refusal(does: Does) -> String {
    match ask_once(does).await.expect_err("no answer") {
        NoAnswer::Refused { detail, .. }
        | NoAnswer::KeyRejected { detail, .. }
        | NoAnswer::UnknownModel { detail, .. }
        | NoAnswer::Filtered { detail, .. }
        | NoAnswer::OutOfTokens { detail, .. } => detail,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_streamed_answer_is_complete_and_is_drafted_before() {
    let events = [piece(""), piece("Hel"), piece("lo, "), piece("é!"), stop(), usage(), done()];
    let fake = Fake::new([streamed(events, Then::Hangs)]).await;
    let (sender, mut drafts) = mpsc::unbounded_channel();

    let answer = model(&endpoint(&fake.url)).ask(&request(), Some(&sender)).await.expect("an answer");

    assert_eq!(answer.text(), "Hello, é!");
    assert_eq!(answer.usage, TokenUsage::new(21, 4));
    assert_eq!(
        (answer.model.as_deref(), answer.response_id.as_deref(), answer.finish_reason.as_deref()),
        (Some("m-2026"), Some("chatcmpl-1"), Some("stop"))
    );
    let pieces = ["Hel", "lo, ", "é!"].map(|text| Ok(Draft::More(text.to_owned())));
    assert_eq!([drafts.try_recv(), drafts.try_recv(), drafts.try_recv()], pieces);
}

#[tokio::test]
async fn the_request_follows_the_protocol() {
    let answer = || streamed([piece("ok"), done()], Then::Ends);
    let fake = Fake::new([answer(), answer()]).await;
    let mut endpoint = endpoint(&format!("{}/", fake.url));
    endpoint.temperature = Some(0.5);

    model(&endpoint).ask(&request(), None).await.expect("an answer");

    let received = fake.received().remove(0);
    assert_eq!((received.path.as_str(), received.authorization.as_deref()), ("/v1/chat/completions", Some("Bearer sk-secret")));
    let messages = json!([{ "role": "system", "content": "You are Mira." }, { "role": "user", "content": "Bob: hi" }]);
    let options = json!({ "include_usage": true });
    assert_eq!(
        received.body,
        json!({ "model": "m", "messages": messages, "stream": true, "stream_options": options, "max_tokens": 50, "temperature": 0.5 })
    );
    endpoint.api_key = None;
    model(&endpoint).ask(&request(), None).await.expect("an answer");
    assert_eq!(fake.received()[0].authorization, None, "without a key it gets none");
}

#[tokio::test]
async fn a_server_that_ignores_streaming_is_understood() {
    let body = json!({ "id": "x", "choices": [{ "message": { "role": "assistant", "content": "Hello" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 1 } });

    let answer = ask_once(plain(200, "application/json", body.to_string())).await.expect("an answer");

    assert_eq!((&*answer.text(), answer.usage.total()), ("Hello", 4));
}

#[tokio::test]
async fn missing_token_counts_are_estimated() {
    let answer = ask_once(streamed([piece("Hello"), stop(), done()], Then::Ends)).await.expect("an answer");

    assert_eq!(answer.usage, TokenUsage::new(5, 2));
}

#[tokio::test]
async fn cached_tokens_and_thoughts_are_read_from_every_form_of_answer() {
    let usage = json!({
        "prompt_tokens": 21, "completion_tokens": 4, "total_tokens": 25,
        "prompt_tokens_details": { "cached_tokens": 16, "cache_write_tokens": 3 },
        "completion_tokens_details": { "reasoning_tokens": 2 },
    });
    let counted = json!({ "choices": [], "usage": usage }).to_string();
    let whole = json!({ "choices": [{ "message": { "content": "Hello" } }], "usage": usage }).to_string();

    let streamed = ask_once(streamed([piece("Hello"), stop(), counted, done()], Then::Ends)).await.expect("an answer");
    let whole = ask_once(plain(200, "application/json", whole)).await.expect("an answer");

    let expected = TokenUsage {
        cache_read_tokens: Some(16),
        cache_write_tokens: Some(3),
        reasoning_tokens: Some(2),
        ..TokenUsage::new(21, 4)
    };
    assert_eq!((streamed.usage, whole.usage), (expected, expected));
    assert!(streamed.time_to_first_chunk.is_some() && whole.time_to_first_chunk.is_none(), "only a stream has a first chunk");
}

#[tokio::test]
async fn no_more_cached_tokens_are_counted_than_the_prompt_has() {
    let details = json!({ "cached_tokens": 1e300, "cache_write_tokens": 1e300 });
    let usage = json!({ "prompt_tokens": 21, "completion_tokens": 4, "prompt_tokens_details": details });
    let whole = json!({ "choices": [{ "message": { "content": "Hello" } }], "usage": usage }).to_string();

    let answer = ask_once(plain(200, "application/json", whole)).await.expect("an answer");

    let TokenUsage { input_tokens, cache_read_tokens, cache_write_tokens, .. } = answer.usage;
    assert_eq!((input_tokens, cache_read_tokens, cache_write_tokens), (21, Some(21), Some(0)));
}

#[tokio::test]
async fn no_more_tokens_are_counted_than_the_text_can_have() {
    let usage = json!({ "prompt_tokens": 1e300, "completion_tokens": 1e300 });
    let whole = json!({ "choices": [{ "message": { "content": "Hello" } }], "usage": usage }).to_string();

    let answer = ask_once(plain(200, "application/json", whole)).await.unwrap();

    let bytes = "You are Mira.Bob: hi".len() as u64;
    assert_eq!(answer.usage, TokenUsage::new(bytes + 8_192, 50 + 32_768));
}

#[tokio::test]
async fn invalid_token_counts_do_not_lose_the_answer() {
    for (counts, expected) in [
        (json!({ "prompt_tokens": null, "completion_tokens": 7 }), (5, 7)),
        (json!({ "prompt_tokens": 20.6, "completion_tokens": 3.2 }), (21, 3)),
        (json!({ "prompt_tokens": 9 }), (9, 2)),
        (json!({ "prompt_tokens": -3, "completion_tokens": "7" }), (5, 7)),
        (json!([]), (5, 2)),
        (json!("many"), (5, 2)),
    ] {
        let counted = json!({ "choices": [], "usage": counts }).to_string();
        let whole = json!({ "choices": [{ "message": { "content": "Hello" } }], "usage": counts }).to_string();

        for does in [streamed([piece("Hello"), stop(), counted, done()], Then::Ends), plain(200, "application/json", whole)] {
            let answer = ask_once(does).await.unwrap_or_else(|error| panic!("{counts}: {error}"));

            assert_eq!(
                (&*answer.text(), answer.usage.input_tokens, answer.usage.output_tokens),
                ("Hello", expected.0, expected.1)
            );
        }
    }
}

#[tokio::test]
async fn the_first_choice_counts_and_nothing_else_is_read() {
    let others = [json!({ "message": 7 }), json!("nonsense"), json!({ "message": { "content": "second" } })];
    let message = json!({ "content": "Hello", "reasoning": [[{ "a": [1] }]], "tool_calls": 5 });
    let mut choices = vec![json!({ "message": message, "finish_reason": ["stop"] })];
    choices.extend(others);

    let answer =
        ask_once(plain(200, "application/json", json!({ "id": 7, "choices": choices, "extra": [{}] }).to_string())).await;

    let answer = answer.expect("an answer");
    assert_eq!((&*answer.text(), &answer.response_id, &answer.finish_reason), ("Hello", &Some("7".to_owned()), &None));
}

#[tokio::test]
async fn an_answer_in_one_piece_of_more_than_a_mebibyte_is_refused() {
    let with = |padding: usize| {
        json!({ "choices": [{ "message": { "content": "Hello" } }], "padding": "x".repeat(padding) }).to_string()
    };

    let answer = ask_once(plain(200, "application/json", with(MAX_WHOLE_BYTES - 100))).await.expect("an answer");
    let detail = refusal(plain(200, "application/json", with(MAX_WHOLE_BYTES))).await;

    assert_eq!(answer.text(), "Hello");
    assert!(detail.contains("too long"), "{detail}");
}

#[tokio::test]
async fn a_stream_with_a_finish_reason_is_complete_however_it_ends() {
    for then in [Then::Ends, Then::Breaks] {
        let answer = ask_once(streamed([piece("Hello"), stop()], then)).await.expect("an answer");

        assert_eq!(answer.text(), "Hello");
    }
}

#[tokio::test]
async fn a_stream_that_stops_halfway_times_out() {
    let fake = Fake::new([streamed([piece("Hel")], Then::Hangs)]).await;
    let mut endpoint = endpoint(&fake.url);
    endpoint.idle_timeout_secs = 0.1;

    let no_answer = model(&endpoint).ask(&request(), None).await.expect_err("no answer");

    assert!(no_answer.to_string().contains("stopped halfway"), "{no_answer}");
}

#[tokio::test]
async fn a_silent_endpoint_times_out() {
    let fake = Fake::new([Does::Hangs, streamed([piece("")], Then::Hangs)]).await;
    let mut endpoint = endpoint(&fake.url);
    endpoint.first_token_timeout_secs = 0.1;
    let model = model(&endpoint);

    let codes =
        [model.ask(&request(), None).await, model.ask(&request(), None).await].map(|result| result.expect_err("silence").code());

    assert_eq!(codes, ["timeout"; 2], "neither silence nor a role without a word");
}

#[tokio::test]
async fn an_answer_that_takes_too_long_times_out() {
    let endless = stream::unfold((), |()| async {
        tokio::task::yield_now().await;
        Some((Ok::<_, std::io::Error>(": still there\n\n".to_owned()), ()))
    });
    let fake = Fake::new([plain(200, "text/event-stream", Body::from_stream(endless))]).await;
    let mut endpoint = endpoint(&fake.url);
    endpoint.timeout_secs = 0.2;
    endpoint.first_token_timeout_secs = 0.2;

    let no_answer = model(&endpoint).ask(&request(), None).await.expect_err("no answer");

    // Endless comments end in one of two errors.
    assert!(matches!(no_answer, NoAnswer::TimedOut { .. } | NoAnswer::Refused { .. }), "{no_answer}");
}

#[tokio::test]
async fn an_endless_answer_is_truncated_at_the_limit() {
    let numbered = |number| piece(&(number * 100..number * 100 + 100).map(|number| format!("{number:09}é")).collect::<String>());
    let endless = stream::iter(0..).map(move |number: u32| Ok::<_, std::io::Error>(format!("data: {}\n\n", numbered(number))));

    let answer = ask_once(plain(200, "text/event-stream", Body::from_stream(endless))).await.expect("an answer");

    assert!((MAX_ANSWER_BYTES - 1..=MAX_ANSWER_BYTES).contains(&answer.text().len()));
    assert_eq!(answer.finish_reason.as_deref(), Some("length"));
}

#[tokio::test]
async fn an_endless_line_is_refused() {
    for kind in ["text/event-stream", "application/json"] {
        let endless = stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(64 * 1024)));

        let detail = refusal(plain(200, kind, Body::from_stream(endless))).await;

        assert!(detail.contains("too long"), "{detail}");
    }
}

#[tokio::test]
async fn a_429_response_has_a_retry_delay() {
    let no_answer = ask_once(error(429, "slow down", &[("retry-after", "7")])).await.expect_err("no answer");

    let NoAnswer::Overloaded { detail, retry_after, .. } = no_answer else { panic!("{no_answer}") };
    assert_eq!((detail.as_str(), retry_after), ("429 Too Many Requests: “slow down”", Some(Duration::from_secs(7))));
}

#[tokio::test]
async fn each_failure_has_its_kind() {
    let json = |body: Value| plain(200, "application/json", body.to_string());
    let busy = json!({ "error": { "code": 502, "message": "upstream" } }).to_string();
    for (what, does, code) in [
        ("a stream without words", streamed([piece("")], Then::Ends), "unreachable"),
        ("a stream that breaks off", streamed([piece("Hel")], Then::Breaks), "unreachable"),
        ("a failure inside a stream", streamed([piece("Hel"), busy], Then::Ends), "overloaded"),
        ("a refusal inside a success", json(json!({ "error": { "code": 400, "message": "context too long" } })), "refused"),
        (
            "a refusal with a code in words",
            json(json!({ "error": { "type": "invalid_request_error", "code": "too_long", "message": "no" } })),
            "refused",
        ),
    ] {
        assert_eq!(ask_once(does).await.expect_err("no answer").code(), code, "{what}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_to_do_and_never_shows_the_key() {
    for (does, words) in [
        (error(401, "Incorrect API key provided: sk-secret", &[]), &["***", "check the key"][..]),
        (plain(200, "text/html; charset=utf-8", "<html>Welcome</html>"), &["text/html", "base_url"]),
        (plain(200, "application/json", "{\"choices\": [{\"mess"), &["cannot be read"]),
        (plain(200, "application/json", "{}"), &["cannot be read"]),
        (plain(200, "application/json", ""), &["cannot be read"]),
        (plain(200, "text/event-stream", "data: {\"choices\": [\n\n"), &["cannot be read"]),
        (plain(200, "text/event-stream", "data: hello there\n\n"), &["cannot be read"]),
    ] {
        let detail = refusal(does).await;

        assert!(words.iter().all(|word| detail.contains(word)) && !detail.contains("sk-secret"), "{words:?}: {detail}");
    }
}

#[tokio::test]
async fn parameters_that_an_endpoint_refuses_are_left_out_from_then_on() {
    let fake = Fake::new([
        error(400, "Unrecognized request argument supplied: stream_options", &[]),
        error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", &[]),
        streamed([piece("first"), done()], Then::Ends),
        streamed([piece("second"), done()], Then::Ends),
    ])
    .await;
    let model = model(&endpoint(&fake.url));

    model.ask(&request(), None).await.expect("an answer");
    let second = model.ask(&request(), None).await.expect("an answer");

    let received = fake.received();
    let last: &Value = &received[3].body;
    assert_eq!(second.text(), "second");
    assert_eq!(
        (&last["stream_options"], &last["max_tokens"], &last["max_completion_tokens"]),
        (&Value::Null, &Value::Null, &json!(50))
    );
}

#[tokio::test]
async fn pictures_that_a_model_refuses_are_left_out_from_then_on() {
    let fake = Fake::new([
        error(404, "No endpoints found that support image input", &[]),
        streamed([piece("first"), done()], Then::Ends),
        streamed([piece("second"), done()], Then::Ends),
    ])
    .await;
    let model = model(&endpoint(&fake.url));
    let png = Media::Bytes { media_type: "image/png".to_owned(), bytes: (*b"PNG").into() };
    let parts = vec![Part::Text("look: [image: cat.png]".to_owned()), Part::Image(png)];
    let seen = Request { messages: vec![Message { role: Role::User, parts }], ..request() };

    model.ask(&seen, None).await.expect("an answer");
    let second = model.ask(&seen, None).await.expect("an answer");

    assert_eq!(second.text(), "second");
    let contents: Vec<_> = fake.received().iter().map(|received| received.body["messages"][0]["content"].clone()).collect();
    assert_eq!(contents[0][1]["image_url"]["url"], "data:image/png;base64,UE5H");
    assert_eq!(contents[1..], [json!("look: [image: cat.png]"), json!("look: [image: cat.png]")]);
    assert_eq!(model.reads_pictures(), Some(false));
    assert!(model.adaptations().iter().any(|adaptation| adaptation.contains("pictures")));
}

#[tokio::test]
async fn a_list_of_models_says_which_of_them_read_pictures() {
    for (entry, expected) in [
        (json!({ "id": "m", "architecture": { "input_modalities": ["text", "image"] } }), Some(true)),
        (json!({ "id": "m", "architecture": { "input_modalities": ["text"] } }), Some(false)),
        (json!({ "id": "m", "capabilities": ["completion", "vision"] }), Some(true)),
        (json!({ "id": "m", "capabilities": { "vision": false } }), Some(false)),
        (json!({ "id": "m" }), None),
        (json!({ "id": "another", "capabilities": ["vision"] }), None),
    ] {
        let fake = Fake::new([plain(200, "application/json", json!({ "data": [entry] }).to_string())]).await;
        let model = model(&Endpoint { model: Some("m".into()), ..endpoint(&fake.url) });

        model.prepare().await;

        assert_eq!(model.reads_pictures(), expected, "{entry}");
    }
}

fn vote() -> Request {
    Request { format: AnswerFormat::JsonObject, ..request() }
}

#[tokio::test]
async fn only_a_vote_is_requested_as_json() {
    let fake = Fake::new([streamed([piece("{}"), done()], Then::Ends), streamed([piece("ok"), done()], Then::Ends)]).await;
    let model = model(&endpoint(&fake.url));

    model.ask(&vote(), None).await.expect("an answer");
    model.ask(&request(), None).await.expect("an answer");

    let received = fake.received();
    assert_eq!(received[0].body["response_format"], json!({ "type": "json_object" }));
    assert_eq!(received[1].body.get("response_format"), None);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Fake::new([]).await;
    let location = format!("{}/chat/completions", elsewhere.url);

    let detail = refusal(error(307, "moved", &[("location", &location)])).await;

    assert!(detail.contains(&location) && detail.contains("set base_url"), "{detail}");
    assert!(elsewhere.received().is_empty());
}

#[test]
fn the_endpoint_is_scheme_host_and_port() {
    let endpoint = endpoint("https://api.example.org:8443/api/v1");

    let identity = model(&endpoint).identity().clone();

    assert_eq!(
        (&*identity.provider, &*identity.model, &*identity.endpoint),
        ("api.example.org", "m", "https://api.example.org:8443")
    );
}

fn tool_request() -> Request {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let call = ToolCall { id: "c0".to_owned(), name: "weather".to_owned(), arguments: r#"{"city":"Bern"}"#.to_owned() };
    let wav = Media::Bytes { media_type: "audio/wav".to_owned(), bytes: (*b"RIFF").into() };
    let png = Media::Bytes { media_type: "image/png".to_owned(), bytes: (*b"PNG").into() };
    let seen = vec![
        Part::Text("look".to_owned()),
        Part::Image(Media::Url("https://example.org/a.png".to_owned())),
        Part::Image(png),
        Part::Audio(wav),
    ];
    Request {
        messages: vec![
            Message::text(Role::System, "You are Mira.".to_owned()),
            Message { role: Role::User, parts: seen },
            Message { role: Role::Assistant { tool_calls: vec![call] }, parts: Vec::new() },
            Message::text(Role::Tool { call_id: "c0".to_owned() }, "rain".to_owned()),
        ],
        tools: vec![Tool { name: "weather".to_owned(), description: "Tells the weather.".to_owned(), parameters }],
        format: AnswerFormat::JsonSchema { name: "report".to_owned(), schema: json!({ "type": "object" }).into() },
        ..request()
    }
}

#[tokio::test]
async fn messages_of_every_role_and_part_tools_and_a_schema_are_sent() {
    let fake = Fake::new([streamed([piece("ok"), done()], Then::Ends)]).await;

    model(&endpoint(&fake.url)).ask(&tool_request(), None).await.expect("an answer");

    let received = &fake.received()[0].body;
    let function = json!({ "name": "weather", "arguments": r#"{"city":"Bern"}"# });
    assert_eq!(
        received["messages"],
        json!([
            { "role": "system", "content": "You are Mira." },
            { "role": "user", "content": [
                { "type": "text", "text": "look" },
                { "type": "image_url", "image_url": { "url": "https://example.org/a.png" } },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,UE5H" } },
                { "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } },
            ] },
            { "role": "assistant", "tool_calls": [{ "id": "c0", "type": "function", "function": function }] },
            { "role": "tool", "content": "rain", "tool_call_id": "c0" },
        ])
    );
    assert_eq!(received["tools"][0]["type"], "function");
    assert_eq!(received["tools"][0]["function"]["name"], "weather");
    assert_eq!(received["tools"][0]["function"]["parameters"]["properties"]["city"]["type"], "string");
    assert_eq!(
        received["response_format"],
        json!({ "type": "json_schema", "json_schema": { "name": "report", "schema": { "type": "object" } } })
    );
}

#[tokio::test]
async fn an_unsupported_recording_is_refused_before_a_request_is_sent() {
    let bytes = Media::Bytes { media_type: "audio/ogg".to_owned(), bytes: (*b"OggS").into() };
    for media in [bytes, Media::Url("https://example.org/a.wav".to_owned())] {
        let fake = Fake::new([streamed([piece("ok"), done()], Then::Ends)]).await;
        let received = Request { messages: vec![Message { role: Role::User, parts: vec![Part::Audio(media)] }], ..request() };

        let unsent = model(&endpoint(&fake.url)).ask(&received, None).await.expect_err("it cannot be sent");

        assert!(matches!(unsent, NoAnswer::Unsendable { .. }), "{unsent:?}");
        assert!(unsent.to_string().contains("the request cannot be written: a recording has to be"), "{unsent}");
        assert_eq!(fake.received().len(), 0);
    }
}

fn calling(calls: Value) -> String {
    json!({ "choices": [{ "delta": { "tool_calls": calls } }] }).to_string()
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

#[tokio::test]
async fn tool_calls_are_assembled_from_a_stream() {
    let events = [
        piece("Let me see."),
        calling(json!([{ "index": 0, "id": "c1", "type": "function", "function": { "name": "weather", "arguments": "" } }])),
        calling(json!([{ "index": 0, "function": { "arguments": "{\"city\":" } }])),
        calling(json!([{ "index": 1, "id": "c2", "function": { "name": "clock", "arguments": "{}" } }])),
        calling(json!([{ "index": 0, "function": { "arguments": "\"Bern\"}" } }])),
        done(),
    ];

    let answer = ask_once(streamed(events, Then::Ends)).await.expect("an answer");

    assert_eq!(answer.text(), "Let me see.");
    assert_eq!(answer.tool_calls, [call("c1", "weather", r#"{"city":"Bern"}"#), call("c2", "clock", "{}")]);
}

#[tokio::test]
async fn tool_calls_without_distinct_indices_are_distinguished() {
    for index in [Value::Null, json!(0)] {
        let one = |id: &str| calling(json!([{ "index": index, "id": id, "function": { "name": "look", "arguments": "{}" } }]));

        let answer = ask_once(streamed([one("c1"), one("c2"), done()], Then::Ends)).await.expect("an answer");

        assert_eq!(answer.tool_calls, [call("c1", "look", "{}"), call("c2", "look", "{}")], "{index}");
        assert_eq!((answer.text().as_ref(), answer.parts.len()), ("", 0));
    }
}

#[tokio::test]
async fn tool_calls_are_read_from_an_answer_in_one_piece() {
    let calls = json!([
        { "id": "c1", "type": "function", "function": { "name": "weather", "arguments": "{\"city\":\"Bern\"}" } },
        { "function": { "name": "clock", "arguments": { "zone": "UTC" } } },
        { "id": "c3", "function": { "arguments": "{}" } },
    ]);
    let whole = json!({ "choices": [{ "message": { "content": null, "tool_calls": calls }, "finish_reason": "tool_calls" }] });

    let answer = ask_once(plain(200, "application/json", whole.to_string())).await.expect("an answer");

    assert_eq!(answer.tool_calls, [call("c1", "weather", r#"{"city":"Bern"}"#), call("", "clock", r#"{"zone":"UTC"}"#)]);
    assert_eq!((answer.text().as_ref(), answer.finish_reason.as_deref()), ("", Some("tool_calls")));
}

#[tokio::test]
async fn a_tool_call_that_does_not_fit_is_dropped_completely() {
    let begun = calling(json!([{ "index": 0, "id": "c1", "function": { "name": "look", "arguments": "{}" } }]));
    let more = calling(
        json!([{ "index": 1, "id": "c2", "function": { "name": "look", "arguments": "x".repeat(MAX_ANSWER_BYTES / 2) } }]),
    );
    let too_much = calling(json!([{ "index": 1, "function": { "arguments": "x".repeat(MAX_ANSWER_BYTES / 2) } }]));

    let answer = ask_once(streamed([begun, more, too_much, done()], Then::Ends)).await.expect("an answer");

    assert_eq!(answer.tool_calls, [call("c1", "look", "{}")]);
    assert_eq!(answer.finish_reason.as_deref(), Some("length"));
}

#[tokio::test]
async fn the_number_of_tool_calls_is_limited() {
    let many: Vec<_> = (0..1_000).map(|n| json!({ "index": n, "id": format!("c{n}"), "function": { "name": "look" } })).collect();

    let answer = ask_once(streamed([calling(json!(many)), done()], Then::Ends)).await.expect("an answer");

    assert_eq!((answer.tool_calls.len(), answer.finish_reason.as_deref()), (wire::MAX_TOOL_CALLS, Some("length")));
}

#[tokio::test]
async fn tool_calls_that_are_not_a_list_are_ignored() {
    for calls in [json!("look"), json!({ "index": 0 }), json!([1, 2]), json!([{ "function": "look" }])] {
        let answer = ask_once(streamed([piece("Hi"), calling(calls), done()], Then::Ends)).await.expect("an answer");

        assert_eq!((answer.text().as_ref(), answer.tool_calls.len()), ("Hi", 0));
    }
}
