//! The page's files, probes and metrics.

use super::*;

#[tokio::test]
async fn the_page_is_served_with_types_and_tags() {
    let world = World::new().await;
    let cases = [
        ("/", "text/html; charset=utf-8"),
        ("/signin", "text/html; charset=utf-8"),
        ("/page/icon.svg", "image/svg+xml"),
        ("/page/signin.css", "text/css; charset=utf-8"),
        ("/page/manifest.webmanifest", "application/manifest+json"),
        ("/page/icon-192.png", "image/png"),
    ];

    for (path, media) in cases {
        let response = world.request(Method::GET, path).send().await.unwrap();
        let tag = response.headers()["etag"].clone();
        assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (200, &media.parse().unwrap()), "{path}");
        let again = world.request(Method::GET, path).header("if-none-match", tag).send().await.unwrap();
        assert_eq!((again.status().as_u16(), again.text().await.unwrap()), (304, String::new()), "{path}");
    }
}

#[tokio::test]
async fn the_service_worker_speaks_each_language_may_serve_the_pages_and_is_never_kept_without_asking() {
    let world = World::new().await;

    for (language, words) in [("en", "Try again"), ("de", "Noch einmal versuchen")] {
        let response = world.request(Method::GET, &format!("/page/service-worker.{language}.js")).send().await.unwrap();
        let headers = response.headers().clone();
        assert_eq!(headers["service-worker-allowed"], "/");
        assert_eq!(headers["cache-control"], "no-cache");
        assert_eq!(headers["content-type"], "text/javascript; charset=utf-8");
        assert!(response.text().await.unwrap().contains(words), "{language}");
    }
    let other = world.request(Method::GET, "/page/theme.js").send().await.unwrap();
    assert!(!other.headers().contains_key("service-worker-allowed"));
}

#[tokio::test]
async fn only_the_files_of_the_page_are_served() {
    let world = World::new().await;

    for path in ["/page/none.js", "/page/..%2Fpage.rs", "/page/%2Fetc%2Fpasswd", "/page/"] {
        assert_eq!((world.get(path).await.0, path), (404, path));
    }
}

#[tokio::test]
async fn the_probes_report_liveness_and_readiness() {
    let world = World::new().await;

    let alive = world.request(Method::GET, "/healthz").send().await.unwrap().text().await.unwrap();
    let ready = world.get("/readyz").await;
    *world.backend.not_ready_because.lock() = Some("the disk is full".into());
    let not_ready = world.get("/readyz").await;

    assert_eq!(alive, "ok\n");
    assert_eq!((ready.0, &ready.1["ready"]), (200, &Value::Bool(true)));
    assert_eq!((not_ready.0, &not_ready.1["parts"][0]["detail"]), (503, &Value::from("the disk is full")));
}

#[tokio::test]
async fn metrics_are_prometheus_text_and_count_refused_requests() {
    let world = World::new().await;
    world.get("/api/nothing").await;

    let response = world.request(Method::GET, "/metrics").send().await.unwrap();

    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = response.text().await.unwrap();
    for line in [
        r#"tertulia_http_requests_total{http_response_status_code="404"} 1"#,
        r#"tertulia_http_requests_total{http_response_status_code="429"} 0"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
}
