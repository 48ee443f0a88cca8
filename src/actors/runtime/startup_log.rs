//! Records each start of the server. A start restarts all work in progress, and stories show it.

use std::sync::Arc;

use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::id::Ward;
use crate::journal::key;
use crate::journal::record::{StartRecord, encode};
use crate::ports::store::Write;

/// Records that the server starts now. Needs the writer. A failure is only logged, because it affects nothing but stories.
pub async fn record_start(context: &ActorContext) {
    let record = StartRecord { version: Arc::from(env!("CARGO_PKG_VERSION")) };
    let writes = vec![Write::Put(key::start(context.clock.now()), encode(&record))];
    if write_meta(context, Ward(0), writes).await.is_err() {
        tracing::warn!("the start of the server could not be recorded; stories will not show it");
    }
}
