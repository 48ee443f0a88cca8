//! Decodes audio that arrives in chunks of any length: bare samples, or a WAV file.

use crate::adapters::endpoint::failure::Broken;
use crate::ports::audio::SPOKEN_RATE;
use crate::ports::speech_synthesis::most_samples;

/// Longer headers of WAV files are refused.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// A larger size of the samples means that the server did not know the size when it sent the header.
const MAX_KNOWN_SIZE: u32 = 0x7fff_0000;
/// The first bytes of files of other formats.
const OTHERS: [(&[u8; 4], &str); 4] =
    [(b"ID3\x03", "an MP3 file"), (b"ID3\x04", "an MP3 file"), (b"OggS", "an Ogg file"), (b"fLaC", "a FLAC file")];
/// The advice in errors.
pub(super) const ADVICE: &str =
    "audio must be bare PCM or WAV of 16 bits, mono, at 24000 Hz: set such a voice or model, or have the server convert it";

/// Converts bytes to samples, mono at [`SPOKEN_RATE`].
#[derive(Debug)]
pub(super) struct Pcm {
    state: State,
    /// The bytes of an incomplete header or sample.
    kept: Vec<u8>,
    /// The number of bytes that may still arrive.
    left: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// It is not known yet whether there is a header.
    Begin,
    Head,
    /// Samples follow. The value is their size in bytes, if known.
    Samples(Option<usize>),
}

impl Pcm {
    /// A decoder for the audio of a text that is spoken at this speed.
    pub fn of(text: &str, speed: f64) -> Self {
        Self { state: State::Begin, kept: Vec::new(), left: 2 * most_samples(text, speed) + MAX_HEAD_BYTES }
    }

    /// Decodes a chunk, and returns its samples.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Vec<i16>, Broken> {
        self.left = self.left.checked_sub(chunk.len()).ok_or(Broken::TooLong)?;
        self.kept.extend_from_slice(chunk);
        if matches!(self.state, State::Begin) {
            let begin = &self.kept[..self.kept.len().min(4)];
            if begin.len() < 4 && (b"RIFF".starts_with(begin) || OTHERS.iter().any(|(other, _)| other.starts_with(begin))) {
                return Ok(Vec::new());
            }
            if let Some((_, other)) = OTHERS.iter().find(|(other, _)| *other == begin) {
                return Err(Broken::Audio(format!("it sent {other}; {ADVICE}")));
            }
            self.state = if begin == b"RIFF" { State::Head } else { State::Samples(None) };
        }
        if matches!(self.state, State::Head) {
            let Some(head) = Head::read(&self.kept)? else { return Ok(Vec::new()) };
            self.kept.drain(..head.length);
            self.state = State::Samples(head.size);
        }
        let State::Samples(left) = &mut self.state else { return Ok(Vec::new()) };
        let length = self.kept.len().min(left.unwrap_or(usize::MAX)) / 2 * 2;
        let samples = self.kept[..length].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
        self.kept.drain(..length);
        if let Some(left) = left {
            *left -= length;
            if *left < 2 {
                // The samples are followed by metadata of the file.
                self.kept.clear();
            }
        }
        Ok(samples)
    }
}

/// The header of a WAV file, up to the samples.
struct Head {
    length: usize,
    /// The size of the samples in bytes, if known.
    size: Option<usize>,
}

impl Head {
    /// Returns `None` if the header is incomplete.
    fn read(bytes: &[u8]) -> Result<Option<Self>, Broken> {
        let unreadable = |what: &str| Err(Broken::Unreadable(format!("a WAV file {what}")));
        let mut at = 12;
        let mut has_format = false;
        loop {
            if at > MAX_HEAD_BYTES {
                return unreadable("whose head is too long");
            }
            let (Some(name), Some(size)) = (bytes.get(at..at + 4), u32_at(bytes, at + 4)) else { return Ok(None) };
            at += 8;
            match name {
                b"data" if has_format => {
                    let size = (1..MAX_KNOWN_SIZE).contains(&size).then_some(size as usize);
                    return Ok(Some(Self { length: at, size }));
                }
                b"data" => return unreadable("without a format"),
                b"fmt " => {
                    let Some(format) = bytes.get(at..at + 16) else { return Ok(None) };
                    check_format(format)?;
                    has_format = true;
                }
                _ => {}
            }
            // Chunks have an even length.
            at = at.saturating_add(size as usize).saturating_add(size as usize % 2);
        }
    }
}

fn check_format(format: &[u8]) -> Result<(), Broken> {
    let [kind, channels, bits] = [0, 2, 14].map(|at| u16::from_le_bytes([format[at], format[at + 1]]));
    let rate = u32_at(format, 4).unwrap_or_default();
    // PCM, or the extensible format, which names PCM further on.
    if matches!(kind, 1 | 0xfffe) && (channels, bits, rate) == (1, 16, SPOKEN_RATE) {
        return Ok(());
    }
    Err(Broken::Audio(format!("it sent a WAV file of {bits} bits, {channels} channels, at {rate} Hz (format {kind}); {ADVICE}")))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A WAV file with a note before and one behind the samples.
    fn wav(kind: u16, channels: u16, rate: u32, bits: u16, size: u32, samples: &[i16]) -> Vec<u8> {
        let mut wav = b"RIFF\xff\xff\xff\xffWAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
        wav.extend([kind.to_le_bytes(), channels.to_le_bytes()].concat());
        wav.extend([rate.to_le_bytes(), (rate * 2).to_le_bytes()].concat());
        wav.extend([2_u16.to_le_bytes(), bits.to_le_bytes()].concat());
        wav.extend(b"data");
        wav.extend(size.to_le_bytes());
        wav.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        wav
    }

    fn read(chunks: &[&[u8]]) -> Result<Vec<i16>, Broken> {
        let mut pcm = Pcm::of(&"A long sentence. ".repeat(100), 1.0);
        chunks.iter().map(|chunk| pcm.feed(chunk)).collect::<Result<Vec<_>, _>>().map(|read| read.concat())
    }

    #[test]
    fn a_head_is_skipped_and_what_follows_the_samples_too() {
        let samples = [1, -2, 300];
        let known = [wav(1, 1, 24_000, 16, 6, &samples), b"LIST\x04\0\0\0note".to_vec()].concat();

        for file in [known, wav(0xfffe, 1, 24_000, 16, u32::MAX, &samples), wav(1, 1, 24_000, 16, 0, &samples)] {
            assert_eq!(read(&[&file]), Ok(samples.to_vec()));
        }
        assert_eq!(read(&[b"RIF"]), Ok(vec![]));
        assert_eq!(read(&[b"RI", b"PP"]), Ok(vec![i16::from_le_bytes(*b"RI"), i16::from_le_bytes(*b"PP")]));
    }

    #[test]
    fn other_audio_is_refused_with_the_way_out() {
        let files = [
            wav(1, 1, 22_050, 16, 6, &[1]),
            wav(1, 2, 24_000, 16, 6, &[1]),
            wav(3, 1, 24_000, 32, 6, &[1]),
            b"ID3\x04\0\0".to_vec(),
            b"OggS\0\0".to_vec(),
        ];

        for file in files {
            let Err(Broken::Audio(why)) = read(&[&file[..3], &file[3..]]) else { panic!("{file:?}") };
            assert!(why.contains("at 24000 Hz: set"), "{why}");
        }
    }

    #[test]
    fn a_head_without_end_and_audio_without_end_are_refused() {
        let endless = [b"RIFF\0\0\0\0WAVE".to_vec(), b"LIST\xff\xff\xff\xff".to_vec()].concat();
        let formless = b"RIFF\0\0\0\0WAVEdata\x02\0\0\0ab".to_vec();

        assert!(matches!(read(&[&endless, &[0; 9_000], &[0; 9_000]]), Err(Broken::Unreadable(_))));
        assert!(matches!(read(&[&formless]), Err(Broken::Unreadable(_))));
        let (mut pcm, second) = (Pcm::of("Eight ch", 1.0), vec![0; 48_000]);
        assert!((0..7).all(|_| pcm.feed(&second) == Ok(vec![0; 24_000])));
        assert_eq!(pcm.feed(&second), Err(Broken::TooLong));
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(
            samples in prop::collection::vec(any::<i16>(), 0..40),
            is_file: bool,
            cuts in prop::collection::vec(0..140_usize, 0..8),
        ) {
            let bare: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            let bytes = if is_file { wav(1, 1, 24_000, 16, u32::MAX, &samples) } else { bare };
            prop_assume!(is_file || !(b"RIFF".starts_with(&bytes[..bytes.len().min(4)]) || bytes.starts_with(b"I") || bytes.starts_with(b"O") || bytes.starts_with(b"f")));
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();

            prop_assert_eq!(read(&chunks), Ok(samples));
        }

        #[test]
        fn nothing_panics(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8), head in 0..45_usize) {
            let file = wav(1, 1, 24_000, 16, 6, &[1, 2, 3]);
            let chunks: Vec<&[u8]> = [&file[..head]].into_iter().chain(chunks.iter().map(Vec::as_slice)).collect();

            let _ = read(&chunks);
        }
    }
}
