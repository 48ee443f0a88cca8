use super::*;

fn told(status: Option<u16>, body: &str) -> Told {
    let told = Told::of(body.as_bytes());
    Told { status: status.or(told.status), ..told }
}

/// What servers say, by what is at fault. The status is that of the response; `None`: the response was a success.
#[test]
fn errors_of_many_servers_are_told_in_their_words_with_the_right_fault() {
    for (server, status, body, words, fault) in [
        // No credit.
        (
            "OpenAI",
            Some(429),
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
            "You exceeded your current quota, please check your plan and billing details.",
            Fault::Credit,
        ),
        (
            "OpenRouter",
            Some(402),
            r#"{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/credits","code":402}}"#,
            "Insufficient credits. Add more using https://openrouter.ai/credits",
            Fault::Credit,
        ),
        (
            "DeepSeek",
            Some(402),
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
            "Insufficient Balance",
            Fault::Credit,
        ),
        (
            "Moonshot",
            Some(429),
            r#"{"error":{"message":"Your account is suspended, please check your plan and billing details","type":"exceeded_current_quota_error"}}"#,
            "Your account is suspended, please check your plan and billing details",
            Fault::Credit,
        ),
        (
            "Anthropic by a gateway",
            Some(400),
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
            "Your credit balance is too low to access the API.",
            Fault::Credit,
        ),
        (
            "Together",
            Some(402),
            r#"{"error":{"message":"Credit limit exceeded","type":"credit_limit","code":null}}"#,
            "Credit limit exceeded",
            Fault::Credit,
        ),
        (
            "Zhipu",
            None,
            r#"{"code":1113,"msg":"Your account is in arrears","success":false}"#,
            "Your account is in arrears",
            Fault::Credit,
        ),
        (
            "Alibaba",
            Some(400),
            r#"{"error":{"message":"Access denied, please make sure your account is in good standing.","type":"Arrearage","code":"Arrearage"}}"#,
            "Access denied, please make sure your account is in good standing.",
            Fault::Credit,
        ),
        (
            "LiteLLM",
            None,
            r#"{"error":"{\"error\":{\"message\":\"Insufficient balance\",\"code\":\"insufficient_balance\"}}"}"#,
            "Insufficient balance",
            Fault::Credit,
        ),
        // Limits that pass.
        (
            "Scaleway",
            Some(429),
            r#"{"status":429,"error":"INSUFFICIENT QUOTA","message":"You exceeded your current limit of concurrent requests."}"#,
            "INSUFFICIENT QUOTA: You exceeded your current limit of concurrent requests.",
            Fault::Load,
        ),
        (
            "Google",
            Some(429),
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}]"#,
            "You exceeded your current quota, please check your plan and billing details.",
            Fault::Load,
        ),
        (
            "Groq",
            Some(429),
            r#"{"error":{"message":"Rate limit reached for model `m` on tokens per minute (TPM): Limit 6000. Please try again in 7.66s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            "Rate limit reached for model `m` on tokens per minute (TPM): Limit 6000. Please try again in 7.66s.",
            Fault::Load,
        ),
        (
            "KoboldCpp",
            Some(503),
            r#"{"detail":{"msg":"Server is busy; please try again later.","type":"service_unavailable"}}"#,
            "Server is busy; please try again later.",
            Fault::Load,
        ),
        (
            "llama.cpp",
            Some(503),
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            "Loading model",
            Fault::Loading,
        ),
        (
            "Ollama",
            Some(500),
            r#"{"error":"llama runner process has terminated: error loading model: unable to allocate buffer"}"#,
            "llama runner process has terminated: error loading model: unable to allocate buffer",
            Fault::Load,
        ),
        (
            "OpenAI",
            Some(404),
            r#"{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions.","type":"invalid_request_error","param":"model","code":null}}"#,
            "This model is only supported in v1/responses and not in v1/chat/completions.",
            Fault::Api,
        ),
        (
            "Azure",
            Some(400),
            r#"{"error":{"code":"OperationNotSupported","message":"The chatCompletion operation does not work with the specified model, x."}}"#,
            "The chatCompletion operation does not work with the specified model, x.",
            Fault::Api,
        ),
        (
            "OpenRouter",
            Some(404),
            r#"{"error":{"message":"No endpoints found matching your data policy","code":404}}"#,
            "No endpoints found matching your data policy",
            Fault::Account,
        ),
        (
            "A gateway",
            Some(400),
            r#"{"error":{"message":"your plan has no access to this model","type":"x"}}"#,
            "your plan has no access to this model",
            Fault::Plan,
        ),
        (
            "A gateway",
            Some(403),
            r#"{"error":{"message":"This model needs a higher tier.","type":"invalid_request_error"}}"#,
            "This model needs a higher tier.",
            Fault::Plan,
        ),
        (
            "OpenAI",
            Some(403),
            r#"{"error":{"message":"Your organization must be verified to use this model","code":"model_not_found"}}"#,
            "Your organization must be verified to use this model",
            Fault::Account,
        ),
        (
            "Anthropic by a gateway",
            None,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "Overloaded",
            Fault::Load,
        ),
        (
            "OpenRouter",
            None,
            r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"{\"message\":\"upstream is gone\"}","provider_name":"X"}}}"#,
            "Provider returned error: upstream is gone",
            Fault::Load,
        ),
        (
            "Azure",
            Some(429),
            r#"{"error":{"code":"429","message":"Requests have exceeded the token rate limit. Please retry after 20 seconds."}}"#,
            "Requests have exceeded the token rate limit. Please retry after 20 seconds.",
            Fault::Load,
        ),
        // The key.
        (
            "OpenAI",
            Some(401),
            r#"{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            "Incorrect API key provided: sk-x.",
            Fault::Key,
        ),
        (
            "Google",
            Some(400),
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}]"#,
            "API key not valid. Please pass a valid API key.",
            Fault::Key,
        ),
        (
            "Google",
            Some(400),
            r#"{"error":{"code":400,"message":"Missing or invalid Authorization header.","status":"INVALID_ARGUMENT"}}"#,
            "Missing or invalid Authorization header.",
            Fault::Key,
        ),
        ("Mistral", Some(401), r#"{"detail":"Unauthorized"}"#, "Unauthorized", Fault::Key),
        (
            "xAI",
            Some(400),
            r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***. You can obtain an API key from the console."}"#,
            "Incorrect API key provided: xa***. You can obtain an API key from the console.",
            Fault::Key,
        ),
        ("TabbyAPI", Some(401), r#"{"detail":"Invalid API key"}"#, "Invalid API key", Fault::Key),
        ("LM Studio", None, r#"{"error":"Invalid API key"}"#, "Invalid API key", Fault::Key),
        ("LocalAI", Some(500), r#"{"error":{"code":500,"message":"invalid api key","type":""}}"#, "invalid api key", Fault::Key),
        // The address.
        (
            "LM Studio",
            None,
            r#"{"error":"Unexpected endpoint or method. (POST /chat/completions)"}"#,
            "Unexpected endpoint or method. (POST /chat/completions)",
            Fault::Path,
        ),
        (
            "llama.cpp",
            Some(404),
            r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#,
            "File Not Found",
            Fault::Path,
        ),
        (
            "Groq",
            Some(404),
            r#"{"error":{"message":"Unknown request URL: POST /chat/completions. Please check the URL for typos.","type":"invalid_request_error","code":"unknown_url"}}"#,
            "Unknown request URL: POST /chat/completions. Please check the URL for typos.",
            Fault::Path,
        ),
        ("Ollama", Some(404), "404 page not found", "404 page not found", Fault::Path),
        ("text-generation-webui", Some(405), r#"{"detail":"Method Not Allowed"}"#, "Method Not Allowed", Fault::Path),
        ("Azure", Some(404), r#"{"error":{"code":"404","message":"Resource not found"}}"#, "Resource not found", Fault::Path),
        // The model, or the address.
        ("vLLM", Some(404), r#"{"detail":"Not Found"}"#, "Not Found", Fault::Model),
        (
            "vLLM",
            Some(404),
            r#"{"object":"error","message":"The model `m` does not exist.","type":"NotFoundError","param":null,"code":404}"#,
            "The model `m` does not exist.",
            Fault::Model,
        ),
        (
            "OpenRouter",
            Some(400),
            r#"{"error":{"message":"m is not a valid model ID","code":400}}"#,
            "m is not a valid model ID",
            Fault::Model,
        ),
        (
            "DeepSeek",
            Some(400),
            r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}"#,
            "Model Not Exist",
            Fault::Model,
        ),
        (
            "LM Studio",
            Some(404),
            r#"{"error":{"message":"No models loaded. Please load a model.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#,
            "No models loaded. Please load a model.",
            Fault::Model,
        ),
        (
            "one-api",
            Some(503),
            r#"{"error":{"message":"No available channel for model m","type":"new_api_error","code":"model_not_found"}}"#,
            "No available channel for model m",
            Fault::Model,
        ),
        (
            "Azure",
            Some(404),
            r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#,
            "The API deployment for this resource does not exist.",
            Fault::Model,
        ),
        // The request.
        (
            "vLLM",
            None,
            r#"{"object":"error","message":"context is full","type":"BadRequestError","code":400}"#,
            "context is full",
            Fault::Request,
        ),
        (
            "Ollama",
            None,
            r#"{"error":"the input exceeds the context length"}"#,
            "the input exceeds the context length",
            Fault::Request,
        ),
        (
            "TGI",
            Some(422),
            r#"{"error":"Input validation error: `inputs` must have less than 4096 tokens","error_type":"validation"}"#,
            "Input validation error: `inputs` must have less than 4096 tokens",
            Fault::Request,
        ),
        (
            "FastAPI",
            Some(422),
            r#"{"detail":[{"loc":["body","messages",0,"role"],"msg":"Input should be 'user' or 'assistant'","type":"literal_error"}]}"#,
            "Input should be 'user' or 'assistant'",
            Fault::Request,
        ),
        (
            "OpenRouter",
            Some(403),
            r#"{"error":{"code":403,"message":"m requires moderation. Your input was flagged.","metadata":{"reasons":["violence"]}}}"#,
            "m requires moderation. Your input was flagged.",
            Fault::Content,
        ),
        (
            "Azure",
            Some(400),
            r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            Fault::Content,
        ),
        (
            "DeepSeek",
            Some(400),
            r#"{"error":{"message":"Content Exists Risk","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
            "Content Exists Risk",
            Fault::Content,
        ),
        (
            "DashScope",
            Some(400),
            r#"{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content.","type":"data_inspection_failed"}}"#,
            "Input data may contain inappropriate content.",
            Fault::Content,
        ),
        (
            "Moonshot",
            Some(400),
            r#"{"error":{"message":"The request was rejected because it was considered high risk","type":"content_filter"}}"#,
            "The request was rejected because it was considered high risk",
            Fault::Content,
        ),
        (
            "Zhipu",
            Some(400),
            r#"{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容"}}"#,
            "系统检测到输入或生成内容可能包含不安全或敏感内容",
            Fault::Content,
        ),
        (
            "OpenAI",
            Some(400),
            r#"{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy.","type":"invalid_request_error","code":"invalid_prompt"}}"#,
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
            Fault::Content,
        ),
        (
            "xAI",
            Some(403),
            r#"{"code":"permission_denied","error":"I can't help with that request."}"#,
            "I can't help with that request.",
            Fault::Content,
        ),
        (
            "Gemini by a proxy",
            Some(400),
            r#"{"error":true,"message":"Message is being blocked for reason: SAFETY"}"#,
            "Message is being blocked for reason: SAFETY",
            Fault::Content,
        ),
        (
            "a status alone",
            Some(451),
            r#"{"error":{"message":"Blocked by content policy"}}"#,
            "Blocked by content policy",
            Fault::Content,
        ),
        (
            "Cloudflare",
            Some(400),
            r#"{"success":false,"errors":[{"code":7003,"message":"No such thing"}],"messages":[]}"#,
            "No such thing",
            Fault::Request,
        ),
    ] {
        let told = told(status, body);

        assert_eq!((told.message.as_str(), told.fault()), (words, fault), "{server}: {body}");
    }
}

#[test]
fn a_wait_may_be_named_in_the_body() {
    for (body, secs) in [
        (r#"[{"error":{"code":429,"message":"quota","details":[{"@type":"t","retryDelay":"7s"}]}}]"#, Some(7.0)),
        (r#"{"error":{"message":"quota","details":[{"@type":"a"},{"retryDelay":"26.5s"}]}}"#, Some(26.5)),
        (r#"{"message":"slow down","retry_after":3}"#, Some(3.0)),
        (r#"{"message":"slow down","retry_after":"2.5"}"#, Some(2.5)),
        (r#"{"message":"slow down","retry_after":99999}"#, Some(600.0)),
        (r#"{"message":"slow down","retry_after":-1}"#, None),
        (r#"{"message":"slow down","retry_after":"soon"}"#, None),
    ] {
        assert_eq!(Told::of(body.as_bytes()).retry_after.map(|wait| wait.as_secs_f64()), secs, "{body}");
    }
}

#[test]
fn a_limit_for_a_day_does_not_pass_within_minutes() {
    for (message, secs) in [("free-models-per-day", Some(600.0)), ("20 requests per minute", None)] {
        let body = format!(r#"{{"error":{{"message":"Rate limit exceeded: {message}","code":429}}}}"#);
        let told = Told::by(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), body.as_bytes());
        assert_eq!(told.retry_after.map(|wait| wait.as_secs_f64()), secs, "{message}");
    }
}

#[test]
fn other_shapes_are_shown_as_they_are_and_bounded() {
    for (body, expected) in [
        (r#"{"error":{"message":"a","type":"t"}}"#, "a"),
        (r#"{"error":"b"}"#, "b"),
        (r#"{"detail":{"status":"invalid","message":"c"}}"#, "c"),
        ("d\n", "d"),
        ("<html><body>502</body></html>", ""),
        ("{}", ""),
        (r#"{"x":1}"#, r#"{"x":1}"#),
        (r#"{"error":{"message":"same","detail":"same"}}"#, "same"),
        (r#""just words""#, "just words"),
    ] {
        assert_eq!(Told::of(body.as_bytes()).message, expected, "{body}");
    }
    let nested = format!("{}{}", r#"{"error":"#.repeat(200), "}".repeat(200));
    let long = format!(r#"{{"error":["{}","{}"]}}"#, "é".repeat(9_000), "x".repeat(9_000));
    for body in [&nested, &long] {
        assert!(Told::of(body.as_bytes()).message.len() <= MAX_KEPT_BYTES);
    }
}
