//! Fuzzes hostile frames, stored sessions, and responses about the gateway.

use std::time::Duration;

use super::frame::{self, Frame, MAX_FRAME_BYTES};
use super::session::Session;
use super::starts;
use crate::domain::moment::Moment;

pub fn frame(text: &str) {
    let _ = frame::address(text).map(|address| {
        assert_eq!(frame::address(&address).as_ref(), Some(&address), "an address changes when it is parsed again");
        assert!(address.starts_with("wss://") || address.starts_with("ws://"), "{address}");
    });
    let session: Option<Session> = serde_json::from_str(text).ok();
    if let Some(session) = session {
        assert_eq!(serde_json::from_str::<Session>(&serde_json::to_string(&session).unwrap()).unwrap(), session);
    }
    if let Ok(answer) = serde_json::from_str(text) {
        let info = starts::gateway_info(&answer, Moment::from_micros(5), Duration::from_secs(5));
        assert!(info.shards.get() <= 16_000, "{} connections are recommended", info.shards);
        assert!(info.limit.resets_at >= info.limit.received_at);
    }
    if let Ok(Frame::Dispatch { kind, data, .. }) = frame::parse(text) {
        assert!(text.len() <= MAX_FRAME_BYTES && !kind.is_empty() && kind.len() <= 1_000);
        if let Some(ready) = frame::parse_ready(&data) {
            assert!(!ready.session_id.is_empty() && ready.session_id.len() <= 1_000);
            assert!(ready.resume_gateway_url.is_none_or(|url| frame::address(&url) == Some(url.clone())));
        }
    }
}
