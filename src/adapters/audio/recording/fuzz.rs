//! Fuzzes the reader of recordings: however long a file claims to be, no more is decoded than was allowed.

use super::super::opus::tests::packets_of;
use super::super::samples::ogg;
use super::*;

const LONGEST: Duration = Duration::from_millis(200);

/// Short recordings, with few and with many packets in a page.
pub(crate) fn recordings() -> Vec<Vec<u8>> {
    ["browser", "stereo", "hybrid"]
        .iter()
        .flat_map(|name| [1, 5].map(|in_page| ogg(&packets_of(name)[40..45], in_page)))
        .collect()
}

/// Reads and decodes a file.
pub(crate) fn recording(bytes: &[u8]) {
    let Ok(mut recording) = OpusRecording::new(bytes, LONGEST) else { return };
    let mut samples = 0;
    while let Some(Ok(decoded)) = recording.decode_next() {
        assert_eq!(decoded.from, samples);
        samples += decoded.samples.len() as u64;
    }
    assert!(samples <= u64::from(HEARD_RATE) / 5 + 1, "{samples}");
    assert!(recording.length() <= LONGEST);
}
