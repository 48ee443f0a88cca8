//! Recordings for tests.

use super::opus::tests::packets_of;

/// Two seconds of speech, as a platform keeps a voice note: packets of 20 ms, in Ogg.
pub fn voice_note() -> Vec<u8> {
    ogg(&packets_of("browser"), 50)
}

/// An Ogg file of one Opus stream with these packets, of which so many are in a page.
pub fn ogg(packets: &[Vec<u8>], in_page: usize) -> Vec<u8> {
    let head = [&b"OpusHead"[..], &[1, 1, 0x38, 1], &48_000_u32.to_le_bytes(), &[0, 0, 0]].concat();
    let tags = [&b"OpusTags"[..], &8_u32.to_le_bytes(), b"tertulia", &0_u32.to_le_bytes()].concat();
    let mut file = [page(2, 0, 0, &[head]), page(0, 0, 1, &[tags])].concat();
    let pages = packets.chunks(in_page).len();
    for (number, packets) in packets.chunks(in_page).enumerate() {
        let granule = (number * in_page + packets.len()) as u64 * 960;
        file.extend(page(if number + 1 == pages { 4 } else { 0 }, granule, number as u32 + 2, packets));
    }
    file
}

/// One page with whole packets.
pub fn page(kind: u8, granule: u64, number: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let lacing = |packet: &Vec<u8>| [vec![255; packet.len() / 255], vec![(packet.len() % 255) as u8]].concat();
    let lacing: Vec<u8> = packets.iter().flat_map(lacing).collect();
    let mut page =
        [b"OggS\0", &[kind][..], &granule.to_le_bytes(), &7_u32.to_le_bytes(), &number.to_le_bytes(), &[0; 4]].concat();
    page.push(lacing.len().try_into().expect("at most 255 segments"));
    page.extend(lacing);
    page.extend(packets.concat());
    let checksum = page.iter().fold(0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 })
    });
    page[22..26].copy_from_slice(&checksum.to_le_bytes());
    page
}
