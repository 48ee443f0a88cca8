//! Records each start of the server. A start restarts all work in progress, and stories show it.

use std::sync::Arc;

use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{WriteMeta, WriterMessage};
use crate::actors::runtime::actor_keys::WriterKey;
use crate::actors::runtime::context::ActorContext;
use crate::domain::id::Ward;
use crate::journal::key;
use crate::journal::record::{StartRecord, encode};
use crate::ports::store::Write;

/// Records that the server starts now. Needs the writer. A failure is only logged, because it affects nothing but stories.
pub async fn note(context: &ActorContext) {
    let record = StartRecord { version: Arc::from(env!("CARGO_PKG_VERSION")) };
    let writes = vec![Write::Put(key::start(context.clock.now()), encode(&record))];
    let (reply, done) = Reply::awaited();
    let write_meta = WriterMessage::WriteMeta(WriteMeta { ward: Ward(0), writes, fresh: Vec::new(), reply });
    let is_sent = context.directory.find(&WriterKey()).is_some_and(|writer| writer.cast(write_meta).is_ok());
    let is_noted = is_sent && matches!(done.await, Ok(Ok(())));
    if !is_noted {
        tracing::warn!("the start of the server could not be recorded; stories will not show it");
    }
}
