//! Notes when the server is started: what was going on then was begun anew, and stories tell it.

use std::sync::Arc;

use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{WriteMeta, WriterMessage};
use crate::actors::runtime::actor_keys::WriterKey;
use crate::actors::runtime::context::ActorContext;
use crate::domain::id::Ward;
use crate::journal::key;
use crate::journal::record::{StartRecord, encode};
use crate::ports::store::Write;

/// Notes that the server starts now. Needs the writer. Nothing but stories suffers where it cannot be noted, so that is told in the log.
pub async fn note(context: &ActorContext) {
    let record = StartRecord { version: Arc::from(env!("CARGO_PKG_VERSION")) };
    let writes = vec![Write::Put(key::start(context.clock.now()), encode(&record))];
    let (reply, done) = Reply::awaited();
    let write_meta = WriterMessage::WriteMeta(WriteMeta { ward: Ward(0), writes, fresh: Vec::new(), reply });
    let is_told = context.directory.find(&WriterKey()).is_some_and(|writer| writer.cast(write_meta).is_ok());
    let is_noted = is_told && matches!(done.await, Ok(Ok(())));
    if !is_noted {
        tracing::warn!("it could not be noted that the server was started; stories will not tell it");
    }
}
