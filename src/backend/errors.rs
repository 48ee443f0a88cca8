//! Converts errors of the writer or the channels for the caller: to a [`Refused`] of the backend, or an [`InboundError`] of a platform.
//!
//! Converting an internal error logs it. For errors of the record, `journal/reader/read_error.rs` does it.

use serde_json::json;

use crate::actors::erasure::deletion::RewriteError;
use crate::actors::membership::changes::MembershipError;
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::actors::messages::writer::{self, WriteError};
use crate::ports::backend::{Detail, Refused};
use crate::ports::inbound_events::{InboundError, RETRY_AFTER};

pub(super) fn invalid(field: impl Into<String>, detail: impl Into<Detail>) -> Refused {
    Refused::Invalid { field: field.into(), detail: detail.into() }
}

pub(super) fn unavailable(detail: impl Into<Detail>) -> Refused {
    Refused::Unavailable { detail: detail.into(), retry_after: Some(RETRY_AFTER) }
}

/// The error that no room has this name. `instead` is a hint for users of the API.
pub(super) fn no_room(name: &str, instead: &str) -> Detail {
    Detail::from(format!("there is no room {name}{instead}")).coded("refusals.no_room", json!({ "room": name }))
}

impl From<WriteError> for Refused {
    fn from(lost: WriteError) -> Self {
        match lost {
            WriteError::Unknown => unavailable(
                Detail::from("it is not known whether this was stored, try again with the same id")
                    .coded("refusals.unknown_outcome", json!({})),
            ),
            WriteError::Unreadable(why) => Self::damaged(why.to_string()),
            WriteError::Unavailable(_) => unavailable(Detail::key("refusals.not_stored")),
            WriteError::Deleted => unavailable(Detail::key("refusals.deleting")),
            WriteError::Unfit(why) => Self::unreadable(why),
        }
    }
}

impl From<writer::Refused> for Refused {
    fn from(error: writer::Refused) -> Self {
        match error {
            writer::Refused::Busy { retry_after } => Self::TooMany { detail: Detail::key("refusals.busy"), retry_after },
            writer::Refused::FilesFull { most_mb } => {
                Self::conflict(Detail::from(error.to_string()).coded("refusals.files_full", json!({ "mb": most_mb })))
            }
            writer::Refused::WriteError(lost) => lost.into(),
        }
    }
}

impl From<RewriteError> for Refused {
    fn from(error: RewriteError) -> Self {
        match error {
            RewriteError::Read(error) => error.into(),
            RewriteError::Write(error) => error.into(),
        }
    }
}

impl From<MembershipError> for Refused {
    fn from(error: MembershipError) -> Self {
        match error {
            MembershipError::SharedName(ref shared) => {
                Self::conflict(Detail::from(error.to_string()).coded("refusals.shared_name", json!(shared)))
            }
            MembershipError::Metadata(error) => error.into(),
            MembershipError::Journal(error) => error.into(),
        }
    }
}

impl From<VoteError> for Refused {
    fn from(error: VoteError) -> Self {
        match error {
            VoteError::Gone => unavailable(error.to_string()),
            _ => Self::conflict(error.to_string()),
        }
    }
}

impl From<WriteError> for InboundError {
    fn from(lost: WriteError) -> Self {
        match lost {
            // An unreadable record may become readable again when a backup is restored.
            WriteError::Unknown | WriteError::Unavailable(_) | WriteError::Unreadable(_) | WriteError::Deleted => {
                Self::Later { after: RETRY_AFTER, detail: lost.to_string() }
            }
            WriteError::Unfit(why) => Self::not_recorded(why),
        }
    }
}

impl From<writer::Refused> for InboundError {
    fn from(error: writer::Refused) -> Self {
        match error {
            writer::Refused::Busy { retry_after } => {
                Self::Later { after: retry_after, detail: "too much waits to be stored".into() }
            }
            writer::Refused::FilesFull { .. } => Self::Broken(error.to_string()),
            writer::Refused::WriteError(lost) => lost.into(),
        }
    }
}

impl From<MembershipError> for InboundError {
    fn from(error: MembershipError) -> Self {
        match error {
            MembershipError::SharedName(_) => Self::Broken(error.to_string()),
            MembershipError::Metadata(lost) => lost.into(),
            MembershipError::Journal(error) => error.into(),
        }
    }
}

impl From<RewriteError> for InboundError {
    fn from(error: RewriteError) -> Self {
        match error {
            RewriteError::Read(error) => error.into(),
            RewriteError::Write(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::id::Seq;
    use crate::journal::reader::ReadError;
    use crate::ports::store::StoreError;
    use crate::samples::channel_key;

    #[test]
    fn temporary_errors_are_distinguished_from_permanent_ones() {
        let after = Duration::from_secs(7);
        let channel_key = channel_key("discord:1");
        let errors: [(InboundError, Option<Duration>); 11] = [
            (writer::Refused::Busy { retry_after: after }.into(), Some(after)),
            (WriteError::Unknown.into(), Some(RETRY_AFTER)),
            (WriteError::Unavailable("the disk is full".into()).into(), Some(RETRY_AFTER)),
            (WriteError::Deleted.into(), Some(RETRY_AFTER)),
            (WriteError::Unfit("nonsense").into(), None),
            (MembershipError::Metadata(WriteError::Unknown).into(), Some(RETRY_AFTER)),
            (MembershipError::Journal(WriteError::Unknown.into()).into(), Some(RETRY_AFTER)),
            (RewriteError::Write(WriteError::Unknown.into()).into(), Some(RETRY_AFTER)),
            (ReadError::from(StoreError::Failed("gone".into())).into(), Some(RETRY_AFTER)),
            (ReadError::from(StoreError::Damaged("torn".into())).into(), None),
            (ReadError::Gap { channel_key, expected: Seq(1), found: Seq(2) }.into(), None),
        ];
        for (error, later) in errors {
            let retry_after = match &error {
                InboundError::Later { after, .. } => Some(*after),
                InboundError::Broken(_) => None,
            };
            assert_eq!(retry_after, later, "{error}");
        }
    }
}
