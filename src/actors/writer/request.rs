//! The properties of a request that the writer's queue needs.

use std::sync::Arc;

use tokio::time::Instant;

use crate::actors::messages::writer::{
    Accept, DeleteChannel, DeleteExpired, Fence, HandOver, Post, Record, RedactEvents, RemoveFromIndex, Request, WriteError,
    WriteMeta,
};
use crate::domain::id::Ward;
use crate::journal::channel_key::ChannelKey;
use crate::ports::store::Write;
use crate::ports::store::key::Kind;

impl Request {
    /// The channel of the request. Administrative writes have none.
    pub(super) fn channel_key(&self) -> Option<&ChannelKey> {
        match self {
            Self::Accept(Accept { channel_key, .. })
            | Self::Record(Record { channel_key, .. })
            | Self::Post(Post { channel_key, .. })
            | Self::HandOver(HandOver { channel_key, .. })
            | Self::DeleteChannel(DeleteChannel { channel_key, .. })
            | Self::RedactEvents(RedactEvents { channel_key, .. })
            | Self::DeleteExpired(DeleteExpired { channel_key, .. })
            | Self::RemoveFromIndex(RemoveFromIndex { channel_key, .. })
            | Self::Fence(Fence { channel_key, .. })
            | Self::Swept { channel_key, .. } => Some(channel_key),
            Self::WriteMeta(_) => None,
        }
    }

    /// Whether it removes text or names from stored data.
    pub(super) fn erases(&self) -> bool {
        match self {
            Self::DeleteChannel(_) | Self::RedactEvents(_) | Self::DeleteExpired(_) | Self::RemoveFromIndex(_) => true,
            Self::WriteMeta(WriteMeta { writes, .. }) => writes.iter().any(|write| {
                let (Write::Put(key, _) | Write::Remove(key)) = write;
                key.kind().is_some_and(is_written_to_erase)
            }),
            Self::Accept(_) | Self::Record(_) | Self::Post(_) | Self::HandOver(_) | Self::Fence(_) | Self::Swept { .. } => false,
        }
    }

    /// Whether it removes text because a deletion was requested, as opposed to expiry.
    pub(super) const fn is_erasure_requested(&self) -> bool {
        matches!(self, Self::DeleteChannel(_) | Self::RedactEvents(_))
    }

    /// When it was sent to the writer, if it journals events.
    pub(super) const fn sent_at(&self) -> Option<Instant> {
        match self {
            Self::Accept(Accept { reply, .. }) => Some(reply.since()),
            Self::Record(Record { reply, .. }) => Some(reply.since()),
            Self::Post(Post { reply, .. }) => Some(reply.since()),
            Self::HandOver(HandOver { reply, .. }) => Some(reply.since()),
            _ => None,
        }
    }

    /// The ward of its keys.
    pub(super) fn ward(&self) -> Ward {
        match self {
            Self::WriteMeta(write_meta) => write_meta.ward,
            _ => self.channel_key().map(ChannelKey::ward).unwrap_or_default(),
        }
    }

    /// The platform's id of the message, which must be new.
    pub(super) fn message_id(&self) -> Option<&Arc<str>> {
        match self {
            Self::Accept(Accept { id, .. }) => id.as_ref(),
            Self::Post(Post { ids, .. }) => ids.first(),
            _ => None,
        }
    }

    /// Answers with this error.
    pub(super) fn fail(self, error: WriteError) {
        match self {
            Self::Accept(Accept { reply, .. }) => reply.send(Err(error.into())),
            Self::Record(Record { reply, .. }) | Self::HandOver(HandOver { reply, .. }) => reply.send(Err(error)),
            Self::Post(Post { reply, .. }) => reply.send(Err(error)),
            Self::DeleteChannel(DeleteChannel { reply, .. })
            | Self::RedactEvents(RedactEvents { reply, .. })
            | Self::DeleteExpired(DeleteExpired { reply, .. })
            | Self::WriteMeta(WriteMeta { reply, .. })
            | Self::Swept { reply, .. } => reply.send(Err(error)),
            Self::RemoveFromIndex(RemoveFromIndex { reply, .. }) => reply.send(Err(error)),
            Self::Fence(Fence { reply, .. }) => reply.send(Err(error)),
        }
    }
}

/// Whether an administrative write of such a record removes text or names. Sweeps remove events this way. Usage and AI
/// disclosures are otherwise recorded together with events; they are written alone only to remove a name.
const fn is_written_to_erase(kind: Kind) -> bool {
    matches!(kind, Kind::Journal | Kind::Usage | Kind::Told)
}
