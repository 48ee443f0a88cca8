//! Lets another client use connections that reqwest opens, with reqwest's proxies, TLS and timeouts.
//!
//! reqwest makes connections only for its own requests. So each connection starts a reqwest request, which fails as soon as the
//! connection exists.

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tower::{Layer, Service};

tokio::task_local! {
    /// The slot for the connection that this task waits for.
    static MADE: Cell<Option<Box<dyn Io>>>;
}

type Failure = Box<dyn Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

pub trait Io: Connection + Read + Write + Send + Unpin {}

impl<T: Connection + Read + Write + Send + Unpin> Io for T {}

impl Connection for Box<dyn Io> {
    fn connected(&self) -> Connected {
        (**self).connected()
    }
}

/// Opens connections with a client that has the layer [`HandOver`].
#[derive(Clone)]
pub(super) struct Connections(pub reqwest::Client);

impl Service<Uri> for Connections {
    type Response = Box<dyn Io>;
    type Error = Failure;
    type Future = Connecting<Box<dyn Io>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = self.0.get(to.to_string()).send();
        Box::pin(MADE.scope(Cell::new(None), async move {
            let failed = connecting.await.err();
            match MADE.with(Cell::take) {
                Some(made) => Ok(made),
                None => Err(failed.map_or_else(|| io::Error::other("no connection was made").into(), Into::into)),
            }
        }))
    }
}

/// Hands each connection over instead of using it.
#[derive(Clone)]
pub(super) struct HandOver;

#[derive(Clone)]
pub(super) struct HandingOver<S>(S);

impl<S> Layer<S> for HandOver {
    type Service = HandingOver<S>;

    fn layer(&self, connector: S) -> Self::Service {
        HandingOver(connector)
    }
}

impl<S, T> Service<T> for HandingOver<S>
where
    S: Service<T, Error = Failure>,
    S::Future: Send + 'static,
    S::Response: Io + 'static,
{
    type Response = S::Response;
    type Error = Failure;
    type Future = Connecting<S::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, to: T) -> Self::Future {
        let connecting = self.0.call(to);
        Box::pin(async move {
            let made = connecting.await?;
            MADE.with(|place| place.set(Some(Box::new(made))));
            Err("the connection was handed over".into())
        })
    }
}
