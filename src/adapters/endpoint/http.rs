//! An HTTP/1.1 client with a bound for everything that precedes the status of a response.
//!
//! An endpoint may send informational responses first (100 Continue, 103 Early Hints), and hyper skips any number of them within one poll. An
//! endless sequence would keep a thread busy until the deadline. So they are counted, and too many end the call. HTTP/2 is not offered, because
//! its informational responses cannot be counted.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, PROXY_AUTHORIZATION};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::sync::Notify;
use tower::Service;

/// The most informational responses before a response. One or two are usual.
pub(in crate::adapters) const MAX_INFORMATIONAL: usize = 16;

/// The size limit of a response's head in bytes. It is also the most that is read at a time, so that one poll ends soon.
pub(in crate::adapters) const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

type AnyError = Box<dyn Error + Send + Sync>;

/// The connections to one endpoint.
pub(in crate::adapters) struct Http {
    client: Client<Connector, Full<Bytes>>,
    proxies: Arc<Matcher>,
}

/// A response whose head has arrived.
pub(in crate::adapters) struct Arriving(Response<Incoming>);

/// Why no response arrives, or no more of it.
#[derive(Debug)]
pub(in crate::adapters) enum HttpError {
    /// Connecting failed.
    Connect(AnyError),
    /// The connection broke.
    Broken(AnyError),
    /// Too many informational responses arrived.
    TooManyInformational,
}

impl Http {
    /// Connections through the proxies that the environment names (`HTTPS_PROXY` and others), or directly.
    ///
    /// # Errors
    /// The certificates of this machine cannot be used.
    pub fn new(through_proxies: bool) -> Result<Self, rustls::Error> {
        Self::through(if through_proxies { Matcher::from_env() } else { Matcher::builder().build() })
    }

    fn through(proxies: Matcher) -> Result<Self, rustls::Error> {
        let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_platform_verifier()?
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let proxies = Arc::new(proxies);
        let tls = Arc::new(tls);
        let connector = Connector { direct: HttpsConnector::from((tcp, tls.clone())), tls, proxies: proxies.clone() };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .build(connector);
        Ok(Self { client, proxies })
    }

    /// Posts a body and waits for the head of the response. Dropping the future ends the connection.
    pub async fn post(&self, to: Uri, headers: HeaderMap, body: Vec<u8>) -> Result<Arriving, HttpError> {
        self.send(Method::POST, to, headers, body).await
    }

    /// Asks for what is there, and waits for the head of the response. Dropping the future ends the connection.
    pub async fn get(&self, from: Uri, headers: HeaderMap) -> Result<Arriving, HttpError> {
        self.send(Method::GET, from, headers, Vec::new()).await
    }

    async fn send(&self, method: Method, to: Uri, mut headers: HeaderMap, body: Vec<u8>) -> Result<Arriving, HttpError> {
        if to.scheme_str() == Some("http")
            && let Some(auth) = self.proxies.intercept(&to).and_then(|proxy| proxy.basic_auth().cloned())
        {
            headers.insert(PROXY_AUTHORIZATION, auth);
        }
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = to;
        *request.headers_mut() = headers;
        let too_many = Arc::new(Notify::new());
        let (seen, notifier) = (AtomicUsize::new(0), too_many.clone());
        hyper::ext::on_informational(&mut request, move |_| {
            if seen.fetch_add(1, Ordering::Relaxed) == MAX_INFORMATIONAL {
                notifier.notify_one();
            }
        });
        tokio::select! {
            biased;
            answer = self.client.request(request) => answer.map(Arriving).map_err(|error| {
                if error.is_connect() { HttpError::Connect(error.into()) } else { HttpError::Broken(error.into()) }
            }),
            () = too_many.notified() => Err(HttpError::TooManyInformational),
        }
    }
}

impl Arriving {
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// The connection itself, after a successful request to use it for another protocol.
    pub async fn upgraded(self) -> Result<Upgraded, HttpError> {
        hyper::upgrade::on(self.0).await.map_err(|error| HttpError::Broken(error.into()))
    }

    /// The next chunk of the body; none at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(frame) = self.0.frame().await {
            // Trailers contain nothing that is needed.
            if let Ok(data) = frame.map_err(|error| HttpError::Broken(error.into()))?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

/// Connects to an endpoint, or to a proxy for it.
#[derive(Clone)]
struct Connector {
    direct: HttpsConnector<HttpConnector>,
    tls: Arc<ClientConfig>,
    proxies: Arc<Matcher>,
}

impl Service<Uri> for Connector {
    type Response = Link;
    type Error = AnyError;
    type Future = Pin<Box<dyn Future<Output = Result<Link, AnyError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AnyError>> {
        self.direct.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let mut direct = self.direct.clone();
        let Some(proxy) = self.proxies.intercept(&to) else {
            return Box::pin(async move { Ok(Link { socket: Box::new(direct.call(to).await?), is_proxied: false }) });
        };
        if to.scheme_str() != Some("https") {
            let proxy = proxy.uri().clone();
            return Box::pin(async move { Ok(Link { socket: Box::new(direct.call(proxy).await?), is_proxied: true }) });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), direct);
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        let mut through = HttpsConnector::from((tunnel, self.tls.clone()));
        Box::pin(async move { Ok(Link { socket: Box::new(through.call(to).await?), is_proxied: false }) })
    }
}

trait Socket: Read + Write + Connection + Send + Unpin {}

impl<S: Read + Write + Connection + Send + Unpin> Socket for S {}

/// A connection of any kind.
struct Link {
    socket: Box<dyn Socket>,
    /// The connection leads to a proxy that reads the requests, and needs the whole URL in each.
    is_proxied: bool,
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        self.socket.connected().proxy(self.is_proxied)
    }
}

impl Read for Link {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, into)
    }
}

impl Write for Link {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    /// The first bytes that a proxy gets for a request to this URL.
    async fn sent_to_a_proxy(to: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let proxy = format!("http://me:secret@{}", listener.local_addr().expect("bound"));
        let serving = tokio::task::spawn_blocking(move || {
            let (mut socket, _) = listener.accept().expect("a connection");
            let mut head = vec![0; 4_096];
            let read = socket.read(&mut head).expect("a request");
            String::from_utf8_lossy(&head[..read]).into_owned()
        });
        let http = Http::through(Matcher::builder().all(proxy).build()).expect("usable");

        let posted = http.post(Uri::from_static(to), HeaderMap::new(), b"{}".to_vec()).await;

        assert!(posted.is_err(), "the proxy hangs up");
        serving.await.expect("no panic")
    }

    #[tokio::test]
    async fn a_proxy_gets_whole_urls_or_a_tunnel_for_tls_with_its_own_credentials() {
        let plain = sent_to_a_proxy("http://models.example/v1/chat/completions").await;
        let tunnelled = sent_to_a_proxy("https://models.example/v1/chat/completions").await;

        assert!(plain.starts_with("POST http://models.example/v1/chat/completions HTTP/1.1\r\n"), "{plain}");
        assert!(tunnelled.starts_with("CONNECT models.example:443 HTTP/1.1\r\n"), "{tunnelled}");
        for sent in [plain, tunnelled] {
            assert!(sent.to_ascii_lowercase().contains("proxy-authorization: basic bwu6c2vjcmv0"), "{sent}");
        }
    }
}
