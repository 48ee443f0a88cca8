//! Which channels have something to do: read until the store answers, because nobody else would wake them.

use std::time::Duration;

use super::kit::Kit;
use crate::domain::id::Ward;
use crate::journal::reader::Reader;
use crate::journal::record::ChannelRecord;

/// The pause after the first failure, doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The channels of a ward with something unsettled, armed or owed.
pub(super) async fn channels(kit: &Kit, ward: Ward) -> Vec<ChannelRecord> {
    let mut pause = FIRST_PAUSE;
    loop {
        match Reader::new(&*kit.store).pending(ward).await {
            Ok(pending) => {
                if pause > FIRST_PAUSE {
                    tracing::info!(ward = ward.0, "it can be read again which channels have something to do");
                }
                return pending.into_iter().map(|(channel, _)| channel).collect();
            }
            Err(error) if pause == FIRST_PAUSE => {
                tracing::error!(ward = ward.0, %error, "it cannot be read which channels have something to do; it is tried again and again");
            }
            Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
