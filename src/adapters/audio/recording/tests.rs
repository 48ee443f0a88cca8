use tokio::time::Instant;

use super::super::opus::tests::packets_of;
use super::super::opus::{self, Decoder};
use super::super::samples::{ogg, page, voice_note};
use super::*;

const LONG: Duration = Duration::from_secs(600);

/// The samples of a recording.
fn samples(file: &[u8]) -> Result<Vec<i16>, RecordingRefused> {
    let (mut recording, mut samples) = (OpusRecording::new(file, LONG)?, Vec::new());
    while let Some(decoded) = recording.decode_next() {
        let decoded = decoded?;
        assert_eq!(decoded.from, samples.len() as u64);
        samples.extend_from_slice(decoded.samples);
    }
    Ok(samples)
}

fn refusal(file: &[u8]) -> String {
    OpusRecording::new(file, LONG).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_recording_is_decoded_as_its_packets_are_however_they_are_paged() {
    let packets = packets_of("browser");
    let mut decoder = Decoder::new().unwrap();
    let alone: Vec<i16> =
        (0..).zip(&packets).flat_map(|(number, packet)| decoder.decode(number, packet).unwrap().samples.to_vec()).collect();

    for in_page in [1, 7, 50] {
        assert_eq!(samples(&ogg(&packets, in_page)), Ok(alone.clone()), "{in_page} in a page");
    }
    assert_eq!(OpusRecording::new(&voice_note(), LONG).unwrap().length(), Duration::from_millis(packets.len() as u64 * 20));
}

#[test]
fn packets_of_other_lengths_and_of_two_channels_are_decoded() {
    // Three frames of 20 ms in a packet, as Chromium's recorder writes them (RFC 6716, section 3.2.5: code 3 with a variable bit rate).
    let merged = |packets: &[Vec<u8>]| {
        let lengths = packets[..2].iter().map(|packet| u8::try_from(packet.len() - 1).unwrap());
        let frames = packets.iter().flat_map(|packet| &packet[1..]).copied();
        [packets[0][0] | 3, 0x83].into_iter().chain(lengths).chain(frames).collect::<Vec<u8>>()
    };
    let packets: Vec<_> = packets_of("browser").into_iter().filter(|packet| packet[0] & 3 == 0 && packet.len() < 250).collect();
    let (whole, _) = packets.as_chunks::<3>();
    let same = |packets: &&[Vec<u8>; 3]| packets.iter().all(|packet| packet[0] == packets[0][0]);
    let whole: Vec<_> = whole.iter().filter(same).map(|packets| merged(packets)).collect();

    assert!(whole.len() > 5, "{}", whole.len());
    assert_eq!(samples(&ogg(&whole, 5)).unwrap().len(), whole.len() * 3 * 320);
    assert!(samples(&ogg(&packets_of("stereo"), 20)).is_ok_and(|samples| !samples.is_empty()));
}

#[test]
fn a_packet_over_several_pages_is_put_together() {
    let packets = packets_of("browser");
    let packet = [packets[40].clone(), vec![0; 300]].concat();
    let (first, rest) = packet.split_at(255);
    let mut file = ogg(&packets[..1], 1);
    let mut broken = page(0, 0, 3, &[first.to_vec()]);
    // Without the closing length of 0, the packet continues on the next page.
    let at = 27 + usize::from(broken[26]) - 1;
    broken.remove(at);
    broken[26] -= 1;
    file.extend(broken);
    file.extend(page(1, 960, 4, &[rest.to_vec()]));

    let read = Packets::of(&file).unwrap().collect::<Result<Vec<_>, _>>().unwrap();

    assert_eq!(read, [&packets[0][..], &packet]);
}

#[test]
fn whatever_is_no_recording_is_refused_at_once() {
    let (packets, note) = (packets_of("browser"), voice_note());
    let head = |bytes: &[u8]| [page(2, 0, 0, &[bytes.to_vec()]), note[47..].to_vec()].concat();
    let other_stream = {
        let mut other = ogg(&packets, 50);
        other.iter_mut().skip(14).take(1).for_each(|byte| *byte = 9);
        [note.clone(), other].concat()
    };
    // It ends nowhere: each page says that its packet goes on.
    let mut endless = note[..note.len().min(200)].to_vec();
    endless.truncate(47 + 27 + 1 + 24);
    let mut part = page(1, 0, 2, &[vec![1; 254 * 255]]);
    part.remove(27 + 254);
    part[26] = 254;
    while endless.len() < 4 << 20 {
        endless.extend_from_slice(&part);
    }
    // 120 ms in two bytes: more than two days of audio in 4 MiB.
    let bomb = ogg(&vec![vec![0x1b, 0x02]; 1 << 20], 200);
    let lying = |granule: u64| {
        let mut lying = note.clone();
        let last = lying.windows(4).rposition(|bytes| bytes == b"OggS").unwrap();
        lying[last + 6..last + 14].copy_from_slice(&granule.to_le_bytes());
        lying
    };

    for (what, file) in [
        ("nothing", Vec::new()),
        ("text", b"not a recording".repeat(1_000)),
        ("WebM", [&[0x1a, 0x45, 0xdf, 0xa3][..], &[0; 100]].concat()),
        ("Vorbis", head(b"\x01vorbis\0\0\0\0\x01\x44\xac\0\0\0\0\0\0")),
        ("eight channels", head(b"OpusHead\x01\x08\0\0\0\0\0\0\0\0\x01")),
        ("a later version", head(b"OpusHead\x10\x01\0\0\0\0\0\0\0\0\0")),
        ("no comments", [&note[..47], &page(4, 960, 1, &packets[..1])].concat()),
        ("a cut file", note[..note.len() - 1].to_vec()),
        ("a missing page", [&note[..47], &page(1, 0, 1, &packets[..1])].concat()),
        ("two streams", other_stream),
        ("a chain", [note.clone(), note.clone()].concat()),
        ("an endless packet", endless),
        ("an empty packet", ogg(&[Vec::new()], 1)),
        ("no Opus", ogg(&[vec![3]], 1)),
        ("a packet of 960 ms", ogg(&[vec![0x1b, 0x10]], 1)),
        ("days in 4 MiB", bomb),
    ] {
        let begun = Instant::now();

        let refusal = refusal(&file);

        assert!(!refusal.is_empty() && refusal.len() < 200, "{what}: {refusal:?}");
        assert!(begun.elapsed() < Duration::from_millis(500), "{what}: {:?}", begun.elapsed());
    }
    for granule in [0, 1, u64::MAX] {
        assert_eq!(samples(&lying(granule)), samples(&note), "the packets count");
    }
    let two = OpusRecording::new(&note, Duration::from_millis(100));
    assert_eq!(two.err().map(|error| error.to_string()), Some("it is too long".to_owned()));
}

#[test]
fn a_packet_that_cannot_be_decoded_ends_the_recording() {
    let broken = [vec![0x0b, 0xff, 0xff, 0xff], packets_of("browser")[30].clone()];
    let Ok(mut recording) = OpusRecording::new(&ogg(&broken, 2), LONG) else { return };

    let first = recording.decode_next().map(|decoded| decoded.is_err());

    assert!(first == Some(false) || recording.decode_next().is_none());
    assert!(opus::length_of(&[]).is_none());
}
