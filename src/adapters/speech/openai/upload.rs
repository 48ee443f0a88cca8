//! The body of a request with a recording: `multipart/form-data` (RFC 7578) with a WAV file.

use crate::adapters::speech::little_endian;
use crate::ports::audio::HEARD_RATE;

/// The prefix of all boundaries.
const BOUNDARY: &str = "tertulia-recording";

/// The media type and the body of a form with these fields, and the recording as `file`.
pub(super) fn form(fields: &[(&str, &str)], samples: &[i16]) -> (String, Vec<u8>) {
    let wav = wav(samples);
    let is_within = |boundary: &str| {
        fields.iter().any(|(_, value)| value.contains(boundary))
            || wav.windows(boundary.len()).any(|window| window == boundary.as_bytes())
    };
    // People choose their names, and the prompt contains names.
    let boundary = (0..).map(|number: u32| format!("{BOUNDARY}-{number}")).find(|boundary| !is_within(boundary));
    let boundary = boundary.unwrap_or_default();
    let mut body = Vec::with_capacity(wav.len() + 1_024);
    for (name, value) in fields {
        let part = format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let file = "content-disposition: form-data; name=\"file\"; filename=\"speech.wav\"\r\ncontent-type: audio/wav";
    body.extend_from_slice(format!("--{boundary}\r\n{file}\r\n\r\n").as_bytes());
    body.extend_from_slice(&wav);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

/// A WAV file: 16 bits, mono, at [`HEARD_RATE`].
fn wav(samples: &[i16]) -> Vec<u8> {
    let length = samples.len() as u32 * 2;
    let mut wav = Vec::with_capacity(44 + samples.len() * 2);
    wav.extend_from_slice(b"RIFF");
    wav.extend_from_slice(&(length + 36).to_le_bytes());
    wav.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    wav.extend_from_slice(&HEARD_RATE.to_le_bytes());
    wav.extend_from_slice(&(HEARD_RATE * 2).to_le_bytes());
    wav.extend_from_slice(b"\x02\0\x10\0data");
    wav.extend_from_slice(&length.to_le_bytes());
    wav.extend_from_slice(&little_endian(samples));
    wav
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_is_in_no_field_and_not_in_the_recording() {
        let [low, high] = [*b"te", *b"rt"].map(i16::from_le_bytes);
        let mut samples: Vec<i16> = BOUNDARY.as_bytes().chunks(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
        samples.extend(b"-1\0\0".chunks(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])));

        let (media_type, _) = form(&[("prompt", "tertulia-recording-0")], &samples);

        assert_eq!(samples[..2], [low, high]);
        assert_eq!(media_type, "multipart/form-data; boundary=tertulia-recording-2");
    }
}
